"""CONSTRUCT under ISTREAM and DSTREAM: the difference is that of the template's variables as a bag;
the reference judges.
"""

from __future__ import annotations

import pytest

from support.generators import Clause
from support.query_dsl import WINDOWS, at, check, query

ELEMENTS = [
    at(1000, ":a :p 1 . :b :p 2"),
    at(1500, ":a :p 2"),  # one more solution of :a
    at(3000, ":b :p 3 . :c :p 1"),
    at(4500, ":a :p 1 . :b :p 2"),
    at(6500, ":b :p 1"),  # :b has another value: under tumbling windows no difference
    at(9000, ":c :p 1"),
]
IS = (("?s", "<http://e/is>", "<http://e/seen>"),)
BLANK = (*IS, ("_:n", "<http://e/of>", "?s"))
GROUP = "WINDOW :w { ?s :p ?v }"


def _constructing(
    template: tuple[tuple[str, str, str], ...], clause: Clause, output: str, group: str = GROUP
) -> object:
    text = " . ".join(" ".join(triple) for triple in template)
    head = f"CONSTRUCT {{ {text} }}"
    return check(
        query(head, group, windows={"w": clause}, output=output, select="SELECT ?s",
              template=template),
        silent=True, s=ELEMENTS,
    )["q"]  # fmt: skip


@pytest.mark.parametrize("clause", WINDOWS)
@pytest.mark.parametrize("output", ["ISTREAM", "DSTREAM"])
def test_hidden_variables_and_duplicates(clause: Clause, output: str) -> None:
    assert _constructing(IS, clause, output)
    assert _constructing(BLANK, clause, output)


def test_one_more_solution_is_new_unless_it_is_asked_for_once() -> None:
    """:a comes with a second value at 1500."""
    plain = _constructing(IS, WINDOWS[1], "ISTREAM")
    once = _constructing(IS, WINDOWS[1], "ISTREAM", f"{{ SELECT DISTINCT ?s WHERE {{ {GROUP} }} }}")
    assert 1500 in {report.time for report in plain}  # type: ignore[attr-defined]
    assert 1500 not in {report.time for report in once}  # type: ignore[attr-defined]
