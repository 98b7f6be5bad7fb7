"""Every format with every kind of term: what a format cannot hold is a dead letter of its output,
and the results beside it are written.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyoxigraph as ox
import pytest

import levada
from levada.connectors.serialization import encode_batch as emission
from levada.connectors.serialization.encode_batch import contents
from levada.connectors.serialization.result_formats import Format, fitting
from levada.connectors.serialization.serialize import Batch
from levada.connectors.serialization.unwritable_results import Unwritable, without_unwritable
from levada.connectors.sinks.file_sink import FileSink
from levada.connectors.sinks.kafka_sink import messages
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.connectors.sinks.transactional_sink import Piece, Position
from levada.core.query_model import Form, Output

XSD, RDF = "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
DIRECTED, TAGLESS = '"x"@ar--rtl', f'"x"^^<{RDF}langString>'  # no query makes the first
TERMS = (
    "<http://e/o>", "<http://e/\u00e9?a=b&c>", "_:b", '""', '"plain"', '"x"@en', '"x"@en-US',
    TAGLESS, f'"x"^^<{RDF}dirLangString>', f'"<r>&amp;]]>"^^<{RDF}HTML>',
    f'"{{}}"^^<{RDF}JSON>', f'"{{"^^<{RDF}JSON>', '"x"^^<http://e/type>',
    f'"1"^^<{XSD}integer>', f'"{"9" * 400}"^^<{XSD}integer>', f'"x"^^<{XSD}integer>',
    f'"1.{"1" * 50}"^^<{XSD}decimal>', f'"1e400"^^<{XSD}double>', f'"NaN"^^<{XSD}double>',
    f'"true"^^<{XSD}boolean>', f'"99999-01-01T00:00:00Z"^^<{XSD}dateTime>',
    f'"-0001-01-01T00:00:00Z"^^<{XSD}dateTime>', f'"2020-01-01T00:00:00Z"^^<{XSD}dateTime>',
    f'"2020-02-30"^^<{XSD}date>', f'"P1Y"^^<{XSD}duration>',
    '"a\\u0000b"', '"a\\u0001b"', '"a\ufffeb"', '"a\uffffb"', '"a\ufeffb"',
    '"a\\r\\n\\t\\"\\\\,;|b"', '"\U0001f600"', f'"{"x" * 100_000}"',
)  # fmt: skip
SOUND = [f'"sound {k}"' for k in range(4)]
FORMATS = list(Format)
QUERY = """SELECT ?s ?o FROM NAMED WINDOW <w> ON <s> [RANGE 1s STEP 1s]
WHERE { WINDOW <w> { ?s <http://e/p> ?o } }"""

CONSTRUCT = f"""CONSTRUCT {{ ?s <http://e/p> ?o }}
FROM NAMED WINDOW <w> ON <s> [RANGE 1s STEP 1s]
WHERE {{ WINDOW <w> {{ ?s <http://e/p> ?v }}
    BIND(IF(?v = "5", STRDT(?v, <{RDF}langString>), ?v) AS ?o) }}"""


def solutions(objects: list[str]) -> Batch:
    report = np.repeat([1000, 2000], [2, len(objects) - 2])
    return Batch(report, columns={"o": pl.Series(objects)})


def graphs(objects: list[str]) -> Batch:
    lines = [f"<http://e/s{k}> <http://e/p> {o} .\n" for k, o in enumerate(objects)]
    texts = ["".join(lines[:2]), "".join(lines[2:])]
    return Batch(np.array([1000, 2000]), Form.CONSTRUCT, graphs=pl.Series(texts))


def batch(form: Form, objects: list[str]) -> Batch:
    return graphs(objects) if form is Form.CONSTRUCT else solutions(objects)


def written(form: Format, made: Batch) -> list[bytes]:
    variables = () if made.form is Form.CONSTRUCT else ("o",)
    return [data for _, data in contents(form, "q", variables, made, lambda s: [(0, len(s))])]


@pytest.mark.parametrize("form", [Form.SELECT, Form.CONSTRUCT])
@pytest.mark.parametrize("chosen", FORMATS)
def test_every_kind_of_term_is_written_or_a_dead_letter(
    tmp_path: Path, chosen: Format, form: Form
) -> None:
    if chosen not in fitting(form, Output.RSTREAM):
        pytest.skip("the format is not for such results")
    refused = set()
    variables = () if form is Form.CONSTRUCT else ("o",)
    for term in TERMS:
        sink = FileSink(tmp_path, chosen)
        sink.publish("q", variables, 7, batch(form, [*SOUND[:3], term, SOUND[3]]))
        whole = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("q/*")))
        for path in tmp_path.glob("q/*"):
            path.unlink()
        if sink.unwritable:
            refused.add(term)
            (found,) = sink.unwritable
            assert (found.report, found.form, found.query) == (2000, chosen, "q")
            assert term in found.text
            assert found.reason
            rest = batch(form, SOUND)
            rest = (
                Batch(np.array([1000, 1000, 2000, 2000]), columns=rest.columns)
                if (form is Form.SELECT)
                else Batch(
                    rest.report,
                    Form.CONSTRUCT,
                    graphs=pl.Series(
                        [text.replace("e/s3>", "e/s4>") for text in rest.graphs.to_list()]
                    ),
                )
            )
            assert whole == b"".join(written(chosen, rest))
        elif chosen not in (Format.ARROW, Format.PARQUET, Format.JELLY):
            assert all(f"sound {k}".encode() in whole for k in range(4)), term
    tagless = {TAGLESS, f'"x"^^<{RDF}dirLangString>'}
    assert refused == (tagless if chosen in (Format.JSONLD, Format.JELLY) else set())


