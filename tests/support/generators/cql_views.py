"""Random CQL with views, relations, partitioned windows, Union, Except, DISTINCT, and queries in
brackets, each with its SQL.

A text has up to two views over the streams of ``cql.SCHEMAS`` and the relation ``R``, and a query
over all of these, some with periodic or non-empty reports. Averages stand in the outermost query
only, since equality of what two engines have rounded means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from levada.testing.reference_model import ReferenceSql, Row
from support.generators.case import Case, CaseQuery
from support.generators.cql import SCHEMAS, VALUES
from support.generators.elements import BASES, LATENESSES, arrival, rows, times
from support.generators.windows import ORIGINS, PERIODS, Clause, cql_clauses, reporting

RELATION = {"k": "integer", "v": "double"}
_NUMBERS = ("integer", "double")


@dataclass(frozen=True, slots=True)
class Known:
    """Something that From can name: its columns, and whether it is a relation, and whether it comes
    from outside as a stream.
    """

    name: str
    schema: Mapping[str, str]
    relation: bool = False
    base: bool = True


@dataclass
class Query:
    """A query as it is drawn: its CQL, its SQL over one table per alias, its columns, and the
    windows of these tables.
    """

    cql: str
    sql: str
    columns: tuple[tuple[str, str], ...]
    windows: dict[str, tuple[str, Clause]] = field(default_factory=dict)
    partitions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    single: bool = False  # an aggregate without Group By
    inner: dict[str, tuple[Query, str]] = field(
        default_factory=dict
    )  # queries in brackets, with their outputs


class _Names:
    """Fresh aliases of one text."""

    def __init__(self) -> None:
        self.n = 0

    def fresh(self, stem: str) -> str:
        self.n += 1
        return f"{stem}{self.n}"


@st.composite
def _table(
    draw: st.DrawFn, known: tuple[Known, ...], names: _Names, found: Query, nest: bool
) -> tuple[str, Known, str]:
    """A table of From: its CQL, what it is, its alias; its window is put into ``found``."""
    alias = names.fresh("t")
    if nest and draw(st.integers(0, 5)) == 5:
        inner = draw(_query(known, names, nest=False, outermost=False))
        output = draw(_OUTPUTS)
        name = f"inner.{alias}"
        found.inner[name] = (inner, output)
        text = f"({_asked(inner, output)})"
        chosen = Known(name, dict(inner.columns), output == "RELATION", base=False)
    else:
        chosen = draw(st.sampled_from(known))
        text = chosen.name
    if chosen.relation:
        found.windows[alias] = (chosen.name, Clause("all"))
        return f"{text} As {alias}", chosen, alias
    partitioned = draw(st.integers(0, 4)) == 4
    clause = Clause("count", count=draw(st.integers(1, 3))) if partitioned else draw(cql_clauses)
    shown = clause.cql
    if partitioned:
        by = draw(
            st.lists(st.sampled_from(list(chosen.schema)), min_size=1, max_size=2, unique=True)
        )
        found.partitions[alias] = tuple(by)
        shown = f"[Partition By {', '.join(f'{alias}.{c}' for c in by)} Rows {clause.count}]"
    found.windows[alias] = (chosen.name, clause)
    return f"{text} {shown} As {alias}", chosen, alias


@st.composite
def _select(
    draw: st.DrawFn, known: tuple[Known, ...], names: _Names, nest: bool, outermost: bool
) -> Query:
    """One Select block over one or two tables."""
    found = Query("", "", ())
    tables = [
        draw(_table(known, names, found, nest)) for _ in range(draw(st.sampled_from((1, 1, 2))))
    ]
    columns = [
        (f"{alias}.{c}", kind) for _, what, alias in tables for c, kind in what.schema.items()
    ]
    numbers = [text for text, kind in columns if kind in _NUMBERS]
    conditions = [draw(_join(columns, tables[0][2]))] if len(tables) > 1 else []
    if numbers:
        tests = [f"{number} {operator} 2" for number in numbers for operator in (">", "<=", "<>")]
        conditions.append(draw(st.sampled_from(["", *tests]) | st.just("")))
    where = f" Where {' And '.join(c for c in conditions if c)}" if any(conditions) else ""
    form = draw(st.sampled_from(("plain", "plain", "distinct", "group", "group", "count")))
    tail = ""
    if form == "count":
        some = [("Count(*)", "integer"), *((f"Count(Distinct {c})", "integer") for c, _ in columns)]
        items = draw(st.lists(st.sampled_from(some), min_size=1, max_size=2))
    elif form == "group":
        items, tail = draw(_grouped(columns, numbers, outermost))
    else:
        items = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=3))
        items = [
            (f"{t} + 1", k) if k in _NUMBERS and draw(st.integers(0, 5)) == 5 else (t, k)
            for t, k in items
        ]
    found.single = form == "count"
    head = "Select Distinct " if form == "distinct" else "Select "
    shown = ", ".join(f"{text} As c{i}" for i, (text, _) in enumerate(items))
    found.columns = tuple((f"c{i}", kind) for i, (_, kind) in enumerate(items))
    found.cql = f"{head}{shown} From {', '.join(text for text, _, _ in tables)}{where}{tail}"
    found.sql = f"{head}{shown} From {', '.join(alias for _, _, alias in tables)}{where}{tail}"
    return found


@st.composite
def _join(draw: st.DrawFn, columns: list[tuple[str, str]], first: str) -> str:
    """A condition between two tables, or "" for their product."""
    left = [c for c in columns if c[0].startswith(first + ".")]
    right = [c for c in columns if not c[0].startswith(first + ".")]
    equal = [f"{a} = {b}" for a, s in left for b, t in right if s == t]
    other = [f"{a} < {b}" for a, s in left for b, t in right if s in _NUMBERS and t in _NUMBERS]
    return draw(st.sampled_from([*equal, *equal, *other, ""]))


@st.composite
def _grouped(
    draw: st.DrawFn, columns: list[tuple[str, str]], numbers: list[str], outermost: bool
) -> tuple[list[tuple[str, str]], str]:
    """Items and the tail of a query that groups by a column."""
    key, kind = draw(st.sampled_from(columns))
    kinds = dict(columns)
    every = [
        ("Count(*)", "integer"),
        *((f"{f}({c})", k) for c, k in columns if k != "boolean" for f in ("Min", "Max")),
    ]
    every += [(f"Sum({c})", kinds[c]) for c in numbers] * 2
    every += [(f"Count(Distinct {c})", "integer") for c in kinds]
    every += [(f"{f}(Distinct {c})", kinds[c]) for c in numbers for f in ("Sum", "Max")]
    every += [(f"Avg({c})", "double") for c in numbers] if outermost else []
    some = draw(st.lists(st.sampled_from(every), min_size=1, max_size=3))
    having = draw(st.sampled_from(("", "", " Having Count(*) > 1")))
    return [(key, kind), *some], f" Group By {key}{having}"


@st.composite
def _like(draw: st.DrawFn, types: list[str], known: tuple[Known, ...], names: _Names) -> Query:
    """A Select block over one table, with columns of these types."""
    found = Query("", "", tuple((f"c{i}", kind) for i, kind in enumerate(types)))
    text, what, alias = draw(_table(known, names, found, False))
    chosen = [
        draw(st.sampled_from([c for c, kind in what.schema.items() if kind == wanted]))
        for wanted in types
    ]
    shown = ", ".join(f"{alias}.{c} As c{i}" for i, c in enumerate(chosen))
    found.cql, found.sql = f"Select {shown} From {text}", f"Select {shown} From {alias}"
    return found


@st.composite
def _query(
    draw: st.DrawFn, known: tuple[Known, ...], names: _Names, *, nest: bool, outermost: bool
) -> Query:
    """A Select block, or Union or Except of two with columns of the same types."""
    left = draw(_select(known, names, nest, outermost))
    types = [kind for _, kind in left.columns]
    alike = tuple(k for k in known if set(types) <= set(k.schema.values()))
    if draw(st.booleans()) or not alike:
        return left
    right = draw(_like(types, alike, names))
    union = draw(st.booleans())
    c = ", ".join(name for name, _ in left.columns)
    numbered = f"Select {c}, row_number() Over (Partition By {c}) As n From "
    sql = (
        f"{left.sql} Union All {right.sql}"
        if union
        else f"Select {c} From ({numbered}({left.sql}) Except {numbered}({right.sql}))"
    )
    return Query(
        f"{left.cql} {'Union' if union else 'Except'} {right.cql}",
        sql,
        left.columns,
        left.windows | right.windows,
        left.partitions | right.partitions,
        left.single,
        left.inner | right.inner,
    )


_OUTPUTS = st.sampled_from(("RELATION", "RELATION", "ISTREAM", "DSTREAM", "RSTREAM", "RSTREAM"))


def _asked(query: Query, output: str) -> str:
    return query.cql if output == "RELATION" else f"{output.capitalize()}({query.cql})"


@st.composite
def cql_view_queries(draw: st.DrawFn, name: str) -> CaseQuery:
    """A CQL text with views before its query."""
    names = _Names()
    known = (
        *(Known(n, schema) for n, schema in SCHEMAS.items()),
        Known("R", RELATION, relation=True),
    )
    options: dict[str, object] = {}
    if draw(st.integers(0, 4)) == 4:
        options["t0"] = draw(st.sampled_from(ORIGINS))
    if draw(st.integers(0, 4)) == 4:
        options["bounds"] = "(]"
    if draw(st.integers(0, 4)) == 4:
        options["report"] = draw(st.sampled_from(("change", "change+nonempty")))
    elif draw(st.integers(0, 4)) == 4:
        policies = (
            "nonempty",
            *(f"periodic:{p}ms" for p in PERIODS),
            *(f"periodic:{p}ms+nonempty" for p in PERIODS[:2]),
        )
        options["report"] = draw(st.sampled_from(policies))
    views: dict[str, ReferenceSql] = {}
    lines: list[str] = []
    for _ in range(draw(st.sampled_from((1, 1, 0, 2)))):
        inner = draw(_query(known, names, nest=False, outermost=False))
        view = names.fresh("V")
        output = draw(_OUTPUTS)
        relation = output == "RELATION" and draw(st.integers(0, 3)) < 3
        kinds = ", ".join(f"{c} {kind}" for c, kind in inner.columns)
        kind = "Relation" if relation else "Stream"
        lines.append(f"Register {kind} {view} ({kinds}) As {_asked(inner, output)};")
        output = "ISTREAM" if output == "RELATION" and not relation else output
        views[view] = _question(inner, output, options, views)
        known = (*known, *[Known(view, dict(inner.columns), relation, base=False)] * 3)
    outer = draw(_query(known, names, nest=True, outermost=True))
    if (
        not outer.single
        and "nonempty" not in str(options.get("report"))
        and draw(st.integers(0, 3)) == 3
    ):
        options["empty_reports"] = True
    output = draw(_OUTPUTS)
    text = "\n".join([*lines, _asked(outer, output)])
    asked = _question(outer, output, options, views)
    empty = bool(options.get("empty_reports"))
    return CaseQuery(
        name, text, "cql", options, replace(asked, empty_reports=empty, **reporting(options))
    )


def _question(
    query: Query, output: str, options: Mapping[str, object], views: Mapping[str, ReferenceSql]
) -> ReferenceSql:
    """The query for the reference, with the views before it and its queries in brackets."""
    within = {
        **views,
        **{n: _question(inner, out, options, views) for n, (inner, out) in query.inner.items()},
    }
    schemas = {**SCHEMAS, "R": RELATION, **{n: view.types for n, view in within.items()}}
    return ReferenceSql(
        query.sql,
        {a: (on, clause.window(options)) for a, (on, clause) in query.windows.items()},
        schemas,
        dict(query.columns),
        output,
        partitions=query.partitions,
        relations=frozenset({"R"}),
        views=within,
    )


@st.composite
def _relation(draw: st.DrawFn, lateness: int, base: int) -> tuple[Row, ...]:
    """Insertions, and deletions mostly of what is there."""
    value = st.tuples(VALUES["integer"], VALUES["double"])
    size = draw(st.integers(1, 14))
    held: list[tuple[object, ...]] = []
    found = []
    for ts in draw(times(size=size, base=base, gap=False)):
        if held and draw(st.integers(0, 2)) == 0:
            found.append(Row(ts, held.pop(draw(st.integers(0, len(held) - 1))), -1))  # type: ignore[arg-type]
        else:
            row = draw(value)
            sign = -1 if draw(st.integers(0, 11)) == 0 else 1
            held += [row] * (sign > 0)
            found.append(Row(ts, row, sign))
    return tuple(found[i] for i in draw(arrival([r.ts for r in found], lateness)))


@st.composite
def cql_view_cases(draw: st.DrawFn, most: int = 3) -> Case:
    """A case of one to ``most`` such texts over all streams and the relation."""
    queries = tuple(draw(cql_view_queries(f"q{i}")) for i in range(draw(st.integers(1, most))))
    lateness, base = draw(st.sampled_from(LATENESSES)), draw(st.sampled_from(BASES))
    streams: dict[str, tuple[Row, ...]] = {"R": draw(_relation(lateness, base))}
    for name, schema in SCHEMAS.items():
        values = st.tuples(*(VALUES[kind] for kind in schema.values()))
        streams[name] = draw(rows(values, lateness=lateness, base=base, gap=False))
    return Case(streams, queries, lateness, {}, {**SCHEMAS, "R": RELATION}, frozenset({"R"}))


@st.composite
def recent_queries(draw: st.DrawFn, name: str) -> CaseQuery:
    """Rows of now with the last rows of their key, of a stream or of a view that is one; mostly
    such that the window and the join can be left out.
    """
    names, views, lines = _Names(), {}, []
    known = tuple(Known(n, schema) for n, schema in SCHEMAS.items())
    of, schema = draw(st.sampled_from(list(SCHEMAS.items())))
    if draw(st.booleans()):
        inner = draw(_query(known, names, nest=False, outermost=False))
        output = draw(st.sampled_from(("ISTREAM", "DSTREAM", "RSTREAM")))
        kinds = ", ".join(f"{c} {kind}" for c, kind in inner.columns)
        lines.append(f"Register Stream V ({kinds}) As {_asked(inner, output)};")
        views["V"] = _question(inner, output, {}, {})
        of, schema = "V", dict(inner.columns)
    keys = draw(st.lists(st.sampled_from(list(schema)), max_size=2, unique=True))
    asked = draw(_with_last(of, schema, tuple(keys)))
    output = draw(st.sampled_from(("RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM", "RELATION")))
    text = "\n".join([*lines, _asked(asked, output)])
    return CaseQuery(name, text, "cql", {}, _question(asked, output, {}, views))


@st.composite
def _with_last(draw: st.DrawFn, of: str, schema: Mapping[str, str], keys: tuple[str, ...]) -> Query:
    """The query of two windows on the rows of one table; sometimes with another key beside."""
    count = Clause("count", count=draw(st.integers(1, 4)))
    by = f"Partition By {', '.join(f'r.{c}' for c in keys)} " if keys else ""
    tables = [f"{of} [Now] As l", f"{of} [{by}Rows {count.count}] As r"]
    columns = [(f"{a}.{c}", kind) for a in "lr" for c, kind in schema.items()]
    numbers = [text for text, kind in columns if kind in _NUMBERS]
    where = [f"l.{c} = r.{c}" for c in keys]
    further = [f"{n} {sign} 2" for n in numbers for sign in (">", "<=")]
    further += [f"r.{c} < l.{c}" for c, kind in schema.items() if kind in _NUMBERS]
    further += [f"l.{c} = r.{c}" for c in schema]
    where += draw(st.lists(st.sampled_from(further), max_size=2)) if further else []
    if draw(st.integers(0, 2)):
        items = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=3))
        tail = ""
    else:
        items, tail = draw(_grouped(columns, numbers, True))
    shown = ", ".join(f"{text} As c{i}" for i, (text, _) in enumerate(items))
    rest = (f" Where {' And '.join(where)}" if where else "") + tail
    turned = draw(st.booleans())
    return Query(
        f"Select {shown} From {', '.join(tables[::-1] if turned else tables)}{rest}",
        f"Select {shown} From l, r{rest}",
        tuple((f"c{i}", kind) for i, (_, kind) in enumerate(items)),
        {"l": (of, Clause("now")), "r": (of, count)},
        {"r": keys} if keys else {},
    )


@st.composite
def recent_cases(draw: st.DrawFn, most: int = 2) -> Case:
    """A case of such queries over all streams, with many rows of one instant and key."""
    queries = tuple(draw(recent_queries(f"q{i}")) for i in range(draw(st.integers(1, most))))
    lateness, base = draw(st.sampled_from(LATENESSES)), draw(st.sampled_from(BASES))
    streams = {}
    for name, schema in SCHEMAS.items():
        values = st.tuples(*(VALUES[kind] for kind in schema.values()))
        streams[name] = draw(rows(values, lateness=lateness, base=base, gap=False))
    return Case(streams, queries, lateness, {}, dict(SCHEMAS))
