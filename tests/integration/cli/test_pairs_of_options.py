"""Each pair of options that change how a run or a server starts, in an app file too and after a
checkpoint was restored or rolled back: results are right, or the start is refused with a sentence
before anything is written.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer

from levada.checkpoint.leadership.heartbeat import LeaderWatch
from levada.cli.app.signals import Stopped
from levada.cli.main import app, main
from levada.connectors.sinks import sink_url
from levada.engine.status.status import read_status
from levada.errors import LevadaError
from support.file_sink import SCHEME, FileTarget, held

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
    "--memory": "512MB", "--partitions": "2", "--slice": "1d", "--place": "off",
    "--sharing": "exact", "--until": "5000", "--empty-reports": "", "--balance": "on",
    "--bounds": "[)", "--close": "", "--entailment": "rdfs", "--join": "multiway",
    "--lifetime": "1h", "--max-future": "1h", "--report": "periodic:1s", "--strict": "",
    "--t0": "0",
}  # fmt: skip
SERVE = {
    "--read-only": "state", "--tokens": "tokens", "--keep": "1h", "--out": "results",
    "--overwrite": "", "--checkpoint": "state", "--accept-changes": "", "--until": "5000",
    "--memory": "512MB", "--checkpoint-mode": "group", "--bounds": "[)", "--delay": "250ms",
    "--empty-reports": "", "--entailment": "rdfs", "--epoch": "0", "--epoch-rows": "5",
    "--format": "csv", "--lifetime": "1h", "--limits": "reports=100", "--max-future": "1h",
    "--max-rows": "100k", "--partitions": "2", "--report": "periodic:1s", "--t0": "0",
    "--allow-origin": "https://a.org",
}  # fmt: skip
INPUTS = {
    "--app", "--context", "--debug", "--dialect",
    "--letters-to", "--listen", "--master", "--ontology",
    "--progress", "--region", "--regions", "--spark-conf", "--static", "--stream", "--table",
}  # fmt: skip
"""Options that name what a start reads and where it runs."""
AGAIN = SERVE.keys() - {"--until"}
"""Options of a server that goes on. It refuses an end in the past after the open epoch."""
CHANGES = {"--empty-reports", "--format", "--lifetime", "--report", "--t0"}
"""Options with which a query has other results."""
EVERY = {**OTHERS, **SERVE, **START}
IN_A_FILE = {"--out", "--checkpoint", "--to", *OTHERS} - {"--times", "--partitions"}
FILES = ["q.rq", "--stream", "http://e/s=s.nt"]
LINES = [
    f'<http://e/a> <http://e/v> "{k}"^^<http://www.w3.org/2001/XMLSchema#integer> {500 * k} .\n'
    for k in range(20)
]
PAIRS = [*itertools.combinations(START, 2)]
FURTHER = [p for p in itertools.combinations({**START, **OTHERS}, 2) if p not in PAIRS]
BESIDE = [(w, s) for w in START if w in IN_A_FILE for s in START]
BESIDE_MORE = [(w, s) for w in EVERY if w in IN_A_FILE for s in (*START, *OTHERS)]
BESIDE_MORE = [pair for pair in BESIDE_MORE if pair not in BESIDE]
SERVED = [(base, option, "--checkpoint") for base in ("--app", "") for option in SERVE]
SERVED_MORE = [(base, *pair) for base in ("--app", "") for pair in itertools.combinations(SERVE, 2)]


class AllRead(Stopped):
    """Stops a server when it has read the job's stream."""

    def is_set(self) -> bool:
        with suppress(LevadaError, OSError):  # there is no checkpoint yet
            self._set |= any(
                s.elements == len(LINES) for s in read_status(Path("state")).streams.values()
            )
        return super().is_set()


def stopping(stopped: Stopped) -> Callable[[Path | None], AbstractContextManager[Stopped]]:
    """What makes a run end when ``stopped`` is set."""

    @contextmanager
    def stopped_by_signals(_: Path | None) -> Iterator[Stopped]:
        yield stopped

    return stopped_by_signals