def test_a_report_of_nothing_else_has_no_file(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, Format.SRX)
    made = Batch(np.array([1000, 2000]), columns={"o": pl.Series([DIRECTED, '"a"'])})
    assert sink.publish("q", ("o",), 7, made) == ["q/000000000002000.srx"]
    assert [found.report for found in sink.unwritable] == [1000]


def test_files_of_an_attempt_are_not_left(tmp_path: Path) -> None:
    """The results of the first report are gone from the second attempt, and so is their file."""
    made = Batch(np.array([1000, 2000, 3000]), columns={"o": pl.Series(['"a"', DIRECTED, '"c"'])})
    sink = FileSink(tmp_path, Format.SRX)
    names = sink.publish("q", ("o",), 7, made)
    assert sorted(path.name for path in tmp_path.glob("q/*")) == sorted(
        name.removeprefix("q/") for name in names
    )


@pytest.mark.parametrize("change", [None, np.array([1, 1, -1, 1], np.int8)])
def test_what_is_left_of_a_batch(change: Any) -> None:
    made = Batch(
        np.array([1, 1, 2, 3]),
        columns={"o": pl.Series(['"a"', DIRECTED, '"c"', None])},
        change=change,
        empty=np.array([9]),
    )
    rest, dead = without_unwritable(Format.SRX, "q", ("o",), made)
    assert rest.report.tolist() == [1, 2, 3]
    assert rest.columns["o"].to_list() == ['"a"', '"c"', None]
    assert rest.change is None if change is None else rest.change.tolist() == [1, -1, 1]
    assert rest.empty.tolist() == [9]
    assert [each.text for each in dead] == [f"?o={DIRECTED}"]


def test_a_run_goes_on_and_tells(tmp_path: Path) -> None:
    lines = [f'<http://e/a{k}> <http://e/p> "{k}" {500 * k} .\n' for k in range(12)]
    (tmp_path / "s.nt").write_text("".join(lines))
    with (
        warnings.catch_warnings(record=True) as caught,
        levada.Engine(
            spark=False,
            sink=FileSink(tmp_path / "out", Format.JSONLD),
            letters=tmp_path / "letters",
            epoch_rows=3,
        ) as engine,
    ):
        warnings.simplefilter("always")
        engine.stream("s", tmp_path / "s.nt")
        engine.register(CONSTRUCT, name="q")
        engine.start(once=True)
        engine.await_end()
    files = sorted((tmp_path / "out" / "q").iterdir())
    found = [quad.object.value for path in files for quad in ox.parse(path=path)]
    assert sorted(map(int, found)) == [k for k in range(12) if k != 5]
    (path,) = (tmp_path / "letters" / "dead-letter").iterdir()
    (letter,) = map(json.loads, path.read_text().splitlines())
    assert (letter["source"], letter["offset"]) == ("q.jsonld", 3000)
    assert letter["reason"].startswith("jsonld cannot hold this result: ")
    assert f'"5"^^<{RDF}langString>' in letter["text"]
    assert [str(each.message) for each in caught if "jsonld" in str(each.message)] == [
        "jsonld cannot hold some results of the query q: they are dead letters."
    ]


@pytest.mark.parametrize("chosen", [Format.NDJSON, Format.CSV, Format.TSV])
def test_standard_output_has_the_others(monkeypatch: pytest.MonkeyPatch, chosen: Format) -> None:
    whole = emission.lines

    def lines(form: Format, query: str, variables: Sequence[str], made: Batch) -> pl.Series:
        if '"odd"' in made.columns["o"].to_list():
            raise pl.exceptions.PanicException("odd")
        return whole(form, query, variables, made)

    monkeypatch.setattr(emission, "lines", lines)
    stream = io.BytesIO()
    sink = StdoutSink(chosen, stream)
    sink.publish("q", ("o",), 7, solutions([*SOUND[:3], '"odd"', SOUND[3]]))
    assert all(f"sound {k}".encode() in stream.getvalue() for k in range(4))
    assert [(found.text, found.reason) for found in sink.unwritable] == [('?o="odd"', "odd")]


def test_messages_of_a_topic_have_the_others() -> None:
    query: Any = SimpleNamespace(name="q", variables=("o",))
    piece = Piece(query, solutions([*SOUND[:3], DIRECTED, SOUND[3]]), Position())
    dead: list[Unwritable] = []
    found = list(messages(Format.SRX, piece, dead))
    assert [dict(headers)["report"] for _, headers in found] == [b"1000", b"2000"]
    assert [value.count(b"sound") for value, _ in found] == [2, 2]
    assert [each.report for each in dead] == [2000]
