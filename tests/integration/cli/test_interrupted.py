"""Ctrl-C ends a question of the shell, even where Python drops the exception."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from levada.cli.app.app_file import App, QuerySource
from levada.cli.shell import shell as asking
from levada.cli.shell.shell import ask
from levada.cli.tables.answer_table import Answer
from levada.connectors.config.stream_config import StreamConfig
from levada.engine.engine import Engine

TEXT = """PREFIX : <http://e/> SELECT ?s FROM NAMED WINDOW :w ON :a [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?s :t ?o } }"""


class Finalized:
    """An interrupt comes while this is deleted."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_a_finalizer_drops_ends_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.nt").write_text("<http://e/h> <http://e/t> <http://e/o> 1000 .\n")
    dropped, wait = list[Any](), Engine.await_end

    def interrupted(engine: Engine, timeout: float | None = None) -> bool:
        if not dropped:
            Finalized()
        return wait(engine, timeout)

    monkeypatch.setattr(sys, "unraisablehook", lambda told: dropped.append(told.exc_type))
    monkeypatch.setattr(asking.Engine, "await_end", interrupted)
    stream = StreamConfig.from_options("http://e/a", tmp_path / "a.nt")
    app = App(streams=(stream,), queries=(QuerySource("q", TEXT),))
    before = signal.getsignal(signal.SIGINT)
    assert ask(app, "q", Answer("q"), once=False) == (False, [])
    assert dropped == [KeyboardInterrupt] and signal.getsignal(signal.SIGINT) is before
