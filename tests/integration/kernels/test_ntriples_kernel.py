"""The line kernel by itself: what it takes, what it leaves, how the side area grows, and that
accesses stay inside.
"""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from levada.connectors.ingest.parse.ntriples import _new_columns, _pad, parse
from levada.core.event_time import MIN
from levada.core.rdf_terms import XSD
from levada.kernels.text import ntriples_terms as state
from levada.kernels.text.byte_ops import PAD
from levada.kernels.text.ntriples import NO_TIME, count_line_ends, parse_lines
from levada.kernels.text.xxh3 import schedule


def run(text: str, side: int = 10_000, power: int = NO_TIME, quads: int = 0) -> Any:
    data = np.frombuffer(text.encode(), np.uint8)
    buffer = _pad(data, PAD + side)
    columns = _new_columns(int(count_line_ends(buffer, data.size)) + 1)
    for column in columns.arrays():
        column.fill(77)  # stale memory
    memo = state.new_memo(data.size + PAD)
    secret = schedule(3)
    parse_lines(
        buffer, data.size, secret, schedule(0), np.uint64(1), quads, power, memo, *columns.arrays()
    )
    return memo, columns


def taken(line: str, **options: int) -> bool:
    memo, _ = run(line, **options)
    assert memo[state.ROW] == 1
    return bool(memo[state.REFUSALS] == 0)


@pytest.mark.parametrize(
    "term",
    [
        "<http://a.b:80/c?d=e#f>",
        "<urn:x:y>",
        "<http://a/%41>",
        "<http://a/é>",
        "<a:>",
        '"plain"',
        '""',
        '"tab\\t \\u00E9 \\U0001F600 \\\' \\""',
        '"ü € 😀"',
        '"x"@en',
        '"x"@EN-latn-gb',
        '"x"@es-419',
        f'"1"^^<{XSD}integer>',
        f'"x"^^<{XSD}string>',
        f'"x"^^<{XSD}gYear>',
        '"x"^^<http://own/type>',
        "_:a",
        "_:0.1-b_",
    ],
)
def test_usual_objects_are_taken(term: str) -> None:
    assert taken(f"<a:s> <a:p> {term} .")
    assert taken(f"<a:s><a:p>{term}.")


@pytest.mark.parametrize(
    "line",
    [
        "<a:s> <a:p> <a:o>",
        "<a:s> <a:p> .",
        "<a:s> <a:p> <a:o> . x",
        "<a:s> <a:p> <a:o> <a:g> .",
        '"s" <a:p> <a:o> .',
        "<a:s> _:p <a:o> .",
        "<a:s> <a:p> <o> .",
        "<a:s> <a:p> <a:o o> .",
        "<a:s> <a:p> <a:%4> .",
        "<a:s> <a:p> <a:#x#y> .",
        "<a:s> <a:p> <a:\\u00e9> .",
        "<a:s> <a:p> <http://u@h/> .",
        "<a:s> <a:p> <http://[::1]/> .",
        "<a:s> <a:p> <http://h:8x/> .",
        '<a:s> <a:p> "x .',
        '<a:s> <a:p> "\\x" .',
        '<a:s> <a:p> "\\uD800" .',
        '<a:s> <a:p> "\\uFFFE" .',
        '<a:s> <a:p> "x"@e .',
        '<a:s> <a:p> "x"@i-klingon .',
        '<a:s> <a:p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
        f'<a:s> <a:p> "\\u0031"^^<{XSD}integer> .',
        "<a:s> <a:p> _:é .",
        "<a:s> <a:p> _:a: .",
        "<a:s> <a:p> 1 .",
        "x",
        "\ufeff<a:s> <a:p> <a:o> .",
    ],
)
def test_what_is_not_proved_is_left(line: str) -> None:
    assert not taken(line)


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf4\x8f\xbf\x00",
        b"\xc3",
    ],
)
def test_ill_formed_utf8_is_bad(raw: bytes) -> None:
    for line in (b'<a:s> <a:p> "' + raw + b'" .', b"<a:s> <a:p> <a:" + raw + b"> ."):
        found = parse(line, quads=False, timed=False, seed=1, document=1)
        assert found.n == 0 and len(found.bad) == 1


