"""``parse`` equals its twin (pyoxigraph, a line a call, and the package xxhash) on valid, odd and
broken lines.
"""

from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.connectors.ingest.parse.ntriples import COLD, TermColumn, Triples, parse
from levada.connectors.ingest.parse.ntriples_twin import parse_slow
from levada.core.rdf_terms import XSD

NAMES = (
    "integer",
    "decimal",
    "double",
    "float",
    "dateTime",
    "boolean",
    "long",
    "byte",
    "unsignedShort",
    "string",
    "date",
)
LEXICAL = (
    "5", "-7", "007", "1.5", ".5", "-0", "1e3", "1.5E22", "INF", "NaN", "", ".", "1e", "16777217",
    "1e400", "true", " 1",
    "9007199254740993.0", "123456789012345678901", "300", "2013-01-01T05:00:00Z",
    "2013-02-29T05:00:00Z",
    "2012-02-29T24:00:00Z", "2013-01-01T05:00:00.1239-14:00", "-0044-03-15T00:00:00Z",
)  # fmt: skip
BODY = st.lists(
    st.sampled_from(
        [
            "a",
            "é",
            "😀",
            "\t",
            "\x01",
            "\x7f",
            "\x00",
            "\x85",
            "\\n",
            "\\'",
            '\\"',
            "\\\\",
            "\\u0041",
            "\\U0001F600",
            "#",
            " .",
            "\\uD800",
            "\\u0000",
            "\\uFFFE",
            "\ufffe",
            "\\x",
        ]
    )
    | st.characters(exclude_categories=["Cs"], exclude_characters='"\\\n\r'),
    max_size=6,
).map("".join)
TYPED = st.builds(
    lambda text, name: f'"{text}"^^<{XSD}{name}>', st.sampled_from(LEXICAL), st.sampled_from(NAMES)
)
LITERAL = TYPED | st.builds(
    lambda body, tail: f'"{body}"{tail}',
    BODY,
    st.sampled_from(
        [
            "",
            "",
            "@en",
            "@EN-us",
            "@zh-Hant-TW",
            "@i-klingon",
            "@e",
            "@en--ltr",
            "^^<a:type>",
            f"^^<{XSD}string>",
        ]
    ),
)
IRI = st.sampled_from(
    [
        "<a:s>",
        "<a:s2>",
        "<http://h/p?q#f>",
        "<http://h:80>",
        "<http://u@h/>",
        "<http://[::1]/>",
        "<http://h/é>",
        "<urn:x>",
        "<a:%41>",
        "<a:%4>",
        "<a:\\u00e9>",
        "<rel>",
        "<a:b c>",
        "<a:\ue000>",
        "<a:'>",
    ]
)
BLANK = st.sampled_from(["_:a", "_:b.c", "_:0", "_:é", "_:a:b", "_:-"])
TIME = st.sampled_from(
    [
        "17",
        "-5",
        "+3",
        "1092880800000",
        '"17"',
        f'"17"^^<{XSD}long>',
        f'"300"^^<{XSD}byte>',
        "999999999999999999",
        '"x"@en',
        "17.5",
        "-0.5e-3",
        "17.",
        '"17.25"',
        '" 17 "',
        '"2013-01-01 05:00:00"',
        '"2013-01"',
    ]
    + [f'"2013-01-01"^^<{XSD}{name}>' for name in ("date", "dateTime", "gYear", "decimal")]
    + [f'"2013"^^<{XSD}{name}>' for name in ("decimal", "double", "gYear", "gYearMonth")]
    + [f'"2013-01-01T05:00:00{zone}"^^<{XSD}dateTime>' for zone in ("Z", "", ".1239", "+01:00")]
    + [f'"12013-01-01T05:00:00Z"^^<{XSD}dateTime>', '"\\u0031"', f'"1" ^^ <{XSD}int>', ""]
)
SPACE = st.sampled_from([" ", " ", " ", "\t", "  ", ""])
END = st.sampled_from([".", ".", ".", ". ", ".# c", ' . # <x> "1" .', "", ". x"])
NOISE = st.sampled_from(
    [bytes([c]) for c in b'<>"\\ \t.^@_:#%[]{}|/?-+e0Z\r\x00\x7f\x80\xc0\xc3\xed\xf4\xff']
    + [
        b"\xed\xa0\x80",
        b"\xef\xbf\xbe",
        b"\xf4\x90\x80\x80",
        b"\xef\xbb\xbf",
        b"^^",
        b"//",
        b' "1" .',
        b" 17 .",
        b"@h",
    ]
)


