"""The files of a batch in each format, read by libraries that others wrote; what cannot be held is
refused.
"""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest

from levada.connectors.serialization.encode_batch import contents
from levada.connectors.serialization.result_formats import (
    LINES,
    Format,
    check_fits,
    check_stdout,
    fitting,
)
from levada.connectors.serialization.serialize import Batch
from levada.connectors.serialization.typed_columns import typed_frame
from levada.connectors.sinks.file_sink import FileSink, Roll
from levada.core.event_time import MIN
from levada.core.query_model import Form, Output
from levada.errors import UsageError

XSD = "http://www.w3.org/2001/XMLSchema#"
SELECT = Batch(
    np.array([-2500, 4000, 4000]),
    columns={
        "a": pl.Series(["<http://e/é>", "_:b1", None]),
        "n": pl.Series(['"1"^^<' + XSD + "integer>", '"a < \\"b\\" & c\\n"@en', '"x"']),
    },
)
GRAPHS = Batch(
    np.array([-2500, 4000]),
    Form.CONSTRUCT,
    graphs=pl.Series(["<http://e/a> <http://e/p> _:b .\n_:b <http://e/p> \"x .\\n\" .\n",
                      "<http://e/a> <http://e/p> <http://e/c> .\n"]),
    empty=np.array([0]),
)  # fmt: skip
ASK = Batch(np.array([4000]), Form.ASK, booleans=np.array([True]))


def files(
    form: Any,
    batch: Any,
    variables: Any = ("a", "n"),
    size: Any = 1 << 20,
    terms: bool = False,
) -> Any:
    return list(contents(form, "q", variables, batch, Roll(bytes=size).cut, terms=terms))


def test_json_results_are_a_document_a_report() -> None:
    (first, one), (second, two) = files(Format.SRJ, SELECT)
    assert (first, second) == (-2500, 4000)
    assert json.loads(one)["results"]["bindings"] == [
        {
            "a": {"type": "uri", "value": "http://e/é"},
            "n": {"type": "literal", "value": "1", "datatype": XSD + "integer"},
        }
    ]
    assert (
        json.loads(two)["head"] == {"vars": ["a", "n"]}
        and len(json.loads(two)["results"]["bindings"]) == 2
    )
    assert files(Format.SRJ, ASK) == [(4000, b'{"head": {}, "boolean": true}\n')]


def test_xml_results_are_a_document_a_report() -> None:
    (_, one), (_, two) = files(Format.SRX, SELECT)
    found = ox.parse_query_results(two, ox.QueryResultsFormat.XML)
    assert [(str(s["a"]) if s["a"] else None, str(s["n"])) for s in found] == [
        ("_:b1", '"a < \\"b\\" & c\\n"@en'),
        (None, '"x"'),
    ]
    assert b"http://e/\xc3\xa9" in one and files(Format.SRX, ASK)[0][1].endswith(
        b"<boolean>true</boolean></sparql>"
    )


@pytest.mark.long
def test_xml_results_have_texts_of_any_length() -> None:
    """The parser of JSON below refuses one of 16 MB: that was a fault of the server."""
    long, iri = '<&é"' * (3 << 20) + "\r", "http://e/" + "é" * (3 << 20)
    few = "urn:levada:long-text:0-"
    terms = [str(ox.Literal(long)), str(ox.Literal(few)), f"<{iri}>"]
    batch = Batch(np.full(3, 4000), columns={"n": pl.Series(terms)})
    ((_, data),) = files(Format.SRX, batch, ("n",))
    found = [each for row in ET.fromstring(data)[1] for binding in row for each in binding]
    assert [each.tag.rsplit("}")[-1] for each in found] == ["literal", "literal", "uri"]
    assert all(each.text == wanted for each, wanted in zip(found, (long, few, iri), strict=True))


def test_xml_results_are_xml_whatever_a_literal_holds() -> None:
    texts = ["a\rb", "\r\n", "\x01\b\f\x1f", "\ufffe\uffff", " <&>\t", "\x7f\x85\u2028"]
    terms = [str(ox.Literal(text)) for text in texts]
    batch = Batch(np.full(len(terms), 4000), columns={"n": pl.Series(terms)})
    ((_, data),) = files(Format.SRX, batch, ("n",))
    shown = [
        e.text for e in ET.fromstring(data).iter("{http://www.w3.org/2005/sparql-results#}literal")
    ]
    assert shown == ["a\rb", "\r\n", "\ufffd" * 4, "\ufffd" * 2, " <&>\t", "\x7f\x85\u2028"]


