"""Lines to columns: the contract of ``Triples`` by hand-made cases, and the sources beside
lines.
"""

from typing import Any

import numpy as np
import pytest
import xxhash

from levada.connectors.ingest.parse.fallback_parser import blank_text
from levada.connectors.ingest.parse.ntriples import TermColumn, Triples, columns_of, parse
from levada.core.event_time import MIN
from levada.core.rdf_terms import XSD, Kind
from levada.kernels.terms.term_ids import identify_one


def read(
    text: str | bytes,
    quads: bool = False,
    timed: bool = False,
    document: int = 1,
    unit_power: int = 0,
) -> Triples:
    data = text.encode() if isinstance(text, str) else text
    return parse(data, quads=quads, timed=timed, seed=7, document=document, unit_power=unit_power)


def texts(found: Triples, column: TermColumn) -> list[str]:
    return [found.text(column, row) for row in range(found.n)]


def test_a_chunk_with_everything() -> None:
    found = read(
        "# a comment\n\n<a:s> <a:p> <a:o> .\r\n"
        f'  <a:s>\t<a:q> "x"^^<{XSD}string> . # why\nbroken\n<a:s> <a:q> "\\u00E9"@EN .'
    )
    assert found.n == 3 and found.line.tolist() == [13, 34, 110]
    assert texts(found, found.o) == ["<a:o>", '"x"', '"é"@en']
    assert found.o.kind.tolist() == [Kind.IRI, Kind.STRING, Kind.LANG]
    assert found.g is None and found.time.tolist() == [MIN] * 3
    ((place, reason, text),) = found.bad
    assert (place, text) == (103, "broken")
    assert reason == (
        "Malformed between columns 1 and 7: The subject of a triple must be an IRI or a blank node."
    )


def test_identities_are_those_of_canonical_texts() -> None:
    found = read(
        f'<a:s> <a:p> "\\u0041\\t"@EN-GB .\n<a:s> <http://[::1]/> "1e999"^^<{XSD}double> .'
    )
    for column in (found.s, found.p, found.o):
        for row in range(2):
            assert (int(column.x[row]), int(column.y[row])) == identify_one(
                found.text(column, row), 7
            )


def test_dtypes_are_the_contract() -> None:
    found = read("<a:s> <a:p> 1 .\n<a:s> <a:p> <a:o> .", quads=True)
    assert found.buffer.dtype == np.uint8 and found.line.dtype == found.time.dtype == np.int64
    for column in (found.s, found.p, found.o, found.g):
        assert column is not None
        kinds = [
            column.x.dtype,
            column.y.dtype,
            column.off.dtype,
            column.len.dtype,
            column.kind.dtype,
        ]
        assert kinds == [np.uint64, np.uint64, np.int32, np.int32, np.uint8]
        assert all(part.flags.c_contiguous for part in (column.x, column.y, column.kind))
    assert found.o.dbl is not None and found.o.man is not None and found.o.scale is not None
    assert (found.o.dbl.dtype, found.o.man.dtype, found.o.scale.dtype) == (  # type: ignore[comparison-overlap]
        np.float64,
        np.int64,
        np.uint8,
    )
    assert found.s.dbl is None


def test_the_default_graph_is_unbound() -> None:
    found = read(
        "<a:s> <a:p> <a:o> .\n<a:s> <a:p> <a:o> <a:g> .\n<a:s> <a:p> <a:o> _:g .",
        quads=True,
        document=3,
    )
    assert found.g is not None
    assert found.g.kind.tolist() == [Kind.UNBOUND, Kind.IRI, Kind.BLANK]
    assert (int(found.g.x[0]), int(found.g.y[0]), int(found.g.len[0])) == (0, 0, 0)
    assert texts(found, found.g) == ["", "<a:g>", blank_text("g", 3)]
    assert read("<a:s> <a:p> <a:o> <a:g> .").n == 0


def test_a_blank_node_is_one_node_within_its_document() -> None:
    one, two = (
        read("_:a <a:p> _:b .\n_:b <a:p> _:é .\n_:é <a:p> _:a .", document=d)
        for d in (1, 2**64 - 1)
    )
    label = xxhash.xxh3_128_intdigest((1).to_bytes(8, "little") + b"a")
    assert one.text(one.s, 0) == f"_:b{label:032x}"
    assert one.s.x.tolist() == [one.o.x[2], one.o.x[0], one.o.x[1]]
    assert not set(one.s.x.tolist()) & set(two.s.x.tolist())


def test_a_line_without_a_time_is_bad() -> None:
    found = read(
        f'<a:s> <a:p> "5"^^<{XSD}integer> .\n<a:s> <a:p> <a:o> .\n<a:s> <a:p> <a:o> 5 .', timed=True
    )
    assert found.time.tolist() == [5]
    assert {reason for _, reason, _ in found.bad} == {
        "No event time stands before the dot. Say time=arrival for the clock."
    }


