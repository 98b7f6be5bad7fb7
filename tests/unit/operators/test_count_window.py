"""Count windows against the naive reference, in any cut into batches; selections of their rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from levada import query
from levada.core.event_time import MAX, Window, WindowKind
from levada.operators.windowed.count_window import count_window, select
from levada.plan.execution import steps as s
from levada.testing.window_membership import content, stays
from support.operator_nodes import Bench, state, term

NAMES = (":a", ":b", ":c", ":d")
elements = st.lists(st.tuples(st.integers(0, 6), st.sampled_from(NAMES)), min_size=1, max_size=14)


@given(elements, st.integers(1, 4), st.sampled_from((1, 1, 2, 3, 5)), st.sets(st.integers(0, 6)))
def test_changes_add_up_to_the_last_occurrences(
    rows: list[tuple[int, str]], count: int, step: int, cuts: set[int]
) -> None:
    bench = Bench("SELECT ?s", "?s ?p ?o", clause=f"[ELEMENTS {count} STEP {step}]")
    node, kept = bench.node(s.CountWindow), state()
    changes = []
    for low, high in zip([-1, *sorted(cuts)], [*sorted(cuts), 7], strict=True):
        batch = [(ts, name) for ts, name in rows if low < ts <= high]
        if batch:
            triples = [(name, ":p", ":o") for _, name in batch]
            frame = bench.frame(node, triples, lo0=[ts for ts, _ in batch])
            out = count_window(node, [frame], bench.env(kept=kept))
            if out is not None:
                columns = (out[name].tolist() for name in ("hi0", "u", "w"))
                for begin, until, w, (name,) in zip(*columns, bench.terms(out), strict=True):
                    changes += [(begin, name, w), (until, name, -w)]
    ordered = sorted({(ts, f"{term(name)} <http://e/p> <http://e/o>") for ts, name in rows})
    held = stays(Window(WindowKind.COUNT, count=count, step=step), ordered)
    for tau in range(7):
        there = {item for item, _ in content(held, tau)}
        for name in NAMES:
            netted = sum(w for t, changed, w in changes if t <= tau and changed == name)
            assert netted == (f"{term(name)} <http://e/p> <http://e/o>" in there)


def test_a_row_ends_where_it_is_known_and_is_ended_by_another_later() -> None:
    bench = Bench("SELECT ?s", "?s ?p ?o", clause="[TRIPLES 1]")
    node, kept, found = bench.node(s.CountWindow), state(), []
    for rows, lo0 in (((":a", ":b"), [5, 9]), ((":c",), [12])):
        frame = bench.frame(node, [(name, ":p", ":o") for name in rows], lo0=lo0)
        out = count_window(node, [frame], bench.env(kept=kept))
        assert out is not None
        columns = (out[name].tolist() for name in ("lo0", "hi0", "u", "w"))
        found.append(sorted(zip(bench.terms(out), *columns, strict=True)))
    assert found == [
        [((":a",), 5, 5, 9, 1), ((":b",), 9, 9, MAX, 1)],
        [((":b",), 9, 12, MAX, -1), ((":c",), 12, 12, MAX, 1)],
    ]


def test_rows_come_out_of_state_when_they_leave() -> None:
    bench = Bench("SELECT ?s", "?s ?p ?o", clause="[TRIPLES 2]")
    node, kept = bench.node(s.CountWindow), state()
    for ts in range(20):
        count_window(
            node, [bench.frame(node, [(f":n{ts}", ":p", ":o")], lo0=[ts])], bench.env(kept=kept)
        )
    assert sum(p.rows for p in kept.pieces(f"{node.id}.last.rows")) <= 4


def test_rows_between_two_steps_wait_in_state() -> None:
    """A window of the last 2 that changes after each 3rd: the 3rd comes with the 2nd, the 4th
    waits.
    """
    bench = Bench("SELECT ?s", "?s ?p ?o", clause="[ELEMENTS 2 STEP 3]")
    node, kept = bench.node(s.CountWindow), state()
    found = []
    for ts in range(4):
        frame = bench.frame(node, [(f":n{ts}", ":p", ":o")], lo0=[ts])
        out = count_window(node, [frame], bench.env(kept=kept))
        found.append(
            [] if out is None else sorted(zip(bench.terms(out), out["hi0"].tolist(), strict=True))
        )
    assert found == [[], [], [((":n1",), 2), ((":n2",), 2)], []]
    assert sum(p.rows for p in kept.pieces(f"{node.id}.last.rows")) <= 3


def test_selection_by_constants_and_repeated_variables() -> None:
    bench = Bench("SELECT ?x", "?x :p ?x", clause="[TRIPLES 9]")
    node = bench.node(s.Select)
    rows = [(":a", ":p", ":a"), (":a", ":p", ":b"), (":b", ":q", ":b"), (":c", ":p", ":c")]
    frame = bench.frame(node, rows, lo0=[1, 2, 3, 4], hi0=[1, 2, 3, MAX])
    assert bench.terms(select(node, [frame], bench.env())) == [(":a",), (":c",)]


def test_rows_of_one_key_and_instant_are_ordered_by_their_texts() -> None:
    """Whichever comes first, and whatever other keys have at that instant."""
    rows = [(1, "b", 1000), (2, "z", 1000), (1, "a", 1000), (2, "c", 2000), (3, "d", 2000)]
    text = "Rstream(Select k, v From S [Partition By k Rows 1])"
    for given_ in (rows, rows[::-1][2:] + rows[3:]):
        ordered = sorted(given_, key=lambda row: row[2])
        schema = {"k": "integer", "v": "string"}
        found = query(text, {"S": (ordered, {"schema": schema})}, dialect="cql").to_dicts()
        at = {r: {(d["k"], d["v"]) for d in found if d["report"] == r} for r in _reports(found)}
        assert list(at.values()) == [{(1, "b"), (2, "z")}, {(1, "b"), (2, "c"), (3, "d")}]


def _reports(found: list[dict[str, object]]) -> list[object]:
    return list(dict.fromkeys(row["report"] for row in found))
