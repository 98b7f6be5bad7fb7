"""A fault at any stage of a query's life ends neither the engine nor a neighbour: these report what
they report without the guilty query, over a restart.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from levada import Engine
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.status.status import read_status
from levada.errors import QueryFailureError
from support.free_ports import free_port
from support.injected_faults import BEFORE_PLANS, FAULTS, NAME, STAGES, VARIABLE, inject
from support.polling import PATIENCE, until

S = "http://e/s"
HEAD = f"PREFIX : <http://e/> SELECT %s FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT2S] "
NEIGHBOURS = {
    "joined": HEAD % "?a ?x ?y" + "WHERE { WINDOW :w { ?a :p ?x ; :q ?y } }",
    "grouped": HEAD % "?a (COUNT(?x) AS ?n)" + "WHERE { WINDOW :w { ?a :p ?x } } GROUP BY ?a",
}
BAD = HEAD % "?a ?x ?y" + "WHERE { WINDOW :w { ?a :p ?x ; :q ?y FILTER(STRLEN(STR(?x)) > 0) } }"
FORMATS = [Format.NDJSON, Format.TSV, Format.SRJ, Format.SRX, Format.ARROW, Format.PARQUET]


def write(path: Path, first: int, end: int) -> None:
    with path.open("a") as file:
        for i in range(first, end):
            file.write(f'<http://e/a{i % 9}> <http://e/p> "{i}" {100 * i} .\n')
            file.write(f'<http://e/a{i % 9}> <http://e/q> "{i % 4}" {100 * i} .\n')


NEVER, ALWAYS, ONCE = (False, False), (True, True), (True, False)
Lines = dict[str, list[Any]]


def run(folder: Path, data: Path, form: Format, bad: tuple[bool, bool]) -> Lines:
    """Two runs on a checkpoint, with the guilty query or without; the lines of the files of the
    neighbours.
    """
    data.write_text("")
    for end, guilty in zip((60, 120), bad, strict=True):
        write(data, end - 60, end)
        sink = FileSink(folder / "out", form)
        with Engine(
            spark=False, checkpoint=folder / "ck", epoch_rows=40, partitions=2, sink=sink,
            watchdog=lambda sentence: None,
        ) as engine:  # fmt: skip
            engine.stream(S, data)
            for name, text in (({NAME: BAD} if guilty else {}) | NEIGHBOURS).items():
                try:
                    engine.register(text, name=name)
                except QueryFailureError:
                    assert name == NAME
            engine.start(once=True, keep_open=True)
            engine.await_end()
    return lines_of(folder / "out")


def lines_of(folder: Path) -> Lines:
    files = [f for name in NEIGHBOURS for f in sorted((folder / name).rglob("*.*"))]
    return {str(f.relative_to(folder)): pieces(f) for f in files}


def pieces(path: Path) -> list[Any]:
    """The rows of a file of results, or the pieces of its text, in an order of their own."""
    match path.suffix:
        case ".arrow":
            return sorted(pl.read_ipc(path).rows())
        case ".parquet":
            return sorted(pl.read_parquet(path).rows())
    return sorted(re.split(rb"[\[\]{}\n<]", path.read_bytes()))


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "removal"])
def test_a_fault_at_a_stage_leaves_the_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, fault: str
) -> None:
    if (stage, fault) == ("operator", "loop"):
        pytest.skip("it ends the process: see the tests of commands")
    monkeypatch.setenv("LEVADA_WATCHDOG", "0.5")
    alone = run(tmp_path / "alone", tmp_path / "s.nt", Format.CSV, NEVER)
    inject(monkeypatch, stage, fault)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert run(tmp_path / "with", tmp_path / "s.nt", Format.CSV, ALWAYS) == alone
    assert len(alone) > 4
    if stage not in BEFORE_PLANS:
        assert any("The query bad is suspended" in str(w.message) for w in told)
        assert list(read_status(tmp_path / "with" / "ck").suspended_queries) == [NAME]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_removal_leaves_the_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setenv("LEVADA_WATCHDOG", "0.5")
    alone = run(tmp_path / "alone", tmp_path / "s.nt", Format.CSV, NEVER)
    inject(monkeypatch, "removal", fault)
    with pytest.warns(UserWarning, match=r"took queries out of the plan \(bad\)"):
        assert run(tmp_path / "with", tmp_path / "s.nt", Format.CSV, ONCE) == alone
    assert {query.name for query in read_status(tmp_path / "with" / "ck").queries} == {*NEIGHBOURS}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS)
def test_a_fault_of_a_format_leaves_the_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Format
) -> None:
    alone = run(tmp_path / "alone", tmp_path / "s.nt", form, NEVER)
    inject(monkeypatch, "format", "exception")
    with pytest.warns(UserWarning, match="The query bad is suspended"):
        assert run(tmp_path / "with", tmp_path / "s.nt", form, ALWAYS) == alone


SITE = """from pathlib import Path
from support.injected_faults import from_environment
from_environment()
Path(__file__).with_name("injected").touch()
"""
MOST_STARTS = 4


def command(folder: Path, verb: str, *more: str) -> list[str]:
    """``levada run`` or ``levada serve`` with the queries in a folder."""
    texts = sorted(path.name for path in folder.glob("*.rq"))
    return [
        sys.executable, "-m", "levada", verb, *texts, "--checkpoint", "ck", "--stream",
        f"{S}=s.nt", "--master", "none", "--epoch-rows", "40", "--out", "out", "--format", "csv",
        *more,
    ]  # fmt: skip


def prepare(folder: Path, injected: str) -> dict[str, str]:
    """Writes the queries, and gives the environment of a command in which faults are injected."""
    folder.mkdir()
    for name, text in NEIGHBOURS.items():
        (folder / f"{name}.rq").write_text(text)
    if injected:
        (folder / "bad.rq").write_text(BAD)
    (folder / "sitecustomize.py").write_text(SITE)
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": path, VARIABLE: injected, "LEVADA_WATCHDOG": "4"}


def rows_of(folder: Path) -> Lines:
    """The rows of each neighbour, in whichever files they are."""
    return {
        name: sorted(
            line
            for path in (folder / "out" / name).glob("*.csv")
            for line in path.read_bytes().splitlines()[1:]
        )
        for name in NEIGHBOURS
    }


def run_command(folder: Path, injected: str) -> list[Lines]:
    """The rows after each of two runs of ``levada run``, each started until it ends well."""
    environ, found = prepare(folder, injected), list[Lines]()
    for end in (60, 120):
        write(folder / "s.nt", end - 60, end)
        if end == 120 and injected.startswith("removal"):
            (folder / "bad.rq").unlink()
        for _ in range(MOST_STARTS):
            done = subprocess.run(
                command(folder, "run", "--once", "--keep-open"), cwd=folder, env=environ,
                capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stderr
        assert (folder / "injected").exists(), "its processes inject faults"
        found.append(rows_of(folder))
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Lines]:
    """The rows of the neighbours without the guilty query, after each of two runs."""
    rows = run_command(tmp_path_factory.mktemp("commands") / "alone", "")
    assert all(rows[0].values())
    return rows


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_fault_at_a_stage_leaves_the_neighbours_of_a_command(
    tmp_path: Path, alone: list[Lines], stage: str, fault: str
) -> None:
    assert run_command(tmp_path / stage, f"{stage} {fault}") == alone


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stage", ["parse", "install", "operator", "result", "format", "decide"])
def test_a_fault_leaves_the_neighbours_of_a_server(
    tmp_path: Path, alone: list[Lines], stage: str, fault: str
) -> None:
    folder = tmp_path / "served"
    environ = prepare(folder, f"{stage} {fault}")
    for end, wanted in zip((60, 120), alone, strict=True):
        write(folder / "s.nt", end - 60, end)
        with server(folder, environ) as (served, _):
            until(partial(has, folder, wanted), process=served)
    assert rows_of(folder) == alone[-1]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stage", ["normalize", "plan", "install", "operator", "removal"])
def test_a_fault_on_a_text_of_a_client_leaves_the_neighbours_of_a_server(
    tmp_path: Path, alone: list[Lines], stage: str, fault: str
) -> None:
    folder = tmp_path / "served"
    environ = prepare(folder, f"{stage} {fault}")
    (folder / "bad.rq").unlink()
    write(folder / "s.nt", 0, 60)
    with server(folder, environ) as (served, url):
        until(partial(has, folder, alone[0]), process=served)
        until(partial(is_up, url), process=served)
        media = {"Content-Type": "application/sparql-query"}
        answer = httpx.put(f"{url}/queries/bad", content=BAD, headers=media, timeout=PATIENCE)
        assert answer.is_success == (stage not in ("normalize", "plan", "install"))
        with suppress(httpx.HTTPError):  # the server may start again meanwhile
            httpx.delete(f"{url}/queries/bad", timeout=PATIENCE)
        write(folder / "s.nt", 60, 120)
        until(partial(has, folder, alone[1]), process=served)
    with server(folder, environ) as (served, url):
        until(partial(is_up, url), process=served)
    assert rows_of(folder) == alone[1]


def is_up(url: str) -> bool:
    """Whether the server answers."""
    with suppress(httpx.HTTPError):
        return httpx.get(f"{url}/health").is_success
    return False


@contextmanager
def server(folder: Path, environ: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """``levada serve`` with the queries in a folder, and its URL. It is to end well."""
    place = f"127.0.0.1:{free_port()}"
    with (folder / "err").open("a") as err:
        served = subprocess.Popen(
            command(folder, "serve", "--listen", place), cwd=folder, env=environ, stdout=err,
            stderr=err,
        )  # fmt: skip
        try:
            yield served, f"http://{place}"
        finally:
            served.terminate()
            assert served.wait(PATIENCE) == 0
    assert (folder / "injected").exists(), "its processes inject faults"


def has(folder: Path, wanted: Lines) -> bool:
    """Whether the neighbours have these rows."""
    return rows_of(folder) == wanted
