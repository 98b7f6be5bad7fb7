"""Random sets of CQL queries that are made of each other by mutation, as ``sketches`` makes those
of SPARQL: two or three windows that are joined by integers, conditions on numbers, strings and
booleans with all of CQL's comparisons, and constants, windows, outputs, columns, names and the
order of tables that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from levada.testing.reference_model import ReferenceSql, Value
from support.generators.case import CaseQuery
from support.generators.cql import SCHEMAS
from support.generators.sketches import OPTIONS
from support.generators.windows import Clause, reporting

BIG = 2**53
INTEGERS, DOUBLES = (1, 2, 3, 5, BIG, BIG + 1, -1), (1.0, 2.5, 3.0, 0.5, 7.0)
WORDS = ("x", "y", "a b")
VALUES: Mapping[str, st.SearchStrategy[Value]] = {
    "integer": st.sampled_from(INTEGERS),
    "double": st.sampled_from(DOUBLES),
    "string": st.sampled_from(WORDS),
    "boolean": st.booleans(),
}
JOINED = {"A": "k", "B": "k", "C": "w"}
"""An integer of each stream."""
CONDITIONS = {
    "A": (
        "{0}.v > {d}", "{0}.v Between {d} And {d}", "{0}.k = {i}", "{0}.k In ({i}, {i})",
        "{0}.n = {s}", "{0}.n In ({s}, {s})", "{0}.k <> {i}", "{0}.v < {d} Or {0}.k = {i}",
        "{0}.k Between {i} And {i}", "{d} <= {0}.v", "{0}.v Not Between {d} And {d}",
        "{0}.n <> {s}", "{0}.v In ({d}, {i})", "{0}.k > {i}", "{0}.ts >= {t}",
    ),
    "B": (
        "{0}.w >= {d}", "{0}.w Between {d} And {d}", "{0}.k = {i}", "{0}.k Not In ({i}, {i})",
        "{0}.w < {d} And {0}.k <= {i}", "{0}.w = {d}", "{0}.w = {i}", "{0}.w + 1 > {d}",
    ),
    "C": (
        "{0}.f", "Not {0}.f", "{0}.w >= {i}", "{0}.w < {i}", "{0}.k > {d}", "{0}.k In ({d}, {d})",
        "{0}.w In ({i}, {i}, {i})", "{0}.w Between {i} And {i} And {0}.f",
    ),
}  # fmt: skip
WINDOWS = (
    Clause("range", 3000),
    Clause("range", 1000),
    Clause("range", 30_000),
    Clause("step", 4000, 2000),
    Clause("step", 2000, 2000),
    Clause("step", 3000, 1000),
    Clause("now"),
    Clause("all"),
    Clause("count", count=3),
)
OUTPUTS = {"RELATION": "", "ISTREAM": "Istream", "DSTREAM": "Dstream", "RSTREAM": "Rstream"}
FORMS = ("select", "select", "distinct", "group", "group", "count")

Told = tuple[int, str]
"""A condition: of which table, and its text, ``{0}`` for that."""


@dataclass(frozen=True)
class CqlSketch:
    """A query before it is a text."""

    tables: tuple[str, ...]
    clauses: tuple[Clause, ...]
    told: tuple[Told, ...] = ()
    output: str = "RELATION"
    form: str = "select"
    shown: tuple[int, ...] = (0, 1)
    names: str = "lrm"
    options: Mapping[str, Any] = field(default_factory=dict)

    def query(self, name: str) -> CaseQuery:
        """It as a text for the engine and a question for the reference."""
        columns = self._columns()
        select = "Distinct " if self.form == "distinct" else ""
        select += ", ".join(f"{text} As {column}" for text, column, _ in columns)
        group = f" Group By {self._every()[0][0]}" if self.form == "group" else ""
        where = self._where()
        body = f"{where}{group}"
        tables = list(zip(self.names, self.tables, self.clauses, strict=False))
        text = (
            f"Select {select} From {', '.join(f'{t} {c.cql} As {a}' for a, t, c in tables)}{body}"
        )
        reference = ReferenceSql(
            f"Select {select} From {', '.join(a for a, _, _ in tables)}{body}",
            {a: (t, c.window(self.options)) for a, t, c in tables},
            {t: SCHEMAS[t] for t in self.tables},
            {column: kind for _, column, kind in columns},
            self.output,
            **reporting(self.options),
        )
        word = OUTPUTS[self.output]
        return CaseQuery(
            name, f"{word}({text})" if word else text, "cql", dict(self.options), reference
        )

    def _every(self) -> list[tuple[str, str, str]]:
        """The columns of all tables: text, name, type."""
        return [
            (f"{a}.{c}", f"{a}{c}", kind)
            for a, t in zip(self.names, self.tables, strict=False)
            for c, kind in (*SCHEMAS[t].items(), ("ts", "integer"))
        ]

    def _columns(self) -> list[tuple[str, str, str]]:
        every = self._every()
        number = [c for c in every if c[2] == "double"][-1]
        match self.form:
            case "group":
                return [
                    every[0], ("Count(*)", "n", "integer"), (f"Sum({number[0]})", "sum", "double"),
                    (f"Max({number[0]})", "most", "double"),
                ]  # fmt: skip
            case "count":
                return [("Count(*)", "n", "integer")]
            case _:
                return [every[i] for i in dict.fromkeys(i % len(every) for i in self.shown)]

    def _where(self) -> str:
        names = self.names
        first = f"{names[0]}.{JOINED[self.tables[0]]}"
        parts = [
            f"{first} = {names[i]}.{JOINED[table]}" for i, table in enumerate(self.tables) if i
        ]
        parts += [
            f"({text.format(names[at])})" if " Or " in text else text.format(names[at])
            for at, text in self.told
            if at < len(self.tables)
        ]
        return f" Where {' And '.join(parts)}" if parts else ""


@st.composite
def _told(draw: st.DrawFn, tables: tuple[str, ...], form: str = "", at: int = -1) -> Told:
    """A condition with drawn constants."""
    at = draw(st.integers(0, len(tables) - 1)) if at < 0 else at
    words = (form or draw(st.sampled_from(CONDITIONS[tables[at]]))).replace("{0}", "{{0}}")
    for mark, values in (("{i}", INTEGERS), ("{d}", DOUBLES), ("{t}", (0, 1500, 4000))):
        while mark in words:
            words = words.replace(mark, str(draw(st.sampled_from(values))), 1)
    while "{s}" in words:
        words = words.replace("{s}", f"'{draw(st.sampled_from(WORDS))}'", 1)
    return at, words.replace("{{0}}", "{0}")


@st.composite
def _sketch(draw: st.DrawFn) -> CqlSketch:
    """Two or three windows."""
    tables = draw(
        st.sampled_from((("A", "B"), ("B", "A"), ("A", "A"), ("A", "C"), ("B", "C", "A")))
    )
    clauses = tuple(draw(st.sampled_from(WINDOWS[:-1])) for _ in tables)
    told = tuple(draw(st.lists(_told(tables), max_size=2)))
    output, form = draw(st.sampled_from([*OUTPUTS])), draw(st.sampled_from(FORMS))
    return CqlSketch(tables, clauses, told, output, form)


@st.composite
def _other(draw: st.DrawFn, sketch: CqlSketch) -> CqlSketch:
    """A query with one thing changed."""
    match draw(st.integers(-3, 9)):
        case -3 | -2 | -1:
            told = [*sketch.told, draw(_told(sketch.tables))]
            return replace(sketch, told=tuple(told[draw(st.integers(0, 1)) :][-3:]))
        case 0 | 1 | 2:
            windows = WINDOWS[:-1] if draw(st.integers(0, 5)) else WINDOWS
            return replace(
                sketch, clauses=tuple(draw(st.sampled_from(windows)) for _ in sketch.tables)
            )
        case 3:
            return replace(sketch, output=draw(st.sampled_from([*OUTPUTS])))
        case 4:
            return replace(sketch, form=draw(st.sampled_from(FORMS)))
        case 5:
            places = st.lists(st.integers(0, 7), min_size=1, max_size=3)
            return replace(sketch, shown=tuple(draw(places)))
        case 6:
            return replace(sketch, names="uvw" if sketch.names == "lrm" else "lrm")
        case 7:
            return replace(sketch, options=draw(st.sampled_from(OPTIONS)))
        case 8:
            order = draw(st.permutations(range(len(sketch.tables))))
            return replace(
                sketch,
                tables=tuple(sketch.tables[i] for i in order),
                clauses=tuple(sketch.clauses[i] for i in order),
                told=tuple((order.index(at), text) for at, text in sketch.told),
            )
        case _:
            return sketch


@st.composite
def cql_sketched_sets(draw: st.DrawFn, most: int) -> list[CaseQuery]:
    """2 to ``most`` queries."""
    found = [draw(_sketch())]
    for _ in range(draw(st.sampled_from((1, 3, 5, 9, 9, 9, 20, 39))) if most > 9 else 4):
        found.append(draw(_other(draw(st.sampled_from(found)))))
    return [sketch.query(f"q{i}") for i, sketch in enumerate(found[:most])]
