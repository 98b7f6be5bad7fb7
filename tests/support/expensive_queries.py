"""Queries that ask for too much, and nine that do not: what a test, and a trial over a live stream,
have in common.

A window of each evil one is over the stream ``:s``, which has numbers (``:p``), words (``:t``) and
edges (``:e``). Each names the limit that it is to meet; ``None`` is one that looks evil and is not.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from levada.testing.reference_model import Element
from support.generators import CaseQuery, Clause
from support.query_dsl import PREFIX, element, query, step

LONG = "x" * 400
MANY = " . ".join(f"?a :p{i} ?b" for i in range(40))
PAIR = "?a :p ?x . ?b :p ?y"
BACK = r"^(a|aa)+\\1c$"


@dataclass(frozen=True, slots=True)
class Evil:
    """A query and the limits of which it meets one."""

    head: str
    group: str
    limits: tuple[str, ...]
    window: str = "RANGE PT4S STEP PT1S"
    tail: str = ""

    @property
    def text(self) -> str:
        """As it is registered."""
        return (
            f"{PREFIX}{self.head} FROM NAMED WINDOW :w ON :s [{self.window}] "
            f"WHERE {{ WINDOW :w {{ {self.group} }} }} {self.tail}"
        )


MILLISECOND, CHANGE = "RANGE PT10S STEP PT0.001S", "RANGE PT10S"
DOUBLED = " ".join(f"BIND(CONCAT(?t{i}, ?t{i}, ?t{i}, ?t{i}) AS ?t{i + 1})" for i in range(8))
REPLACED = "?t"
for times in (40, 20, 20):
    REPLACED = f'REPLACE({REPLACED}, "a", "{"$0" * times}")'
LITERAL = "x" * 100_000
JOINED = f'GROUP_CONCAT(CONCAT(STR(?a), "{LONG}"))'
LENGTHY = " ".join(f'BIND(CONCAT(STR(?x), "{LONG}{i}") AS ?z{i})' for i in range(200))
NUMBERS = " ".join(f"BIND(?x + {i} AS ?z{i})" for i in range(200))
EVIL = {
    "backtracks": Evil("SELECT ?a", '?a :t ?t FILTER(REGEX(?t, "(a+)+$"))', ()),
    "product": Evil("SELECT ?a ?b ?c", f"{PAIR} . ?c :p ?z", ("made",)),
    "millisecond": Evil("SELECT ?a ?x", "?a :p ?x", ("rate",), MILLISECOND),
    "of-groups": Evil(
        "SELECT ?a (MIN(?x) AS ?m)", "?a :p ?x", ("rate",), MILLISECOND, "GROUP BY ?a"
    ),
    "in-order": Evil("SELECT ?x", "?a :p ?x", ("rate",), MILLISECOND, "ORDER BY ?x LIMIT 3"),
    "changes": Evil("SELECT ?a ?x", "?a :p ?x", ("rate",), CHANGE),
    "optional": Evil("SELECT ?a ?x", "?a :p ?x OPTIONAL { ?a :none ?y }", ("rate",), MILLISECOND),
    "large-report": Evil("SELECT ?t ?u", "?a :t ?t . ?b :t ?u", ("bytes",)),
    "template": Evil(f"CONSTRUCT {{ {MANY} }}", PAIR, ("bytes",), "RANGE PT1S STEP PT1S"),
    "long-template": Evil(f'CONSTRUCT {{ ?a :p "{LITERAL}" }}', "?a :p ?x", ("bytes",)),
    "concat": Evil(f'SELECT (CONCAT(STR(?x), "{LONG}", STR(?y)) AS ?v)', PAIR, ("texts", "made")),
    "group-concat": Evil(f"SELECT ({JOINED} AS ?v)", PAIR, ("texts", "made"), tail="GROUP BY ?y"),
    "concat-distinct": Evil(
        "SELECT ?a (GROUP_CONCAT(DISTINCT STR(?z)) AS ?v)", f"{PAIR} . ?c :p ?z",
        ("texts", "made"), tail="GROUP BY ?a",
    ),
    "many-texts": Evil("SELECT *", f"?a :p ?x {LENGTHY}", ("texts", "made", "cpu")),
    "many-numbers": Evil("SELECT *", f"?a :p ?x . ?b :p ?x {NUMBERS}", ("made", "texts", "cpu")),
    "years": Evil("SELECT ?a ?x", "?a :p ?x", (), "RANGE P109500D STEP PT2S"),
    "replace": Evil(f"SELECT ({REPLACED} AS ?v)", "?a :t ?t", ("texts", "made")),
    "doubles": Evil("SELECT ?t8", f"?a :t ?t0 {DOUBLED}", ("texts", "made")),
    "path": Evil("SELECT ?a ?b", "?a (:e|^:e)* ?b", ("made", "bytes", "rate")),
    "back-reference": Evil("SELECT ?a", f'?a :t ?t FILTER(REGEX(?t, "{BACK}"))', ("cpu",)),
}  # fmt: skip
"""By name."""


def stream(seconds: int, rate: int, first: int = 0) -> list[Element]:
    """So many elements a second: a number, an edge, and every fourth time a word."""
    every = range(first * rate, (first + seconds) * rate)
    return [
        _with_word(element(1000 * i // rate, f"a{i} p {7 * i % 100}", f"a{i} e a{i + 1}"), i)
        for i in every
    ]


def _with_word(of: Element, i: int) -> Element:
    word = f'<http://e/a{i}> <http://e/t> "{"a" * 60}b{i}"'
    return Element(of.ts, (*of.triples, word)) if i % 4 == 0 else of


GROUPS = (
    ("SELECT ?a ?x", "WINDOW :w {{ ?a :p ?x FILTER(?x > {0}) }}", ""),
    ("SELECT (COUNT(*) AS ?n)", "WINDOW :w {{ ?a :p ?x FILTER(?x < {0}) }}", ""),
    ("SELECT ?x (COUNT(?a) AS ?n)", "WINDOW :w {{ ?a :p ?x FILTER(?x > {0}) }}", "GROUP BY ?x"),
    ("SELECT ?a ?b", "WINDOW :w {{ ?a :e ?b . ?b :e ?c }}", ""),
    ("SELECT DISTINCT ?x", "WINDOW :w {{ ?a :p ?x . ?a :t ?t FILTER(?x < {0}) }}", ""),
    ("SELECT ?a ?y", "WINDOW :w {{ ?a :t ?t OPTIONAL {{ ?a :p ?y FILTER(?y > {0}) }} }}", ""),
    ("SELECT ?a", 'WINDOW :w {{ ?a :t ?t FILTER(REGEX(?t, "b{0}")) }}', ""),
)  # fmt: skip


def nine(draw: random.Random, least: int = 90) -> list[CaseQuery]:
    """Nine that ask for little: random windows, groups, numbers."""
    found = []
    for i in range(9):
        head, group, tail = GROUPS[draw.randrange(len(GROUPS))]
        every = draw.choice((500, 1000, 2000))
        clause: Clause = step(every * draw.choice((1, 2)), every)
        number = draw.randrange(least, 100)
        number = 100 - number if "<" in group else number
        found.append(query(head, group.format(number), tail, windows={"w": clause}, name=f"q{i}"))
    return found


def texts(asked: Sequence[CaseQuery]) -> dict[str, str]:
    """By name."""
    return {one.name: one.text for one in asked}
