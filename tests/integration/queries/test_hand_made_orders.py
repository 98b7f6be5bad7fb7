"""ORDER BY under ISTREAM and DSTREAM: the rows of a difference come in its order, as far as that
shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.generators import Clause
from support.query_dsl import PREFIX, STREAM, WINDOWS, at, check, query
from support.stepped_runs import run_texts

ELEMENTS = [
    at(1000, ":a :p 5 ; :q 1 . :b :p 3 ; :q 2 . :c :p 4 ; :q 1"),
    at(1400, ":d :p 1 ; :q 3 . :e :p 9 ; :q 2"),
    at(
        2600, ":a :p 2 . :f :p 4 ; :q 3 . :g :p 8 ; :q 1 . :b :p 7 . :c :q 5 . :e :q 7"
    ),  # (:c 4) and (:e 9) twice
    at(5000, ":h :p 6 ; :q 2 . :a :p 1 ; :q 9 . :d :p 3"),
    at(7500, ":c :p 2 . :e :p 1 . :b :p 5 ; :q 4"),
]


def number(text: str) -> int:
    """An integer's canonical text."""
    return int(text.split('"')[1])


ORDERS: dict[str, tuple[str, str, Callable[[tuple[str, ...]], Any]]] = {
    "a variable": ("?s ?v", "ORDER BY ?v ?s", lambda row: (number(row[1]), row[0])),
    "descending": ("?s ?v", "ORDER BY DESC(?v) ?s", lambda row: (-number(row[1]), row[0])),
    "with LIMIT": ("?s ?v", "ORDER BY DESC(?v) ?s LIMIT 3", lambda row: (-number(row[1]), row[0])),
    "DISTINCT": ("DISTINCT ?v", "ORDER BY DESC(?v)", lambda row: -number(row[0])),
    "of an aggregate": ("?s (MAX(?v) AS ?m)", "GROUP BY ?s ORDER BY DESC(MAX(?v)) ?s",
                        lambda row: (-number(row[1]), row[0])),
    "an expression": ("?s ?v", "ORDER BY (?v - 2 * ?v) ?s", lambda row: (-number(row[1]), row[0])),
    "of what shows": ("?s ?v", "ORDER BY ?v ?k ?s", lambda row: number(row[1])),
}  # fmt: skip


def _text(head: str, tail: str, clause: Clause, output: str) -> str:
    window = f"FROM NAMED WINDOW :w ON <{STREAM}> {clause.rspql}"
    return (
        f"{PREFIX}REGISTER {output} :q AS SELECT {head} {window} WHERE {{ "
        f"WINDOW :w {{ ?s :p ?v . ?s :q ?k }} }} {tail}"
    )


@pytest.mark.long
@pytest.mark.parametrize("clause", WINDOWS)
@pytest.mark.parametrize("output", ["ISTREAM", "DSTREAM", "RSTREAM"])
def test_rows_of_a_difference_are_in_order(clause: Clause, output: str) -> None:
    texts = {
        f"q{i}": _text(head, tail, clause, output)
        for i, (head, tail, _) in enumerate(ORDERS.values())
    }
    for rows, partitions in ((1000, 1), (1, 2), (2, 3)):
        found = run_texts(texts, {STREAM: ELEMENTS}, partitions=partitions, epoch_rows=rows)
        for name, (_, _, key) in zip(texts, ORDERS.values(), strict=True):
            assert any(len(shown) > 1 for shown in found[name].values()), (
                "nothing that could be in order"
            )
            for shown in found[name].values():
                assert shown == sorted(shown, key=key), texts[name]


@pytest.mark.parametrize("clause", WINDOWS)
def test_differences_of_ordered_rows_are_what_they_were(clause: Clause) -> None:
    asked = [
        query(f"SELECT {head}", "WINDOW :w { ?s :p ?v . ?s :q ?k }", tail, windows={"w": clause},
              output=output, name=f"{output[0]}{i}")
        for i, (head, tail, _) in enumerate(ORDERS.values())
        for output in ("ISTREAM", "DSTREAM")
    ]  # fmt: skip
    check(*asked, silent=True, s=ELEMENTS)