def test_graphs_in_quads_are_named_by_query_and_time() -> None:
    ((_, text),) = files(Format.NQ, GRAPHS)
    assert text.decode().splitlines() == [
        "<http://e/a> <http://e/p> _:b <urn:levada:q:1969-12-31T23:59:57.500Z> .",
        '_:b <http://e/p> "x .\\n" <urn:levada:q:1969-12-31T23:59:57.500Z> .',
        "<http://e/a> <http://e/p> <http://e/c> <urn:levada:q:4000> .",
    ]
    ((_, trig),) = files(Format.TRIG, GRAPHS)
    assert "<urn:levada:q:0> {\n}\n" in trig.decode()
    assert set(ox.parse(trig, ox.RdfFormat.TRIG)) == set(ox.parse(text, ox.RdfFormat.N_QUADS))
    ((_, document),) = files(Format.JSONLD, GRAPHS)
    assert set(ox.parse(document, ox.RdfFormat.JSON_LD)) == set(
        ox.parse(text, ox.RdfFormat.N_QUADS)
    )


def test_triples_are_a_file_a_report_also_an_empty_one() -> None:
    assert [(report, text.count(b"\n")) for report, text in files(Format.NT, GRAPHS)] == [
        (-2500, 2),
        (4000, 1),
        (0, 0),
    ]


@pytest.mark.parametrize("form", [Format.ARROW, Format.PARQUET])
def test_tables_are_columns_cut_by_rows(form: Any) -> None:
    def read(data: Any) -> Any:
        return (
            pq.read_table(pa.BufferReader(data))
            if form is Format.PARQUET
            else pa.ipc.open_file(data).read_all()
        )

    parts = [read(data) for _, data in files(form, SELECT, size=40, terms=True)]
    assert len(parts) > 1
    table = pa.concat_tables(parts)
    assert (
        table.column_names == ["report", "a", "n"]
        and table.schema.metadata[b"levada.query"] == b"q"
    )
    assert table.to_pydict() == {
        "report": [-2500, 4000, 4000],
        **{k: v.to_list() for k, v in SELECT.columns.items()},
    }
    typed = pa.concat_tables(read(data) for _, data in files(form, SELECT, size=40))
    assert typed["report"].type == pa.timestamp("ms", "UTC")
    assert typed["report"].cast(pa.int64()).equals(table["report"])
    frame, found = typed_frame(pl.DataFrame({"report": SELECT.report, **SELECT.columns}))
    assert pl.DataFrame(typed).equals(frame)
    assert {name: typed.schema.field(name).metadata[b"levada.kind"] for name in found} == {
        name: column.kind.encode() for name, column in found.items()
    }
    assert read(files(form, GRAPHS)[0][1]).column_names == [
        "report",
        "subject",
        "predicate",
        "object",
    ]
    assert read(files(form, ASK, terms=True)[0][1]).to_pydict() == {
        "report": [4000],
        "boolean": [True],
    }


def test_files_of_reports_are_named_by_their_times(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, Format.SRJ)
    assert sink.publish("q", ["a", "n"], 3, SELECT) == [
        "q/-00000000002500.srj",
        "q/000000000004000.srj",
    ]


def test_a_query_without_windows_has_a_report_without_a_time(tmp_path: Path) -> None:
    once = Batch(np.array([MIN]), Form.CONSTRUCT, graphs=GRAPHS.graphs[1:])
    assert FileSink(tmp_path, Format.NT).publish("q", (), 1, once) == ["q/static.nt"]
    assert b" <urn:levada:q:static> ." in files(Format.NQ, once)[0][1]
    table = pa.ipc.open_file(files(Format.ARROW, once)[0][1]).read_all()
    assert table["report"].to_pylist() == [None]


def test_what_a_format_cannot_hold_is_refused_with_those_that_can() -> None:
    for form in (Form.SELECT, Form.ASK):
        with pytest.raises(
            UsageError,
            match=f"nq cannot hold the results of the query q, which is of the form {form.name}",
        ):
            check_fits(Format.NQ, "q", form, Output.RSTREAM)
    with pytest.raises(UsageError, match=r"CONSTRUCT.*Say --format ndjson, .*jelly") as error:
        check_fits(Format.SRJ, "q", Form.CONSTRUCT, Output.RSTREAM)
    assert "srx" not in str(error.value)
    with pytest.raises(UsageError, match="whose changes have signs"):
        check_fits(Format.SRX, "q", Form.SELECT, Output.RELATION)
    assert set(Format) == {f for form in Form for f in fitting(form, Output.RSTREAM)}


def test_standard_output_takes_what_can_follow_each_other() -> None:
    for form in Format:
        if form in LINES:
            check_stdout(form, 1)
        else:
            with pytest.raises(UsageError, match=f"{form} is for files"):
                check_stdout(form, 1)
