"""What of the rows of a report is sent to its one place: less, and enough for the same rows in the
same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from unittest.mock import patch

import pytest

from levada.operators.local_combine import Sent, combine_locally
from levada.plan.execution import steps as s
from levada.plan.execution.local_reduction import ReducedRows, find_reduction
from levada.runtime.task import exchange
from levada.testing.reference_model import Element
from support.operator_nodes import Bench
from support.query_dsl import PREFIX, S, at
from support.stepped_runs import run_texts

WINDOW = f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT4S STEP PT2S]"
CHANGE = f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT4S]"


def text(head: str, group: str, tail: str = "", window: str = WINDOW, output: str = "R") -> str:
    """A query over one window."""
    return (
        f"{PREFIX}REGISTER {output}STREAM :q AS {head} {window} "
        f"WHERE {{ WINDOW :w {{ {group} }} }} {tail}"
    )


ASKED: Mapping[ReducedRows, Mapping[str, str]] = {
    ReducedRows.PARTIALS: {
        "values": text("SELECT (COUNT(DISTINCT ?s) AS ?n) (MAX(?v) AS ?m)", "?s :p ?v . ?s :q ?u"),
        "optional": text(
            "SELECT (COUNT(?u) AS ?n) (SUM(?v) AS ?t)", "?s :p ?v OPTIONAL { ?s :q ?u }"
        ),
        "changes": text("SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?t)", "?s :p ?v", window=CHANGE),
    },
    ReducedRows.VALUES: {
        "count": text("SELECT (COUNT(DISTINCT ?v) AS ?n)", "?s :p ?v . ?s :q ?u"),
        "concat": text("SELECT (GROUP_CONCAT(DISTINCT ?v) AS ?c)", "?s :p ?v . ?s :q ?u"),
    },
    ReducedRows.FIRST: {
        "order": text("SELECT ?s ?v", "?s :p ?v", "ORDER BY DESC(?v) LIMIT 3 OFFSET 1"),
        "slice": text("SELECT ?s ?v", "?s :p ?v", "LIMIT 2"),
        "joined": text("SELECT ?v", "?s :p ?v . ?s :q ?u", "ORDER BY ?u LIMIT 2"),
    },
}


def elements() -> list[Element]:
    """Some hundred triples in six seconds, few values."""
    return [
        at(500 * i, " . ".join(f":s{i * 7 + j} :p {j % 3} ; :q {j % 4}" for j in range(20)))
        for i in range(12)
    ]


class Told:
    """``combine_locally``, with how many rows there were and how many were sent in their place."""

    def __init__(self, made: Callable[..., Sent | None]) -> None:
        self._made = made
        self.rows = self.sent = 0

    def __call__(self, *args: object) -> Sent | None:
        """As it is."""
        found = self._made(*args)
        if found is not None:
            self.rows += args[2].n  # type: ignore[attr-defined]
            self.sent += found.frame.n
        return found


@pytest.mark.parametrize("what", ASKED)
def test_less_is_sent_and_the_same_comes_of_it(what: ReducedRows) -> None:
    streams, told = {S: elements()}, Told(combine_locally)
    whole = run_texts(ASKED[what], streams, partitions=1)
    with patch.object(exchange, "combine_locally", told):
        found = run_texts(ASKED[what], streams, partitions=3)
    assert found == whole and all(any(rows.values()) for rows in whole.values())
    assert 0 < told.sent < told.rows / 2


def test_one_partition_sends_its_rows_as_they_are() -> None:
    told = Told(combine_locally)
    with patch.object(exchange, "combine_locally", told):
        run_texts(ASKED[ReducedRows.FIRST], {S: elements()}, partitions=1)
    assert told.rows == 0


WHOLE = {
    "GROUP_CONCAT": "SELECT (GROUP_CONCAT(?o) AS ?c)",
    "DISTINCT": "SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(DISTINCT ?o) AS ?m)",
}


@pytest.mark.parametrize("word", WHOLE)
def test_what_does_not_add_up_is_sent_row_by_row(word: str) -> None:
    node = Bench(WHOLE[word], "?s :p ?o").node(s.RGroup)
    told = find_reduction(node.step)
    assert told is not None and told.what is ReducedRows.WHOLE and word in told.why
