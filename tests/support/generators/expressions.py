"""Random conditions and expressions over typed variables, in SPARQL.

Only what the specification and pyoxigraph agree on: errors are provoked (a string compared with a
number, arithmetic on an IRI), but never where their treatment differs (a negated comparison of two
literals of unlike types).
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

_NUMBER = (
    "?{0} > 2",
    "?{0} <= 2.5",
    "?{0} != 1",
    "?{0} * 2 = 5",
    "?{0} = 3.0",
    "?{0} + 1 < 4.5e0",
    "?{0} IN (1, 2.5, 4.0)",
    "?{0} / 2 >= 1.25",
    "FLOOR(?{0}) = 2 || ?{0} > 4",
)
_NODE = (
    "?{0} = :a",
    "?{0} != :b",
    "?{0} IN (:a, :b)",
    'STR(?{0}) > "http://e/a"',
    "sameTerm(?{0}, :c)",
    "isIRI(?{0})",
)
_STRING = (
    'REGEX(?{0}, "^a")',
    'REGEX(STR(?{0}), "B", "i")',
    "STRLEN(?{0}) > 1",
    'CONTAINS(STR(?{0}), "a")',
)
_ANY = ("isIRI(?{0})", "isNumeric(?{0})", "?{0} > 1", "isLITERAL(?{0})", "?{0} + 1 > 2")
_PREDICATE = ("?{0} = :p", "?{0} != :q", "?{0} IN (:p, :r)")
_MAYBE = ("BOUND(?{0})", "!BOUND(?{0})", "COALESCE(?{0} > 2, true)")
_CONDITIONS = {
    "number": _NUMBER,
    "node": _NODE,
    "string": _STRING,
    "any": _ANY,
    "predicate": _PREDICATE,
    "maybe": _MAYBE,
    "computed": ("BOUND(?{0})", "isLITERAL(?{0})"),
}
_NEGATED = ("number", "node", "predicate")


@st.composite
def conditions(draw: st.DrawFn, scope: Mapping[str, str]) -> str:
    """A condition over the variables of a scope, without its outer parentheses; it may compare two
    of them.
    """
    form = draw(st.sampled_from(("one", "one", "one", "pair", "and", "or", "not")))
    numbers = [name for name, kind in scope.items() if kind == "number"]
    nodes = [name for name, kind in scope.items() if kind == "node"]
    if form == "pair" and len(numbers) > 1:
        return draw(st.sampled_from(("?{0} < ?{1}", "?{0} = ?{1}", "?{0} + 0.5 >= ?{1}"))).format(
            *numbers
        )
    if form == "pair" and len(nodes) > 1:
        return draw(st.sampled_from(("?{0} != ?{1}", "?{0} = ?{1}"))).format(*nodes)
    name = draw(st.sampled_from(sorted(scope)))
    first = _one(draw, name, scope[name])
    if form in ("and", "or"):
        other = draw(st.sampled_from(sorted(scope)))
        return f"({first}) {'&&' if form == 'and' else '||'} ({_one(draw, other, scope[other])})"
    return f"!({first})" if form == "not" and scope[name] in _NEGATED else first


def _one(draw: st.DrawFn, name: str, kind: str) -> str:
    return draw(st.sampled_from(_CONDITIONS[kind])).format(name)


_BINDINGS = {
    "number": (
        ("?{0} + 1", "computed"),
        ("?{0} / 2", "computed"),
        ('IF(?{0} > 2, "hi", "lo")', "computed"),
        ("ABS(?{0} - 3)", "computed"),
        ("?{0} * 2", "computed"),
        ("NOW()", "computed"),
    ),
    "node": (
        ("STR(?{0})", "computed"),
        ("?{0}", "node"),
        ("?{0} = :a", "computed"),
        ("?{0} + 1", "maybe"),
    ),
    "string": (
        ("UCASE(?{0})", "computed"),
        ("STRLEN(?{0})", "computed"),
        ('CONCAT(STR(?{0}), "!")', "computed"),
    ),
    "any": (("?{0} + 1", "maybe"), ("STR(?{0})", "computed"), ("DATATYPE(?{0})", "maybe")),
    "predicate": (("STR(?{0})", "computed"), ("?{0} = :p", "computed")),
    "maybe": (
        ('COALESCE(?{0}, "none")', "computed"),
        ("BOUND(?{0})", "computed"),
        ("?{0}", "maybe"),
    ),
}


@st.composite
def bindings(draw: st.DrawFn, scope: Mapping[str, str]) -> tuple[str, str]:
    """An expression over a scope, and what it gives; it has an error for some terms if that is
    "maybe".
    """
    name = draw(st.sampled_from(sorted(scope)))
    text, kind = draw(st.sampled_from(_BINDINGS[scope[name]]))
    return text.format(name), kind


_AGGREGATES = {
    "number": (
        "SUM(?{0})",
        "AVG(?{0})",
        "MIN(?{0})",
        "MAX(?{0})",
        "COUNT(?{0})",
        "COUNT(DISTINCT ?{0})",
        "SUM(DISTINCT ?{0})",
        "AVG(DISTINCT ?{0})",
        "SUM(?{0} + 1)",
        "MAX(?{0}) - MIN(?{0})",
    ),
    "node": (
        "COUNT(?{0})",
        "COUNT(DISTINCT ?{0})",
        "MIN(?{0})",
        "MAX(STR(?{0}))",
        'GROUP_CONCAT(STR(?{0}); SEPARATOR="|")',
    ),
    "string": (
        "COUNT(DISTINCT ?{0})",
        "MIN(STR(?{0}))",
        "SUM(STRLEN(?{0}))",
        'GROUP_CONCAT(?{0}; SEPARATOR="|")',
        'GROUP_CONCAT(DISTINCT ?{0}; SEPARATOR="|")',
    ),
    "any": (
        "COUNT(?{0})",
        "COUNT(DISTINCT ?{0})",
        "SUM(?{0})",
        "COUNT(STR(?{0}))",
        'GROUP_CONCAT(?{0}; SEPARATOR="|")',
    ),
    "maybe": ("COUNT(?{0})", "COUNT(DISTINCT ?{0})", 'GROUP_CONCAT(DISTINCT ?{0}; SEPARATOR="|")'),
    "predicate": ("COUNT(?{0})", "COUNT(DISTINCT ?{0})"),
    "computed": ("COUNT(?{0})", "COUNT(DISTINCT ?{0})"),
}


@st.composite
def aggregates(draw: st.DrawFn, scope: Mapping[str, str]) -> str:
    """An aggregate over a scope, or an expression of aggregates."""
    if draw(st.integers(0, 4)) == 0:
        return "COUNT(*)"
    name = draw(st.sampled_from(sorted(scope)))
    return draw(st.sampled_from(_AGGREGATES[scope[name]])).format(name)
