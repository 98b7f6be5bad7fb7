"""Nested JSON against a naive mapping by the module ``json``: each column of each row, which lines
are dead, and where the rows are.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from levada.connectors.config.json_path import Steps, column_path, parse_iterator
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.connectors.ingest.tables.json_rows import OUT_OF_RANGE, json_rows
from levada.connectors.sources.splits import FileSplit
from levada.kernels.text.json_values import MAX_DEPTH

NAMES = ['"a"', '"b"', '"a.b"', r'"\u0061"', r'"\u0062"', '"é"', r'"\u00e9"', '"c[0]"', '""']
SCALARS = [
    "null", "true", "false", "0", "-0", "1", "-1.50", "1e5", "12345678901234567", "9" * 38,
    "1e-400", "1.7976931348623157e308", '"x"', '""', r'"é\n\u0041\ud83d\ude00"', '"{\\"b\\": 1}"',
]  # fmt: skip
BLANKS = st.sampled_from(["", "", "", " ", "\t", " \r "])
HUGE = ["1e400", "-1e999"]
ITERATORS = ["a[*]", "[*]", "a[*].b[*]", "a.b", "b[0].a[*]", "$", "a[*].b"]
COLUMNS = [
    "a",
    "b",
    "a.b",
    "$.a.b",
    "$['a.b']",
    "é",
    "b.a[1]",
    "c[0]",
    "a[0]",
    "@",
    "$.b",
    "a.b.a.b",
]


def _object(members: list[tuple[str, str, str]]) -> str:
    return "{" + ",".join(f"{name}{blank}:{blank}{v}" for name, blank, v in members) + "}"


def _values(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        leaf,
        lambda inner: (
            st.lists(st.tuples(st.sampled_from(NAMES), BLANKS, inner), max_size=5).map(_object)
            | st.lists(st.tuples(BLANKS, inner), max_size=4).map(
                lambda items: "[" + ",".join(a + b for a, b in items) + "]"
            )
        ),
        max_leaves=12,
    )


VALUES = _values(st.sampled_from(SCALARS))
OBJECTS = st.lists(st.tuples(st.sampled_from(NAMES), BLANKS, VALUES), max_size=6).map(_object)
LINES = OBJECTS | VALUES | st.sampled_from(SCALARS)
BROKEN = ["", ",", "}", "]", "{", "[", '"', "\\", ":", "x", "\x01", "1", "e", ".", "nul", "\\ud800"]


def read(
    lines: list[bytes], names: list[str], iterator: Steps | None, exact: str | None = None
) -> RawRows:
    data = np.frombuffer(b"\n".join(lines) + b"\n", np.uint8)
    reference = FileSplit("s", "s", "a", "a", "ndjson", 0, len(data), 0, 1, len(lines))
    return json_rows(data, names, reference, exact, iterator)


def decode(line: bytes, *, arrays: bool) -> Any:
    """The record of a line. Raises ``ValueError`` for a dead one."""

    def refuse(word: str) -> Any:
        raise ValueError(word)

    value = json.loads(line.decode(), parse_constant=refuse)
    whole = json.loads(line.decode(), object_pairs_hook=lambda pairs: pairs)  # repeated names, too
    json.dumps(whole, ensure_ascii=False).encode()
    if not isinstance(value, dict) and not (arrays and isinstance(value, list)):
        raise ValueError("not an object")
    return value


def matches(value: Any, steps: Steps, at: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """The places and values at a path, in order."""
    if not steps:
        yield at, value
        return
    step, rest = steps[0], steps[1:]
    if step is None and isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from matches(inner, rest, (*at, key))
        return
    names = value if isinstance(value, dict) else ()
    numbers = range(len(value)) if isinstance(value, list) else ()
    if step in names or step in numbers:
        yield from matches(value[step], rest, (*at, step))


def value_of(record: Any, name: str, iterator: Steps, row: Steps) -> Any:
    """A column's value in the row at a place."""
    for place in column_path(name, iterator).places:
        bound = [row[i] if i < len(row) and iterator[i] == step else step
                 for i, step in enumerate(place)]  # fmt: skip
        for i, step in enumerate(place):
            if i >= len(row) or iterator[i] != step:
                bound[i:] = place[i:]
                break
        for _, value in matches(record, tuple(bound)):
            if value is not None:
                return value
    return None


def is_same(text: str | None, value: Any) -> bool:
    """Whether a text is that of a value."""
    if value is None or isinstance(value, str):
        return text == value
    if text is None:
        return False
    if isinstance(value, bool):
        return text == json.dumps(value)
    if isinstance(value, int | float):
        return re.fullmatch("-?[0-9.]+", text) is not None and float(text) == float(value)
    return bool(json.loads(text, parse_int=float) == json.loads(json.dumps(value), parse_int=float))