def at_once() -> Stopped:
    """A flag that makes a run end as soon as it has begun."""
    stopped = Stopped()
    stopped.set()
    return stopped


def quick_watch(root: Path, lease: float, clock: Callable[[], float]) -> LeaderWatch:
    """A standby's watch whose clock goes a hundred times as fast."""
    return LeaderWatch(root, lease, lambda: 100 * clock())


def argued(pair: tuple[str, ...]) -> list[str]:
    return [word for option in pair for word in (option, EVERY[option]) if word]


def app_file(written: tuple[str, ...]) -> str:
    """An app file of the job that holds these options."""
    query = {"file": "q.rq", **({"to": f"{SCHEME}delivered"} if "--to" in written else {})}
    options = {
        option[2:].replace("-", "_"): EVERY[option] or True
        for option in written
        if option != "--to"
    }
    return json.dumps(
        {"streams": {"http://e/s": {"path": "s.nt"}}, "queries": {"q": query}, "options": options}
    )


@pytest.fixture(autouse=True)
def _job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.nt").write_text("".join(LINES))
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "tokens").touch(0o600)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sink_url._MAKERS, SCHEME, FileTarget.from_url)
    monkeypatch.setitem(sink_url.OPTIONS, SCHEME, FileTarget.OPTIONS)
    monkeypatch.setattr("levada.cli.app.run_app.LeaderWatch", quick_watch)


def fault_of(
    pair: tuple[str, ...],
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    base: tuple[str, ...] = ("run", *FILES),
    stopped: Stopped | None = None,
) -> str:
    """What is wrong with a run of the job with a pair of options; "" if nothing is."""
    reads_all = "--once" in pair or isinstance(stopped, AllRead)
    ending = stopping(Stopped() if "--once" in pair else stopped or at_once())
    before = set(folder.rglob("*"))
    more = ["--listen", "127.0.0.1:0"] if base[0] == "serve" else []
    engine = [] if "--read-only" in pair else ["--master", "none", "--no-progress"]
    with mock.patch("levada.cli.app.run_app.stopped_by_signals", ending):
        code = main([*base, *engine, *more, *argued(pair)])
    out, err = capfd.readouterr()
    if code not in (0, 2) or "Traceback" in err:
        return f"{base} {pair} ended with {code}: {err}"
    written = set(folder.rglob("*")) - before
    if code == 2:
        refused = err.startswith("levada: ") and not written
        return "" if refused else f"{base} {pair} wrote {written} and was refused: {err}"
    files = [*(folder / "results").rglob("*"), folder / "delivered"]
    found = out.encode() + b"".join(path.read_bytes() for path in files if path.is_file())
    shows = base[0] == "run" or (folder / "results").exists()
    right = b"7" in found or not reads_all or not shows  # the most of the report 4000
    return "" if right else f"{base} {pair} has no results: {found!r} {err}"


def copied(folder: Path, name: str) -> Path:
    """A new folder with the files of the job, which becomes the working directory."""
    (here := folder / name).mkdir()
    for file in ("s.nt", "q.rq", "tokens"):
        shutil.copy2(folder / file, here)
    os.chdir(here)
    return here


def faults(pairs: list[tuple[str, ...]], folder: Path, capfd: Any) -> list[str]:
    """The faults of all pairs, each in a folder of its own."""
    found = [fault_of(pair, copied(folder, str(k)), capfd) for k, pair in enumerate(pairs)]
    return [fault for fault in found if fault]


@pytest.mark.parametrize(
    ("command", "table"), [("run", {*START, *OTHERS}), ("serve", set(SERVE))], ids=["run", "serve"]
)
def test_the_table_has_each_option(command: str, table: set[str]) -> None:
    parameters = typer.main.get_group(app).commands[command].params
    options = {word for each in parameters for word in each.opts if word.startswith("--")}
    assert options - INPUTS == table


LONG = pytest.mark.long
MORE = {"alone": (), "once": ("--checkpoint", "--once"), "on": ("--checkpoint",)}


