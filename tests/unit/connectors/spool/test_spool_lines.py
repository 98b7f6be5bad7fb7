"""Rows of a table as lines: what is a statement says what the row says, and everything else is one
line that is none.
"""

from typing import Any

import polars as pl
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.ingest.parse.fallback_parser import Refused, read_line
from levada.connectors.spool.row_lines import statement_lines, text_lines

IRIS = st.sampled_from([ox.NamedNode(f"http://e/{name}") for name in ("a", "é", "a%20b", "(b)#c")])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
OBJECTS = (
    IRIS
    | st.builds(ox.Literal, TEXTS)
    | st.builds(ox.Literal, TEXTS, language=st.sampled_from(["en", "de-CH"]))
    | st.builds(ox.Literal, TEXTS, datatype=IRIS)
)


def lines(*rows: Any, columns: Any = ("s", "p", "o", "ts")) -> Any:
    return statement_lines(pl.DataFrame(rows, schema=columns, orient="row"), columns).to_list()


def read(line: Any, **how: Any) -> Any:
    assert line.endswith("\n") and line.count("\n") == 1 and "\r" not in line
    return read_line(
        line.removesuffix("\n").encode(), timed=True, document=1, **{"quads": False, **how}
    )


@given(IRIS, IRIS, OBJECTS, st.integers(0, 10**12), st.booleans())
def test_a_statement_is_what_the_row_says(s: Any, p: Any, o: Any, ts: Any, raw: Any) -> None:
    text = (
        str(o).replace(r"\n", "\n") if raw and r"\\" not in str(o) else str(o)
    )  # a line break as it is
    (line,) = lines((str(s), str(p), text, ts))
    found = read(line)
    assert (found.texts, found.time) == ((str(s), str(p), str(o), ""), ts)


@pytest.mark.parametrize(
    "row",
    [
        ("<a:s>", "<a:p>", '"x" 5 .\n<a:s> <a:p> "y"', 1),
        ("<a:s>", "<a:p>", '"x" 5 . # "', 1),
        ("<a:s>", "<a:p>", "# nothing", 1),
        ("# <a:s>", "<a:p>", "<a:o>", 1),
        ("<a:s>", "<a:p>", None, 1),
        ("<a:s>", "<a:p>", "", 1),
        ("<a:s>", "<a:p>", "plain", 1),
        ("<a:s> <a:p>", "<a:o>", "", 1),
        ("<a:s>", "<a:p>", "<a:o>", None),
    ],
)
def test_a_row_that_is_no_statement_is_refused_as_a_whole(row: Any) -> None:
    (line,) = lines(row)
    with pytest.raises(Refused):
        read(line)


@pytest.mark.parametrize("time", ['5 . # "', '5"', "1970-01-01T00:00:05Z # x", "yesterday", None])
def test_a_text_that_is_no_time_is_refused(time: Any) -> None:
    (line,) = lines(("<a:s>", "<a:p>", "<a:o>", time))
    with pytest.raises(Refused):
        read(line)


def test_only_a_graph_may_be_missing() -> None:
    columns = ("s", "p", "o", "g", "ts")
    none, named, shifted = lines(
        ("<a:s>", "<a:p>", "<a:o>", None, 1), ("<a:s>", "<a:p>", "<a:o>", "<a:g>", 1),
        (None, "<a:p>", "<a:o>", "<a:g>", 1),
        columns=columns,
    )  # fmt: skip
    assert read(none, quads=True).texts[3] == "" and read(named, quads=True).texts[3] == "<a:g>"
    with pytest.raises(Refused):
        read(shifted, quads=True)


def test_lines_are_taken_as_they_are() -> None:
    assert text_lines(pl.DataFrame({"l": ["a", None, "b\r\n", ""]}), "l").to_list() == [
        "a\n",
        "b\n",
        "\n",
    ]