def test_refused_rows_are_zero_in_every_column() -> None:
    memo, columns = run("<a:s> <a:p> <a:o> .\n<a:s> <a:p> 1 .\n")
    assert (memo[state.ROW], memo[state.REFUSALS]) == (2, 1)
    for column in (columns.x, columns.y, columns.off, columns.len, columns.kind):
        assert not column[:, 1].any()
    assert columns.dbl[1] == columns.man[1] == columns.scale[1] == 0
    assert (columns.line[1], columns.time[1]) == (20, MIN)


def test_the_side_area_is_asked_for_and_the_line_taken_again() -> None:
    text = "<a:s> <a:p> <a:o> .\n_:x <a:p> _:y .\n"
    memo, _ = run(text, side=PAD + 8)
    assert memo[state.ROW] == 1 and memo[state.NEED] > 0 and memo[state.POSITION] == 20
    found = parse((text * 3000).encode(), quads=False, timed=False, seed=1, document=1)
    assert found.n == 6000 and not found.bad
    assert len({found.text(found.s, row) for row in range(6000)}) == 2
    assert found.text(found.o, 5999) == found.text(found.o, 1)


def test_times_are_taken_with_their_unit() -> None:
    line = "<a:s> <a:p> <a:o> {} ."
    for text, power, expected in (
        ("17", 3, 17_000),
        ("-5", 0, -5),
        ('"17"', 0, 17),
        (f'"17"^^<{XSD}unsignedByte>', 0, 17),
        (f'"1970-01-01T00:00:01.2509"^^<{XSD}dateTime>', 3, 1250),
        (f'"1969-12-31T23:59:59.9995Z"^^<{XSD}dateTime>', 0, -1),
        (f'"1970-01-01T01:00:00+01:00"^^<{XSD}dateTime>', 0, 0),
    ):
        memo, columns = run(line.format(text), power=power)
        assert memo[state.REFUSALS] == 0 and columns.time[0] == expected, text
    for text in (
        "",
        '"x"',
        f'"300"^^<{XSD}byte>',
        f'"1"^^<{XSD}boolean>',
        '"1"@en',
        "999999999999999999",
    ):
        assert not taken(line.format(text), power=3), text


@pytest.mark.parametrize(
    "data", [b"", b"\n\r\n", b"a", b"<", b'"', b"_", b"#", b"<a:s>", b'<a:s> <a:p> "x', b" \t"]
)
def test_an_end_at_any_place_stays_inside_the_buffer(data: bytes) -> None:
    found = parse(data, quads=True, timed=True, seed=1, document=1)
    assert found.n == 0 and len(found.bad) == (1 if data.strip() not in (b"", b"#") else 0)


def test_line_ends_are_counted() -> None:
    data = np.frombuffer(b"a\nb\r\n" * 1000 + b"x" * 77, np.uint8)
    assert [count_line_ends(data, size) for size in (0, 2, 5, data.size)] == [0, 1, 3, 3000]


CHECKED = """
from levada.kernels.text.byte_ops import CHECKED, JIT
from levada.connectors.ingest.parse.ntriples import parse
from levada.connectors.ingest.parse.ntriples_twin import parse_slow
lines = b'''<http://a/b> <a:p> "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> <a:g> 17 .
_:x <a:p> "x\\\\u00e9"@EN-us "2013-01-01T05:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://a/b> <a:p> "1e400"^^<http://www.w3.org/2001/XMLSchema#double> 5 . # comment
<http://a/b> <a:p> .'''
how = dict(quads=True, timed=True, seed=2**63 + 5, document=4)
fast, slow = parse(lines, **how), parse_slow(lines, **how)
columns = ((fast.s, slow.s), (fast.p, slow.p), (fast.o, slow.o), (fast.g, slow.g))
same = [(fast.text(f, i), int(f.x[i]), int(f.y[i])) == (slow.text(s, i), int(s.x[i]), int(s.y[i]))
        for f, s in columns for i in range(3)]
print(JIT, all(same), fast.time.tolist() == slow.time.tolist(), fast.bad == slow.bad)
"""


def test_plain_python_means_the_same() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        [sys.executable, "-c", CHECKED], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", "True", "True", "True"]