@pytest.mark.long
@pytest.mark.parametrize("more", ["once", *(pytest.param(m, marks=LONG) for m in ("alone", "on"))])
def test_options_of_the_start(tmp_path: Path, capfd: pytest.CaptureFixture[str], more: str) -> None:
    combined = {tuple(dict.fromkeys((*pair, *MORE[more]))) for pair in PAIRS}
    assert faults(sorted(combined), tmp_path, capfd) == []


@pytest.mark.long
@pytest.mark.parametrize("more", ["alone", "once"])
def test_other_options(tmp_path: Path, capfd: pytest.CaptureFixture[str], more: str) -> None:
    combined = {tuple(dict.fromkeys((*pair, *MORE[more]))) for pair in FURTHER}
    assert faults(sorted(combined), tmp_path, capfd) == []


@pytest.mark.long
@pytest.mark.parametrize("pairs", [BESIDE, pytest.param(BESIDE_MORE, marks=LONG)])
def test_an_option_in_an_app_file_and_another_at_its_side(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], pairs: list[tuple[str, str]]
) -> None:
    found = []
    for k, (written, said) in enumerate(pairs):
        here = copied(tmp_path, str(k))
        (here / "app.yaml").write_text(app_file(("--checkpoint", written)))
        pair = tuple(dict.fromkeys((said, "--once")))
        found.append(fault_of(pair, here, capfd, ("run", "--app", "app.yaml")))
    assert [fault for fault in found if fault] == []


@pytest.mark.long
@pytest.mark.parametrize("pairs", [SERVED, pytest.param(SERVED_MORE, marks=LONG)])
def test_options_of_a_server(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], pairs: list[tuple[str, ...]]
) -> None:
    found = []
    for k, (base, *pair) in enumerate(pairs):
        here = copied(tmp_path, str(k))
        (here / "app.yaml").write_text(app_file(("--to", "--out")))
        start = ("--app", "app.yaml") if base == "--app" else FILES
        found.append(fault_of(tuple(pair), here, capfd, ("serve", *start), AllRead()))
    assert [fault for fault in found if fault] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("base", "option"),
    [*itertools.product(("run", "--app"), START), *itertools.product(("serve",), sorted(AGAIN))],
)
@pytest.mark.parametrize("way", ["rolled back", "restored"])
def test_each_option_after_a_checkpoint_went_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], way: str, base: str, option: str
) -> None:
    """Results in files and in a target are those of a run that nothing happened to, unless the
    option changes the query.
    """
    always = ("--checkpoint", "--out", "--to", "--once")
    whole = copied(tmp_path, "whole")
    assert fault_of(always, whole, capfd) == ""
    here = copied(tmp_path, "here")
    for count in (9, 14):
        (here / "s.nt").write_text("".join(LINES[:count]))
        assert fault_of((*always, "--keep-open", "--epoch-rows"), here, capfd) == ""
        if count == 9:
            shutil.copytree("state", "copy")
    if way == "restored":
        shutil.rmtree("state")
        Path("copy").rename("state")
    else:
        assert main(["rollback", "state"]) == 0
    with (here / "s.nt").open("a") as file:
        file.write("".join(LINES[14:]))
    (here / "app.yaml").write_text(app_file(always[:3]))
    pair = tuple(dict.fromkeys((option, "--once")))
    if base == "serve":
        assert fault_of((option,), here, capfd, ("serve", "--app", "app.yaml"), AllRead()) == ""
    elif base == "--app":
        assert fault_of(pair, here, capfd, ("run", "--app", "app.yaml")) == ""
    else:
        assert fault_of(tuple(dict.fromkeys((option, *always))), here, capfd) == ""
    if option in CHANGES:
        return
    assert fault_of(always, here, capfd) == "", "a later run ends the windows"
    assert lines_of(here) == lines_of(whole)


def lines_of(folder: Path) -> tuple[list[str], list[str]]:
    """The lines of results in files and in the target."""
    files = sorted((folder / "results" / "q").glob("*.ndjson"))
    return sorted("".join(f.read_text() for f in files).splitlines()), held(
        folder / "delivered"
    ).lines
