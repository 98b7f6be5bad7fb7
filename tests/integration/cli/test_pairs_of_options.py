"""Each pair of options that change how a run starts: the run is right, or it is refused with a
sentence before anything is written.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from levada.checkpoint.leadership.heartbeat import LeaderWatch
from levada.cli.app.signals import Stopped
from levada.cli.main import main
from levada.connectors.sinks import sink_url
from support.file_sink import SCHEME, FileTarget

QUERY = """PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) (MAX(?v) AS ?most)
FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S] WHERE { WINDOW :w { ?x :v ?v } }"""
START = {
    "--once": "", "--keep-open": "", "--standby": "", "--lease": "3s", "--accept-changes": "",
    "--watch": "", "--keep": "1h", "--overwrite": "", "--out": "results", "--checkpoint": "state",
    "--to": f"q={SCHEME}delivered",
}  # fmt: skip
OTHERS = {
    "--as": "state", "--times": "iso", "--format": "csv", "--roll": "1s", "--terms": "",
    "--summary": "summary.json", "--checkpoint-mode": "group", "--epoch": "0",
    "--epoch-rows": "5", "--delay": "250ms", "--max-rows": "100k", "--limits": "reports=100",
    "--memory": "512MB", "--partitions": "2", "--slice": "1d", "--place": "off", "--pin": "off",
    "--sharing": "exact", "--until": "5000", "--empty-reports": "",
}  # fmt: skip
PAIRS = [*itertools.combinations(START, 2)]
FURTHER = [p for p in itertools.combinations({**START, **OTHERS}, 2) if p not in PAIRS]


def stopping(*, at_once: bool) -> Callable[[Path | None], AbstractContextManager[Stopped]]:
    """What makes a run end as soon as it has begun, if ``at_once``."""

    @contextmanager
    def stopped_by_signals(_: Path | None) -> Iterator[Stopped]:
        stopped = Stopped()
        if at_once:
            stopped.set()
        yield stopped

    return stopped_by_signals


def quick_watch(root: Path, lease: float, clock: Callable[[], float]) -> LeaderWatch:
    """A standby's watch whose clock goes a hundred times as fast."""
    return LeaderWatch(root, lease, lambda: 100 * clock())


def argued(pair: tuple[str, ...]) -> list[str]:
    every = {**START, **OTHERS}
    return [word for option in pair for word in (option, every[option]) if word]


@pytest.fixture(autouse=True)
def _job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    lines = [f"<http://e/a> <http://e/v> {typed.format(k)} {500 * k} .\n" for k in range(20)]
    (tmp_path / "s.nt").write_text("".join(lines))
    (tmp_path / "q.rq").write_text(QUERY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sink_url._MAKERS, SCHEME, FileTarget.from_url)
    monkeypatch.setitem(sink_url.OPTIONS, SCHEME, FileTarget.OPTIONS)
    monkeypatch.setattr("levada.cli.app.standby.LeaderWatch", quick_watch)


def fault_of(pair: tuple[str, ...], folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """What is wrong with a run of the job with a pair of options; "" if nothing is."""
    ending = stopping(at_once="--once" not in pair)
    before = set(folder.rglob("*"))
    base = ["run", "q.rq", "--stream", "http://e/s=s.nt", "--master", "none", "--no-progress"]
    with mock.patch("levada.cli.app.run_app.stopped_by_signals", ending):
        code = main([*base, *argued(pair)])
    out, err = capfd.readouterr()
    if code not in (0, 2) or "Traceback" in err:
        return f"{pair} ended with {code}: {err}"
    written = set(folder.rglob("*")) - before
    if code == 2:
        refused = err.startswith("levada: ") and not written
        return "" if refused else f"{pair} wrote {written} and was refused: {err}"
    files = [*(folder / "results").rglob("*"), folder / "delivered"]
    found = out.encode() + b"".join(path.read_bytes() for path in files if path.is_file())
    right = b"7" in found or "--once" not in pair  # the most of the report 4000
    return "" if right else f"{pair} has no results: {found!r} {err}"


def faults(pairs: list[tuple[str, ...]], folder: Path, capfd: Any) -> list[str]:
    """The faults of all pairs, each in a folder of its own."""
    found = []
    for k, pair in enumerate(pairs):
        (here := folder / str(k)).mkdir()
        for name in ("s.nt", "q.rq"):
            (here / name).write_bytes((folder / name).read_bytes())
        os.chdir(here)
        found.append(fault_of(pair, here, capfd))
    return [fault for fault in found if fault]


LONG = pytest.mark.long
MORE = {"alone": (), "once": ("--checkpoint", "--once"), "on": ("--checkpoint",)}


@pytest.mark.parametrize("more", ["once", *(pytest.param(m, marks=LONG) for m in ("alone", "on"))])
def test_options_of_the_start(tmp_path: Path, capfd: pytest.CaptureFixture[str], more: str) -> None:
    combined = {tuple(dict.fromkeys((*pair, *MORE[more]))) for pair in PAIRS}
    assert faults(sorted(combined), tmp_path, capfd) == []


@pytest.mark.long
@pytest.mark.parametrize("more", ["alone", "once"])
def test_other_options(tmp_path: Path, capfd: pytest.CaptureFixture[str], more: str) -> None:
    combined = {tuple(dict.fromkeys((*pair, *MORE[more]))) for pair in FURTHER}
    assert faults(sorted(combined), tmp_path, capfd) == []
