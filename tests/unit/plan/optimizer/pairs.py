"""Pairs of algebra before and after a rule, as text: a query is translated, and its pattern shown.

query = asked("WINDOW :w { ?s :p ?v } MINUS { }")
check(query, drop_units, "(project (?s ?v) ..", "(project (?s ?v) ..")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import dedent

from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.logical.nodes import Query
from levada.plan.logical.print_logical import show_node
from levada.plan.optimizer.rule import Context, verify

NOTHING = Context()
WINDOWS = " ".join(f"FROM NAMED WINDOW :{w} ON :s [RANGE PT4S STEP PT2S]" for w in "wx")
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
Run = Callable[[Query, Context], Query]


def asked(
    group: str, tail: str = "", *, head: str = "SELECT *", before: Sequence[Run] = ()
) -> Query:
    """The query with this group over the windows 0 (``:w``) and 1 (``:x``), after rules that run
    before.
    """
    query = translate(
        parse(f"PREFIX : <http://e/> {head} {WINDOWS} WHERE {{ {group} }} {tail}"),
        graphs=["http://e/g"],
    )
    for rule in before:
        query = rule(query, NOTHING)
    return query


def pattern(query: Query) -> str:
    """The pattern of a query, its terms short."""
    return show_node(query.pattern).replace("http://e/", "").replace(INTEGER, "")


def check(query: Query, rule: Run, before: str, after: str) -> None:
    """The pattern is this one before the rule, and that one after it; a second time the rule
    changes nothing.
    """
    changed = rule(query, NOTHING)
    verify("the rule", query, changed)
    assert pattern(query) == dedent(before).strip()
    assert pattern(changed) == dedent(after).strip()
    assert rule(changed, NOTHING) == changed


def check_same(query: Query, rule: Run) -> None:
    """The rule leaves the query as it is: the same object."""
    assert rule(query, NOTHING) is query