@st.composite
def lines(draw: st.DrawFn, quads: bool, timed: bool) -> bytes:
    """One line, often well-formed, sometimes broken at a place or two."""
    parts = [draw(IRI | BLANK), draw(IRI), draw(LITERAL | IRI | BLANK)]
    if quads:
        parts.append(draw(IRI | BLANK | st.just("")))
    if timed:
        parts.append(draw(TIME))
    line = "".join(part + draw(SPACE) for part in parts).encode() + draw(END).encode()
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        at = draw(st.integers(0, len(line)))
        line = line[:at] + draw(NOISE) + line[at + draw(st.integers(0, 2)) :]
    return line


@st.composite
def chunks(draw: st.DrawFn) -> tuple[bytes, dict[str, Any]]:
    """A chunk and how to read it."""
    quads, timed = draw(st.booleans()), draw(st.booleans())
    ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b"\n# c\n", b"\r"])
    body = b"".join(line + draw(ends) for line in draw(st.lists(lines(quads, timed), max_size=8)))
    options = {"seed": draw(st.integers(0, 2**64 - 1)), "document": draw(st.integers(0, 2**64 - 1))}
    data = body if draw(st.booleans()) else body.rstrip(b"\r\n")
    return data, {
        "quads": quads,
        "timed": timed,
        "unit_power": draw(st.sampled_from([3, 0, -3, -6])),
        **options,
    }


def shown(found: Triples, column: TermColumn | None) -> list[tuple[object, ...]]:
    """A column as comparable tuples: text, identity, kind, value (with signs of zero and NaN)."""
    if column is None:
        return []
    texts = [found.text(column, row) for row in range(found.n)]
    parts: list[list[Any]] = [texts, column.x.tolist(), column.y.tolist(), column.kind.tolist()]
    if column.dbl is not None:
        assert column.man is not None and column.scale is not None
        parts += [
            [repr(v) for v in column.dbl.tolist()],
            column.man.tolist(),
            column.scale.tolist(),
        ]
    return list(zip(*parts, strict=True))


def assert_equal(fast: Triples, slow: Triples) -> None:
    assert fast.bad == slow.bad
    assert fast.line.tolist() == slow.line.tolist() and fast.time.tolist() == slow.time.tolist()
    for position in "spog":
        assert shown(fast, getattr(fast, position)) == shown(slow, getattr(slow, position)), (
            position
        )


@settings(deadline=None, max_examples=300)
@given(chunks())
def test_parse_equals_its_twin(chunk: tuple[bytes, dict[str, Any]]) -> None:
    data, options = chunk
    assert_equal(parse(data, **options), parse_slow(data, **options))


@settings(deadline=None, max_examples=200)
@given(chunks())
def test_without_the_kernel_it_is_the_same(chunk: tuple[bytes, dict[str, Any]]) -> None:
    data, options = chunk
    with mock.patch.object(COLD, "allows", return_value=True):
        assert_equal(parse(data, **options), parse_slow(data, **options))


@settings(deadline=None, max_examples=30)
@given(st.lists(chunks(), min_size=2, max_size=4))
def test_chunks_by_themselves_give_the_same_rows(many: list[tuple[bytes, dict[str, Any]]]) -> None:
    options = many[0][1]
    pieces = [data + b"\n" for data, _ in many]
    whole = parse(b"".join(pieces), **options)
    parts = [parse(piece, **options) for piece in pieces]
    assert shown(whole, whole.o) == [row for part in parts for row in shown(part, part.o)]
    assert whole.time.tolist() == np.concatenate([part.time for part in parts]).tolist()