def check(lines: list[bytes], names: list[str], text: str | None) -> None:
    iterator = None if text is None else parse_iterator(text)
    rows = read(lines, names, iterator)
    arrays = bool(iterator) and not isinstance((iterator or ("",))[0], str)
    expected: list[tuple[int, list[Any]]] = []
    dead = 0
    for number, line in enumerate(line for line in lines if line.strip(b" \t\r")):
        try:
            record = decode(line, arrays=arrays)
        except ValueError:
            dead += 1
            continue
        places = [place for place, _ in matches(record, iterator or ())]
        # elements of an object come in the order in which their last values are written
        for row in places:
            values = [value_of(record, name, iterator or (), row) for name in names]
            expected.append((number, values))
    assert len(rows.dead) == dead
    assert rows.table.height == len(expected)
    found = list(zip(rows.number.tolist(), rows.table.rows(), strict=True))
    assert [number for number, _ in found] == [number for number, _ in expected]
    for number in dict.fromkeys(number for number, _ in expected):
        left = [values for k, values in expected if k == number]
        for k, texts in found:
            if k == number:
                at = next(
                    i
                    for i, values in enumerate(left)
                    if all(is_same(*pair) for pair in zip(texts, values, strict=True))
                )
                del left[at]
        assert not left
    assert rows.alone == len(expected) + dead - len([x for x in lines if x.strip(b" \t\r")])


@given(
    st.lists(LINES, min_size=1, max_size=4),
    st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True),
    st.sampled_from([None, *ITERATORS]),
)
@example(['{"a":[{"b":1}],"a":[{"b":2},{"b":3}]}'], ["a.b", "b"], "a[*]")
@example(['{"a":{"b":{"a":1},"b":2}}'], ["a.b", "@"], "[*]")
def test_rows_are_those_of_a_naive_mapping(
    lines: list[str], names: list[str], iterator: str | None
) -> None:
    check([line.encode() for line in lines], names, iterator)


@given(OBJECTS, st.data())
def test_a_damaged_line_is_dead_if_and_only_if_json_refuses_it(
    line: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(line)))
    stop = data.draw(st.integers(at, min(at + 2, len(line))))
    damaged = (line[:at] + data.draw(st.sampled_from(BROKEN)) + line[stop:]).encode()
    rows = read([b'{"b":{"a":1}}', damaged, b'{"b":{"a":2}}'], ["b.a"], None)
    try:
        decode(damaged, arrays=False)
        dead = 0
    except ValueError:
        dead = int(bool(damaged.strip(b" \t\r")))
    assert len(rows.dead) == dead
    assert rows.table["b.a"].to_list()[:: rows.table.height - 1] == ["1", "2"]


@pytest.mark.parametrize("number", HUGE)
def test_a_number_beyond_a_double_is_dead_where_it_is_read(number: str) -> None:
    lines = [f'{{"a":{{"b":{number}}}}}'.encode(), b'{"a":{"b":1}}']
    assert [dead.reason for dead in read(lines, ["a.b"], None).dead] == [OUT_OF_RANGE]
    assert read(lines, ["a.c"], None).table["a.c"].to_list() == [None, None]


def test_an_integer_of_any_size_is_read() -> None:
    number = "9" * 40
    lines = [f'{{"a":{number}}}'.encode(), f'{{"a":{{"b":{number}}}}}'.encode()]
    rows = read(lines, ["a", "a.b"], None)
    assert rows.table.rows() == [(number, None), (f'{{"b":{number}}}', number)]


@pytest.mark.parametrize("text", ['{"a\\"b": ["\\\\", 1.0,\t[]]}', "[\r{ } ]", "[]"])
def test_an_array_or_object_is_its_text(text: str) -> None:
    rows = read([f'{{"v": {text}}}'.encode(), b'{"v": "[\\"]"}'], ["v"], None)
    assert rows.table["v"].to_list() == [text, '["]']


@given(st.integers(0, 10**30))
def test_a_nested_time_keeps_its_digits(number: int) -> None:
    rows = read([b'{"a":{"t":%d},"v":1}' % number], ["a.t", "v"], None, "a.t")
    (text,) = rows.table["a.t"].to_list()
    assert text == str(number)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH])
def test_a_line_may_nest_as_deeply_as_a_flat_one(depth: int) -> None:
    line = b'{"a":{"b":1},"c":' + b"[" * depth + b"]" * depth + b"}"
    nested, flat = read([line], ["a.b"], None), read([line], ["a"], None)
    assert len(nested.dead) == len(flat.dead) == int(depth >= MAX_DEPTH)
