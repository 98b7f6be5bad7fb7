"""One damaged record between two sound ones, in every format, as a message, as a message that says
its format itself, and as a line of a file: the neighbours are read as they are without it, in
order, and the record is an element, a dead letter or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutate import cases, mutated
from test_damaged_files import SEEDS

from levada.connectors.config.input_formats import RDF, TABLES
from levada.connectors.config.message_metadata import CONTENT, MEDIA
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import Elements, elements_of
from levada.connectors.ingest.parse.message_batches import parse_messages
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.ingest.tables.tuple_rows import Tuples, tuples_of
from levada.connectors.sources.feed_log import log_file, stem_of
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.source_reader import read
from levada.connectors.sources.splits import FileSplit
from levada.connectors.sources.spooled_files import spooled_name
from levada.core.event_time import MAX
from levada.testing.stream_builders import write_rdf

MESSAGES = (*RDF, "csv", "ndjson")
LINES = ("nt", "nq", "csv", "ndjson")
BOUNDS: dict[str, Any] = {"late_below": -MAX, "future_above": MAX}
DECLARATIONS = ("UTG-8", "UTF-7", "UTF-16", "latin1", "hex", "")


def sound(form: str, k: int, folder: Path) -> bytes:
    """A record of a format with one statement, or one row."""
    subject, line = f"http://e/sound{k}", f'<http://e/sound{k}> <http://e/p> "{k}"'
    match form:
        case "csv":
            return f"{k},sound {k},{1000 + k}".encode()
        case "ndjson":
            return json.dumps({"k": k, "v": f"sound {k}", "ts": 1000 + k}).encode()
        case "rdf":
            return (
                '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
                f'xmlns:e="http://e/"><rdf:Description rdf:about="{subject}"><e:p>{k}</e:p>'
                "</rdf:Description></rdf:RDF>"
            ).encode()
        case "jsonld":
            return json.dumps({"@id": subject, "http://e/p": str(k)}).encode()
        case "jelly":
            write_rdf(folder / "one.jelly", [line])
            return (folder / "one.jelly").read_bytes()
        case "nq":
            return f"{line} <http://e/g> .".encode()
        case _:
            return f"{line} .".encode()


def damaged(form: str, seed: int, name: str, folder: Path) -> bytes:
    data = SEEDS.get(form) or sound(form, 9, folder)
    if form == "rdf" and (k := int(name.partition(" ")[2]) % 10) < len(DECLARATIONS):
        return (
            b'<?xml version="1.0" encoding="%b"?>' % DECLARATIONS[k].encode()
            + data.partition(b"?>")[2]
        )
    return mutated(seed, name, data)


def config_of(form: str, **options: Any) -> StreamConfig:
    if form in TABLES:
        options["schema"] = "k:integer;v:string;ts:integer"
    return StreamConfig.from_options(
        "s", "ws://127.0.0.1/x", format=form, time="arrival", **options
    )


def statements(triples: Triples) -> list[tuple[str, ...]]:
    columns = [c for c in (triples.s, triples.p, triples.o) if c is not None]
    return [tuple(triples.text(c, row) for c in columns) for row in range(triples.n)]


def outcome(
    config: StreamConfig,
    folder: Path,
    payloads: Sequence[bytes],
    headers: Sequence[Sequence[tuple[str, str]]],
) -> tuple[list[tuple[str, ...]], Elements | Tuples]:
    """What messages of a log are read as: statements or rows, and what became of them."""
    n = len(payloads)
    data = log_file(payloads, [1000] * n, ["t"] * n, headers, [""] * n, note="")
    path = folder / spooled_name(stem_of(0, n), ".parquet", data)
    path.write_bytes(data)
    reference = FileSplit("s", "s", path.name, str(path), config.format, 0, n, 0, 1, n)
    found = read(reference, config)
    assert found.messages is not None
    if found.rows is not None:
        tuples = tuples_of(found.rows, config, found.reference, messages=found.messages, **BOUNDS)
        texts, numbers = tuples.columns["v"].text, tuples.columns["k"].man
        assert texts is not None and numbers is not None
        return list(zip(map(str, numbers), texts.to_list(), strict=True)), tuples
    assert found.text is not None
    triples, text, messages = parse_messages(found.text, found.messages, found.reference, config, 1)
    elements = elements_of(triples, config, text, seed=1, messages=messages, **BOUNDS)
    return statements(triples), elements


def fates(found: Elements | Tuples) -> int:
    """Of how many messages it is known what became of them."""
    kept = found.n if isinstance(found, Tuples) else found.elements
    return kept + len(found.dead) - found.alone + found.blank


def check_neighbours(
    config: StreamConfig,
    folder: Path,
    records: Sequence[bytes],
    headers: Sequence[Sequence[tuple[str, str]]] = ((), (), ()),
) -> None:
    alone, _ = outcome(config, folder, [records[0], records[2]], [headers[0], headers[2]])
    together, found = outcome(config, folder, records, headers)
    assert len(alone) == 2, "sound records are read"
    assert [row for row in together if row in alone] == alone, together
    assert (together[0], together[-1]) == (alone[0], alone[1])
    assert fates(found) == 3, found
    assert all(dead.offset == 1 for dead in found.dead), found.dead


@pytest.mark.parametrize("form", MESSAGES)
def test_damaged_messages(tmp_path: Path, seed: int, form: str) -> None:
    first, last = (sound(form, k, tmp_path) for k in (1, 2))
    for k in range(cases("records", 3 * len(MESSAGES))):
        name = f"{form} {k}"
        with told(seed, name):
            middle = damaged(form, seed, name, tmp_path)
            check_neighbours(config_of(form), tmp_path, [first, middle, last])


@pytest.mark.parametrize("form", RDF)
def test_damaged_messages_that_say_their_format(tmp_path: Path, seed: int, form: str) -> None:
    """In a stream of any format of RDF."""
    medias = {said: media for media, said in MEDIA.items()}
    for k in range(cases("records", 3 * len(RDF))):
        name = f"{form} {k}"
        with told(seed, name):
            stream = RDF[k % len(RDF)]
            first, last = (sound(stream, n, tmp_path) for n in (1, 2))
            middle = damaged(form, seed, name, tmp_path)
            header = ((CONTENT, medias[form]),)
            check_neighbours(config_of(stream), tmp_path, [first, middle, last], ((), header, ()))


@pytest.mark.parametrize("form", LINES)
def test_damaged_lines(tmp_path: Path, seed: int, form: str) -> None:
    first, last = (sound(form, k, tmp_path) for k in (1, 2))
    config = replace(config_of(form, element="line"), feed=None)
    for k in range(cases("records", 3 * len(LINES))):
        name = f"{form} {k}"
        with told(seed, name):
            middle = damaged(form, seed, name, tmp_path)
            for end in (b"\n", b"\r"):
                middle = middle.replace(end, b" ")
            data = np.frombuffer(b"\n".join([first, middle, last, b""]), np.uint8)
            check_lines(config, data, form)


def check_lines(config: StreamConfig, data: np.ndarray[Any, Any], form: str) -> None:
    reference = FileSplit("s", "s", "a", "a", form, 0, len(data), 0, 1, 3)
    if form in TABLES:
        chunk = CsvChunk(("k", "v", "ts"), data) if form == "csv" else JsonChunk(data)
        tuples = tuples_of(chunk, config, reference, **BOUNDS)
        texts = tuples.columns["v"].text
        assert texts is not None
        rows = texts.to_list()
        assert (rows[0], rows[-1]) == ("sound 1", "sound 2")
        assert len(rows) + len(tuples.dead) in (2, 3)
        return
    triples = parse(data, quads=form == "nq", timed=False, seed=1, document=1)
    found = statements(triples)
    assert (found[0][0], found[-1][0]) == ("<http://e/sound1>", "<http://e/sound2>")
    assert triples.n + len(triples.bad) in (2, 3)


@contextmanager
def told(seed: int, name: str) -> Iterator[None]:
    """A failure says by what it is made again."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"LEVADA_SEED={seed}, {name}")
        raise
