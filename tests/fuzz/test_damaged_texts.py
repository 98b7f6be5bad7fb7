"""Damaged query texts, mapping files, app files and options: each is taken, or refused with a
sentence. What is taken also runs: it gives results, or its refusal is a sentence, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutate import cases, mutated, respelled
from seeds import APP, MAPPING, OPTIONS, QUERIES

from levada.cli.app.app_file import App, QuerySource, load_app, read_query
from levada.cli.app.prepare_queries import known_to, prepare_app
from levada.cli.argument_parsing import parse_stream
from levada.connectors.config.mapping_file import load_mapping
from levada.connectors.config.stream_config import StreamConfig
from levada.engine.engine import Engine
from levada.errors import LevadaError, QueryError

ERROR = re.compile("[a-z]Error|PanicException|Traceback|object has no attribute")  # no sentence
PATIENCE = 600  # s: what takes longer does not end
ENOUGH = 3  # seconds after which a run is stopped: what a query of few rows makes may be much
XSD = "<http://www.w3.org/2001/XMLSchema#"
LINES = "".join(
    f'<http://e/a{i % 2}> <http://e/{"pqr"[i % 3]}> "{i}"^^{XSD}integer> {1000 + 500 * i} .\n'
    for i in range(12)
)
TABLE = "k,v,n,ts,road,speed,at\n" + "".join(
    f"{i % 3},{i}.5,x{i},{1000 + 500 * i},A {i},{i},{1000 * i}\n" for i in range(12)
)
GRAPH = '<http://e/a0> <http://e/q> <http://e/a1> .\n<http://e/a1> <http://e/r> "x"@en .\n'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "a.nt").write_text(LINES)
    (tmp_path / "b.csv").write_text(TABLE)
    (tmp_path / "g.nt").write_text(GRAPH)
    (tmp_path / "map.yaml").write_text(MAPPING)
    return tmp_path


def tried(what: Callable[[], Any], told: str) -> Any:
    """What comes of it, or None where it is refused with a sentence."""
    began = time.monotonic()
    try:
        found = what()
    except LevadaError as error:
        _check_sentence(error, told)
        found = None
    except BaseException as error:
        error.add_note(told)
        raise
    assert time.monotonic() - began < PATIENCE, told
    return found


def _check_sentence(error: LevadaError, told: str) -> None:
    assert len(error.message.split()) > 2, (told, error.message)
    assert error.message.rstrip()[-1] in ".?!", (told, error.message)
    assert not ERROR.search(str(error)), (told, str(error))
    if isinstance(error, QueryError) and error.span is not None and error.text:
        lines = error.text.split("\n")
        assert 1 <= error.span.line <= len(lines), told
        assert 1 <= error.span.column <= len(lines[error.span.line - 1]) + 1, told


def run(root: Path, streams: list[StreamConfig], queries: list[QuerySource]) -> None:
    """A run of what was taken, which is stopped if it makes too much."""
    with Engine(spark=False, letters=root / "letters", partitions=1, max_rows=100_000) as engine:
        for config in streams:
            engine.stream(config.name, config)
        engine.static(str(root / "g.nt"))
        engine.static(str(root / "g.nt"), graph="http://e/g")
        for query in queries:
            engine.register(query.text, name=query.name, dialect=query.dialect)
        engine.start(once=True)
        if not engine.await_end(ENOUGH):
            engine.stop()


@pytest.mark.parametrize("dialect", QUERIES)
def test_damaged_queries(data: Path, seed: int, dialect: str) -> None:
    stream = (
        StreamConfig.from_options("S", data / "b.csv", schema="k:integer;v:double;n:string")
        if dialect == "cql"
        else StreamConfig.from_options("http://e/S", data / "a.nt")
    )
    taken = 0
    for k in range(cases("queries", len(QUERIES))):
        name = f"{dialect}{k}"
        told = f"LEVADA_SEED={seed}, {name}"
        path = data / f"{name}.rq"
        if k % 4:
            path.write_text(respelled(seed, name, QUERIES[dialect]), encoding="utf-8")
        else:
            chosen = QUERIES[dialect][k // 4 % len(QUERIES[dialect])]
            path.write_bytes(mutated(seed, name, chosen.encode()))
        query = tried(lambda path=path: read_query(path, dialect), told)  # type: ignore[misc]
        if query is not None and tried(lambda q=query: plan(stream, q), told):  # type: ignore[misc]
            taken += 1
            if not taken % 5:
                tried(lambda q=query: run(data, [stream], [q]), told)  # type: ignore[misc]
        path.unlink()


def plan(stream: StreamConfig, query: QuerySource) -> bool:
    """Whether a query has a plan."""
    app = App(streams=(stream,), queries=(query,))
    known = known_to(app)
    known.graphs = None
    return all(prepared.physical for prepared in prepare_app(app, known))


def test_damaged_mappings(data: Path, seed: int) -> None:
    query = QuerySource(
        "q", "SELECT * FROM NAMED WINDOW <w> ON <S> [RANGE 1s STEP 1s] { WINDOW <w> { ?s ?p ?o } }"
    )
    path = data / "drawn.yaml"
    for k in range(cases("settings", 3)):
        name = f"mapping{k}"
        told = f"LEVADA_SEED={seed}, {name}"
        _write(path, seed, name, MAPPING)
        if tried(lambda: load_mapping(path).types(), told) is not None:
            config = tried(
                lambda: StreamConfig.from_options("S", data / "b.csv", mapping=path), told
            )
            if config is not None:
                tried(lambda c=config: run(data, [c], [query]), told)  # type: ignore[misc]


def test_damaged_app_files(data: Path, seed: int) -> None:
    path = data / "app.yaml"
    (data / "hot.rq").write_text(QUERIES["rspql"][0].replace(":S", ":temp"))
    (data / "rooms.ttl").write_text(GRAPH)
    (data / "more.nq").write_text(GRAPH)
    for k in range(cases("settings", 3)):
        name = f"app{k}"
        told = f"LEVADA_SEED={seed}, {name}"
        _write(path, seed, name, APP)
        app = tried(lambda: load_app(path), told)
        if app is not None:
            tried(lambda a=app: _look_at(a), told)  # type: ignore[misc]


def _look_at(app: App) -> None:
    app.check_output()
    for query in prepare_app(app, known_to(app)):
        assert query.physical is not None


def test_damaged_stream_options(data: Path, seed: int) -> None:
    query = (
        "SELECT * FROM NAMED WINDOW <w> ON <{}> [RANGE 1s STEP 1s] {{ WINDOW <w> {{ ?s ?p ?o }} }}"
    )
    for k in range(cases("settings", 3)):
        name = f"option{k}"
        told = f"LEVADA_SEED={seed}, {name}"
        texts = [text.format(data, data) for text in OPTIONS]
        if k % 2:
            text = respelled(seed, name, texts)
        else:
            text = mutated(seed, name, texts[k // 2 % len(texts)].encode()).decode(
                "utf-8", "replace"
            )
        config = tried(lambda t=text: parse_stream(t), f"{told}: {text}")  # type: ignore[misc]
        if config is not None and config.path.startswith(str(data)):
            asked = QuerySource("q", query.format(config.name))
            tried(lambda c=config, a=asked: run(data, [c], [a]), f"{told}: {text}")  # type: ignore[misc]


def _write(path: Path, seed: int, name: str, text: str) -> None:
    """A damaged text, in half of the cases by words."""
    if int(re.sub(r"\D", "", name)) % 2:
        path.write_text(respelled(seed, name, [text]), encoding="utf-8")
    else:
        path.write_bytes(mutated(seed, name, text.encode()))
