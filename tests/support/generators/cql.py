"""Random CQL queries over tuple streams, each with its SQL over the windows' rows.

Select and project, equi-joins with further conditions (of two streams, or of two windows on one),
group by; as Istream, Dstream, Rstream or a plain relation. Only what CQL and SQL agree on: no
division, no ungrouped SUM, AVG, MIN or MAX (over nothing SQL says NULL). Rows of one event time are
ordered by their values' canonical texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from levada.testing.reference_model import ReferenceSql, Value
from support.generators.case import Case, CaseQuery
from support.generators.elements import BASES, LATENESSES, rows
from support.generators.windows import cql_clauses, options, reporting

SCHEMAS: Mapping[str, Mapping[str, str]] = {
    "A": {"k": "integer", "v": "double", "n": "string"},
    "B": {"k": "integer", "w": "double"},
    "C": {"k": "double", "w": "integer", "f": "boolean"},
}
VALUES: Mapping[str, st.SearchStrategy[Value]] = {
    "integer": st.sampled_from((1, 2, 3, 5)),
    "double": st.sampled_from((1.0, 2.5, 3.0, 0.5, 7.0)),
    "string": st.sampled_from(("x", "y", "a b")),
    "boolean": st.booleans(),
}
_OPERATORS = {"ISTREAM": "Istream", "DSTREAM": "Dstream", "RSTREAM": "Rstream"}


@dataclass(frozen=True, slots=True)
class Select:
    """A select statement without its windows: columns (text, name, type), condition and
    grouping.
    """

    columns: tuple[tuple[str, str, str], ...]
    where: str = ""
    group: str = ""

    def text(self, tables: str) -> str:
        """The statement over these tables; CQL and SQL write the rest alike."""
        columns = ", ".join(f"{text} As {name}" for text, name, _ in self.columns)
        where = f" Where {self.where}" if self.where else ""
        return f"Select {columns} From {tables}{where}{self.group}"


@st.composite
def cql_queries(draw: st.DrawFn, name: str) -> CaseQuery:
    """A CQL query over the streams of ``SCHEMAS``."""
    left = draw(st.sampled_from("ABC"))
    right = draw(st.sampled_from(("", "A", "B", "C")))
    tables = {"l": left, "r": right} if right else {"l": left}
    used = {alias: draw(cql_clauses) for alias in tables}
    chosen = draw(options(tuple(used.values())))
    select = draw(_joined(left, right)) if right else draw(_single(left))
    output = draw(st.sampled_from(("RELATION", "ISTREAM", "DSTREAM", "RSTREAM")))
    body = select.text(", ".join(f"{tables[a]} {used[a].cql} As {a}" for a in tables))
    reference = ReferenceSql(
        select.text(", ".join(tables)),
        {a: (tables[a], used[a].window(chosen)) for a in tables},
        {stream: SCHEMAS[stream] for stream in tables.values()},
        {column: kind for _, column, kind in select.columns},
        output,
        **reporting(chosen),
    )
    return CaseQuery(
        name,
        f"{_OPERATORS[output]}({body})" if output in _OPERATORS else body,
        "cql",
        chosen,
        reference,
    )


@st.composite
def _single(draw: st.DrawFn, stream: str) -> Select:
    """One stream: projected and selected, or grouped."""
    schema = SCHEMAS[stream]
    number = next(c for c, kind in schema.items() if c != "k" and kind in ("integer", "double"))
    where = draw(
        st.sampled_from(
            (
                "",
                f"l.{number} > 1",
                f"l.k = 2 Or l.{number} < 3",
                f"l.{number} + 1 >= 3.5",
                f"l.{number} Not Between 1.5 And 3",
                f"l.k In (1, l.{number}, 5)",
            )
        )
    )
    if draw(st.booleans()):
        return draw(_grouped(f"l.{number}", schema[number], "l.k", schema["k"], where))
    columns = draw(st.lists(st.sampled_from([*schema, "ts"]), min_size=1, max_size=4, unique=True))
    return Select(tuple((f"l.{c}", c, schema.get(c, "integer")) for c in columns), where)


@st.composite
def _joined(draw: st.DrawFn, left: str, right: str) -> Select:
    """Two windows joined on k, with or without a further condition, projected or grouped."""
    number = next(
        c for c, kind in SCHEMAS[right].items() if c != "k" and kind in ("integer", "double")
    )
    further = (
        "",
        " And l.ts <= r.ts",
        f" And r.{number} > 1",
        f" And l.k < r.{number}",
        " And l.ts < r.ts + 1500",
        f" And r.{number} Between 1 And 3",
        " And l.k In (1, 3)",
    )
    where = "l.k = r.k" + draw(st.sampled_from(further))
    if draw(st.integers(0, 2)) == 2:
        return draw(
            _grouped(f"r.{number}", SCHEMAS[right][number], "l.k", SCHEMAS[left]["k"], where)
        )
    every = [
        (f"{a}.{c}", f"{a}{c}", kind)
        for a, s in (("l", left), ("r", right))
        for c, kind in _columns(s)
    ]
    return Select(
        tuple(draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))), where
    )


def _columns(stream: str) -> list[tuple[str, str]]:
    return [*SCHEMAS[stream].items(), ("ts", "integer")]


@st.composite
def _grouped(
    draw: st.DrawFn, column: str, kind: str, key: str, key_kind: str, where: str
) -> Select:
    """Aggregates by a key, or a count of all."""
    if draw(st.integers(0, 4)) == 4:
        return Select((("Count(*)", "n", "integer"),), where)
    every = (
        ("Count(*)", "n", "integer"),
        (f"Sum({column})", "total", kind),
        (f"Avg({column})", "mean", "double"),
        (f"Min({column})", "least", kind),
        (f"Max({column})", "most", kind),
    )
    some = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    return Select(((key, "k", key_kind), *some), where, f" Group By {key}")


@st.composite
def cql_cases(draw: st.DrawFn, most: int = 4) -> Case:
    """A case of one to ``most`` CQL queries over the streams that they read."""
    queries = tuple(draw(cql_queries(f"q{i}")) for i in range(draw(st.integers(1, most))))
    names = sorted({stream for q in queries for stream, _ in q.reference.windows.values()})
    lateness, base = draw(st.sampled_from(LATENESSES)), draw(st.sampled_from(BASES))
    gap = all(q.allows_gap for q in queries)
    streams = {}
    for name in names:
        values = st.tuples(*(VALUES[kind] for kind in SCHEMAS[name].values()))
        streams[name] = draw(rows(values, lateness=lateness, base=base, gap=gap))
    return Case(streams, queries, lateness, {}, {name: SCHEMAS[name] for name in names})
