"""A second signal ends a run that is in the middle of an epoch without end."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from levada.cli.app.signals import stopped_by_signals
from support.polling import PATIENCE, until

SLOW = r"""PREFIX : <http://e/>
SELECT ?o FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?s :p ?o } FILTER(REGEX(?o, "^((a|aa)+)\\1$")) }
"""
RUN = """
import os, signal, sys
set_handler = signal.signal
def told(number, handler):  # says when a signal has been taken
    def taken(*given):
        handler(*given)
        os.write(1, b"taken\\n")
    return set_handler(number, taken if callable(handler) else handler)
signal.signal = told
from levada.cli.app.run_app import run_app
from levada.cli.app_builder import CommandArguments, assemble
app = assemble(CommandArguments(queries=("slow.rq",), streams=("http://e/s=s.nt",)))
print("run", flush=True)
run_app(app, once=False, keep_open=False, overwrite=False, spark=False)
"""


def slow(folder: Path) -> None:
    """A query and elements whose epoch takes a second an element."""
    (folder / "slow.rq").write_text(SLOW)
    lines = [f'<http://e/a> <http://e/p> "{"a" * (61 + 2 * i)}" {i} .\n' for i in range(500)]
    (folder / "s.nt").write_text("".join(lines) + '<http://e/a> <http://e/p> "" 9000 .\n')
    (folder / "tmp").mkdir()


@pytest.mark.long
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(tmp_path: Path, second: Any) -> None:
    slow(tmp_path)
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    given: Any = {"cwd": tmp_path, "env": environment, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", RUN], **given) as process:
        process.stdout.readline()
        opened = tmp_path / "tmp"
        until(lambda: list(opened.glob("levada-*/intentions/open")), process=process)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"taken\n"
        assert process.poll() is None, "the first signal finishes the epoch, which takes minutes"
        process.send_signal(second)
        process.wait(timeout=PATIENCE)
        assert process.returncode == 128 + second
    assert list(opened.iterdir()) == [], "the temporary checkpoint is gone"


class Finalized:
    """A signal comes while this is deleted, where Python drops what is raised."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_a_signal_is_seen_wherever_it_comes() -> None:
    with stopped_by_signals(None) as stopped:
        assert not stopped.wait(0)
        Finalized()
        assert stopped.wait(PATIENCE)


def test_a_signal_that_comes_amid_a_wait_is_seen() -> None:
    """An event of threading has a lock, for which a handler would wait that runs amid its wait."""

    with stopped_by_signals(None) as stopped:
        before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            assert stopped.wait(PATIENCE)
        finally:
            signal.signal(signal.SIGALRM, before)
