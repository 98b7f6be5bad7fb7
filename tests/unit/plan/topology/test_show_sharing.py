"""What queries share, as a text and as values."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

import pytest

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.lowering.lower import lower
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing import explain_not_shared as why_not
from levada.plan.sharing.explain_sharing import (
    EQUAL,
    OTHERWISE,
    UNCONTAINED,
    SharingSummary,
    describe_sharing,
    show_sharing,
)
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"
CLAUSE = "[RANGE PT4S STEP PT2S]"
TEXT = """PREFIX : <http://e/> SELECT ?x {} FROM NAMED WINDOW :w ON :s {}
WHERE {{ WINDOW :w {{ {} }} }}"""
GROUPS = {
    "a": "?x :p :c0 . ?x :q ?z",
    "b": "?x :p :c1 . ?x :q ?z",
    "c": "?x :p ?y . ?x :q ?z",
    "d": "?x :r :c0 . ?x :q ?z",
}


def told(
    mode: Sharing, groups: Mapping[str, str], shown: str = "", tail: str = ""
) -> tuple[Topology, SharingSummary]:
    """What these queries share; a group may bring its window."""
    found, roots = Topology({STREAM: StreamFacts()}, (), mode), {}
    for name, group in groups.items():
        clause, _, rest = group.rpartition("]")
        text = TEXT.format(shown, f"{clause}]" if clause else CLAUSE, rest) + tail
        query = optimize(translate(parse(text), text=text))
        found.add(name, query, MIN)
        roots[name] = lower(query, found.streams.facts).root
    found.seal()
    return found, describe_sharing(found, roots)


def test_relaxed_joins_are_told_with_their_constants_and_others_with_the_reason() -> None:
    text = show_sharing(told(Sharing.RELAX, GROUPS)[1])
    expected = """
    relaxed
      Join3: 2 of (- <http://e/p> *)
        <http://e/c0>: a
        <http://e/c1>: b
    kept once
      ArrangeStream of http://e/s, (- <http://e/q> -)
        StreamJoin: c
        StreamJoin2: d
    not relaxed
      c: no other query has its join with other constants, conditions or windows
        nearly that of a, b: it has (- <http://e/p> -); they have (- <http://e/p> *)
        nearly that of d: it has (- <http://e/p> -); they have (- <http://e/r> *)
      d: no other query has its join with other constants, conditions or windows
        nearly that of a, b: it has (- <http://e/r> *); they have (- <http://e/p> *)
        nearly that of c: it has (- <http://e/r> *); they have (- <http://e/p> -)
    """
    shown = text[text.index("relaxed\n") :]
    assert shown.replace(shown.split(":")[0], "relaxed\n  Join3", 1) == dedent(expected).strip()
    assert text.startswith("4 queries, sharing relax: ")


def test_joins_over_count_windows_are_told_with_their_numbers_or_the_reason() -> None:
    group = "?x :p :c . ?x :q ?z"
    counts = {f"n{n}": f"[TRIPLES {n}] {group}" for n in (10, 20)}
    steps = {"s": f"[ELEMENTS 10 STEP 2] {group}", "t": "[TRIPLES 10] ?x :r ?z . ?z :q ?y"}
    text = show_sharing(told(Sharing.RELAX, counts | steps)[1])
    expected = f"""
    relaxed
      Join: 2 of window
        [ROWS 10]: n10
        [ROWS 20]: n20
    not relaxed
      s: {why_not.WEIGHTS}
      t: no other query has its join with other constants, conditions or windows
    """
    assert text[text.index("relaxed\n") :].startswith(dedent(expected).strip())
    mixed = {"m": f"[TRIPLES 10] {group}", "o": f"{CLAUSE} {group}"}
    assert "not relaxed" in show_sharing(told(Sharing.RELAX, mixed)[1])


def test_counts_are_those_of_the_topology() -> None:
    found, telling = told(Sharing.RELAX, GROUPS)
    assert telling.operators == sum(len(node.members.index) for node in found.graph.nodes.values())
    assert telling.apart > telling.operators
    assert all(len(one.queries) > 1 for one in telling.shared)


def test_group_bys_that_fold_rows_together_are_told_with_their_conditions() -> None:
    groups = {
        "a": f"{CLAUSE} ?x :p ?v FILTER(?v > 1)",
        "b": f"{CLAUSE} ?x :p ?v FILTER(?v > 2)",
        "c": "[RANGE PT8S STEP PT2S] ?x :p ?v FILTER(?v > 1)",
        "d": f"{CLAUSE} ?x :q ?v FILTER(?v > 2)",
    }
    telling = told(Sharing.RELAX, groups, "(SUM(?v) AS ?n)", "GROUP BY ?x")[1]
    expected = """
    relaxed
      Occur: 2 of range 1, 2 of window
        > 1 [RANGE PT4S STEP PT2S close [)]: a
        > 2 [RANGE PT4S STEP PT2S close [)]: b
        > 1 [RANGE PT8S STEP PT2S close [)]: c
    folded once
      rows of Occur
        SUM in [RANGE PT4S STEP PT2S close [)]: a
        SUM in [RANGE PT4S STEP PT2S close [)]: b
        SUM in [RANGE PT8S STEP PT2S close [)]: c
    not relaxed
      d: no other GROUP BY reads its rows under other conditions
    """
    text = show_sharing(telling)
    assert text[text.index("relaxed\n") :] == dedent(expected).strip()


def test_what_a_query_shares_stands_by_kinds_and_many_queries_fit_in_20_lines() -> None:
    groups = {f"q{i}": f"{CLAUSE} ?x :p :c{i} . ?x :q ?z" for i in range(40)}
    groups |= {"none": "?x :r :c"}
    _, shown = told(Sharing.RELAX, groups)
    assert shown.shares["none"].shared == 0 and shown.shares["q7"].others == 39
    whole = show_sharing(shown).splitlines()
    assert "  none: 0 of 4 operators shared" in whole
    short = show_sharing(shown, whole=False).splitlines()
    assert len(whole) > 40 and len(short) <= 20
    (line,) = [each for each in short if each.startswith("  q0, q1,") and "shared" in each]
    assert line.endswith("q7 and 32 more: 3 of 6 operators shared, with 39 other queries")
    assert short[-1].endswith(f" of {len(whole):,} lines; --all shows all)")


def test_group_bys_that_differ_in_texts_fold_rows_together() -> None:
    conditions = ('STRSTARTS(STR(?v), "1")', 'STRSTARTS(STR(?v), "2")', 'STR(?v) < "3"')
    groups = {f"q{i}": f"{CLAUSE} ?x :p ?v FILTER({one})" for i, one in enumerate(conditions)}
    _, telling = told(Sharing.RELAX, groups, "(SUM(?v) AS ?n)", "GROUP BY ?x")
    (relaxed,) = telling.relaxed
    assert relaxed.differ == (("range of texts 1", 3),)
    folds = [fold for one in telling.folded for fold in one.folds]
    assert len(folds) == 3 and not any(fold.of_slices for fold in folds), "no state goes by places"


def test_windows_that_are_put_together_from_slices_are_told() -> None:
    groups = {
        "a": f"{CLAUSE} ?x :p ?v",
        "b": "[RANGE PT8S STEP PT4S] ?x :p ?v",
    }
    telling = told(Sharing.RELAX, groups, "(SUM(?v) AS ?n)", "GROUP BY ?x")[1]
    assert [fold.of_slices for one in telling.folded for fold in one.folds] == [True, True]
    line = "    SUM in [RANGE PT8S STEP PT4S close [)], put together from slices: b"
    assert line in show_sharing(telling).splitlines()


def test_conditions_that_are_put_together_from_cells_are_told() -> None:
    groups = {name: f"{CLAUSE} ?x :p ?v FILTER(?v > {i})" for i, name in enumerate("abc")}
    telling = told(Sharing.RELAX, groups, "(SUM(?v) AS ?n)", "GROUP BY ?x")[1]
    assert [fold.of_cells for one in telling.folded for fold in one.folds] == [True] * 3
    line = "    SUM in [RANGE PT4S STEP PT2S close [)], put together from cells: b"
    assert line in show_sharing(telling).splitlines()


def test_another_mode_is_the_reason() -> None:
    _, telling = told(Sharing.EXACT, GROUPS)
    assert not telling.relaxed and set(telling.not_relaxed) == set(GROUPS)
    assert set(telling.not_relaxed.values()) == {"sharing is exact"} and not telling.candidates


def test_in_containment_a_join_that_one_query_has_is_no_relaxed_one() -> None:
    whole = "?x :p ?y . ?x :q ?z FILTER(?z > {})"
    groups = {
        "all": whole.format(1),
        "some": whole.format(5),
        "other": GROUPS["a"],
        "one": "?x :p :c",
    }
    _, telling = told(Sharing.CONTAINMENT, groups)
    (join,) = telling.relaxed
    assert [pick.queries for pick in join.picks] == [("all",), ("some",)]
    assert telling.not_relaxed == {"other": UNCONTAINED, "one": "sharing is containment"}
    assert "no difference" not in show_sharing(telling)


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ("?x :p :c", "it has no join"),
        ("?x :p :c . ?y :q ?z", why_not.PRODUCT),
        ("[TRIPLES 4 STEP 2] ?x :p :c . ?x :q ?z", why_not.WEIGHTS),
        ("[SESSION PT1S] ?x :p :c . ?x :q ?z", why_not.WEIGHTS),
    ],
)
def test_what_could_not_be_shared_says_why(group: str, why: str) -> None:
    _, telling = told(Sharing.RELAX, {"one": group, "other": group.replace(":c", ":d")})
    assert telling.not_relaxed == {"one": why, "other": why}


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ("?x :p ?y . ?x :q ?z FILTER(?y > 1)", "?x :p ?y . ?z :q ?x FILTER(?y != :a)",
         "it has a comparison with a number; they have ? != <http://e/a>"),
        ("?x :p :c . ?x :q ?z", "?x :p :c . ?x :q ?z . ?x :r ?y", "they have (- <http://e/r> -)"),
        ("?x :p :c . ?x :q ?z", "?x :p :d . ?y :q ?x", OTHERWISE),
    ],
)  # fmt: skip
def test_candidates_say_what_only_one_has(one: str, other: str, difference: str) -> None:
    text = show_sharing(told(Sharing.RELAX, {"one": one, "other": other})[1])
    assert f"    nearly that of other: {difference}" in text.splitlines()


def test_equal_queries_say_whose_join_they_have() -> None:
    _, telling = told(Sharing.RELAX, dict.fromkeys("ab", "?x :p :c . ?x :q ?z"))
    assert telling.not_relaxed == dict.fromkeys("ab", EQUAL.format("1 other query has"))


def test_ranges_say_of_what_they_are() -> None:
    day = '"2026-01-0{}"^^<http://www.w3.org/2001/XMLSchema#date>'
    forms = ('?z < "{}"', '?z < "{}" && ?z > "0"', 'STRSTARTS(STR(?y), "{}")', f"?y > {day}")
    groups = {
        f"q{i}-{n}": f"?x :p ?y . ?x :q ?z FILTER({form.format(n)})"
        for i, form in enumerate(forms)
        for n in (1, 2)
    }
    (relaxed,) = told(Sharing.RELAX, groups)[1].relaxed
    kinds = ("range of dates 1", "range of texts 1", "range of strings 1")
    assert sorted(name for name, _ in relaxed.differ) == sorted(kinds)
    assert {"> 0 and < 2", "STRSTARTS 1"} <= {w for pick in relaxed.picks for w in pick.wants}


def test_who_asks_nothing_that_others_ask_wants_any() -> None:
    join = "?x :p ?y . ?x :q ?z "
    conditions = {"a": "", "b": "FILTER(?y > 5)", "c": 'FILTER(?y != "5" && ?z = :a)'}
    _, telling = told(Sharing.RELAX, {name: join + one for name, one in conditions.items()})
    (relaxed,) = telling.relaxed
    assert relaxed.differ == (("term 1", 2), ("range 1", 2), ("condition", 2))
    assert {pick.queries: pick.wants for pick in relaxed.picks} == {
        ("a",): ("any", "any", "any"),
        ("b",): ("any", "> 5", "any"),
        ("c",): ("<http://e/a>", "any", '? != "5"'),
    }