def test_a_line_without_its_dot_is_told_so() -> None:
    (bad,) = read("<a:s> <a:p> <a:o> 5", timed=True).bad
    assert bad[1] == "No dot stands at the end of the line."


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    found = read("\ufeff<a:s> <a:p> <a:o> 5 .\n<a:s> <a:p> <a:o> 6 .", timed=True)
    assert (
        found.time.tolist() == [5, 6]
        and texts(found, found.s) == ["<a:s>", "<a:s>"]
        and not found.bad
    )


def test_times_that_pyoxigraph_must_help_with() -> None:
    line = '<http://[::1]/> <a:p> "# \\" ." {} . # 5 .'
    found = read(
        "\n".join(
            line.format(t) for t in ("17", '"\\u0031"', f'"2013-01-01T24:00:00"^^<{XSD}dateTime>')
        ),
        timed=True,
    )
    assert found.time.tolist() == [17, 1, 1_357_084_800_000] and not found.bad
    (bad,) = read(line.format('"x"'), timed=True).bad
    assert bad[1] == 'The event time "x" is not a number, date or dateTime within range.'


def test_times_of_all_forms_stand_before_the_dot() -> None:
    times = ["17.9", "-1.5e1", '"17.9"', f'"17.9"^^<{XSD}decimal>', f'"1970"^^<{XSD}gYear>']
    times += ['"1970-01-02"', f'"1970-01-02"^^<{XSD}date>', '"1970-01-01 00:00:01"']
    plain, judged = (
        read("\n".join(f"{subject} <a:p> <a:o> {t} ." for t in times), timed=True)
        for subject in ("<a:s>", "<http://[::1]/>")
    )
    assert plain.time.tolist() == [17, -15, 17, 17, 0, 86_400_000, 86_400_000, 1000]
    assert judged.time.tolist() == plain.time.tolist() and not plain.bad + judged.bad
    assert read("<a:s> <a:p> <a:o> 5.", timed=True).time.tolist() == [5]


def test_the_graph_stands_before_the_time() -> None:
    found = read(
        "<a:s> <a:p> <a:o> <a:g> 3 .\n<a:s> <a:p> <a:o> 4 .\n<a:s> <a:p> <a:o> 4 <a:g> .",
        quads=True,
        timed=True,
    )
    assert found.time.tolist() == [3, 4] and found.g is not None
    assert found.g.kind.tolist() == [Kind.IRI, Kind.UNBOUND] and len(found.bad) == 1


def test_triple_terms_are_refused() -> None:
    (bad,) = read("<a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> .").bad
    assert "RDF 1.2" in bad[1]


def test_carriage_returns_end_lines() -> None:
    found = read("<a:s> <a:p> <a:o> .\r<a:s> <a:p> <a:o2> . # c\rx\r\n")
    assert found.n == 2 and [bad[2] for bad in found.bad] == ["x"]


def test_a_repeated_subject_prefix_is_not_the_subject() -> None:
    found = read(
        "<a:s> <a:p> <a:o> .\n<a:s2> <a:p2> <a:o> .\n<a:s> <a:p> <a:o> .\n<a:s> <a:p2> <a:o> ."
    )
    assert texts(found, found.s) == ["<a:s>", "<a:s2>", "<a:s>", "<a:s>"]
    assert texts(found, found.p) == ["<a:p>", "<a:p2>", "<a:p>", "<a:p2>"]


def test_a_long_bad_line_is_reported_whole() -> None:
    text = "<a:s> <a:p> " + "x" * 5000 + " ."
    found = read(text + "\r\n<a:s> <a:p> <a:o> .")
    assert found.bad[0][2] == text and found.n == 1


@pytest.mark.parametrize("form", [bytes, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_every_form_of_bytes(form: Any) -> None:
    assert parse(form(b"<a:s> <a:p> <a:o> ."), quads=False, timed=False, seed=1, document=1).n == 1


def test_taking_rows() -> None:
    found = read("<a:s> <a:p> 'x' .\n<a:s> <a:p> <a:1> .\n<a:s> <a:p> \"2\" .").take(
        np.array([1, 0, 1])
    )
    assert found.n == 3 and texts(found, found.o) == ['"2"', "<a:1>", '"2"'] and len(found.bad) == 1


def test_columns_of_constants() -> None:
    terms = [
        "<a:b>",
        "_:x",
        '"5"^^<' + XSD + "byte>",
        '"a\\"b"@en',
        '"plain"',
        "",
        f'"1.5"^^<{XSD}decimal>',
    ]
    buffer, column = columns_of(terms, 7)
    kinds = [Kind.IRI, Kind.BLANK, Kind.INTEGER, Kind.LANG, Kind.STRING, Kind.UNBOUND, Kind.DECIMAL]
    assert column.kind.tolist() == kinds
    assert column.man is not None and column.man.tolist() == [0, 0, 5, 0, 0, 0, 15]
    for row, term in enumerate(terms):
        start = int(column.off[row])
        assert buffer[start : start + int(column.len[row])].tobytes().decode() == term
        expected = identify_one(term, 7) if term else (0, 0)
        assert (int(column.x[row]), int(column.y[row])) == expected
    assert len(columns_of([], 7)[1].x) == 0
