"""CQL's meaning against SQLite: random queries over random rows, without windows.

The left side translates the text and evaluates the algebra by the definitions, a row at a time,
with SPARQL's rules for errors and unbound variables; the right side gives the same text to SQLite.
The two share nothing but the text.
"""

import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.expressions import AggregateFunction, Call, Const, Function, Var
from levada.core.rdf_terms import XSD
from levada.language.translate.cql.translate import translate_cql
from levada.plan.logical import nodes

STREAMS = {
    "A": {"k": "integer", "j": "integer", "v": "double", "s": "string"},
    "B": {"k": "integer", "w": "double", "s": "string"},
}
TYPES = {"integer": "INTEGER", "double": "REAL", "string": "TEXT"}


class ExpressionError(Exception):
    """SPARQL's error: a solution's variable stays unbound, a filter drops."""


def constant(term: Any) -> Any:
    readers: dict[str, Callable[[str], Any]] = {
        XSD + "integer": int,
        XSD + "double": float,
        XSD + "boolean": lambda text: text == "true",
    }
    return readers.get(term.datatype, str)(term.lexical)


def divide(a: Any, b: Any) -> Any:
    if b == 0:
        raise ExpressionError
    return a / b


def compare(operator: Any) -> Any:
    def run(a: Any, b: Any) -> Any:
        if isinstance(a, str) != isinstance(b, str):
            raise ExpressionError
        return operator(a, b)

    return run


STRICT = {
    Function.ADD: lambda a, b: a + b,
    Function.SUBTRACT: lambda a, b: a - b,
    Function.MULTIPLY: lambda a, b: a * b,
    Function.DIVIDE: divide,
    Function.MINUS: lambda a: -a,
    Function.NOT: lambda a: not a,
    Function.EQUAL: compare(lambda a, b: a == b),
    Function.NOT_EQUAL: compare(lambda a, b: a != b),
    Function.LESS: compare(lambda a, b: a < b),
    Function.GREATER: compare(lambda a, b: a > b),
    Function.LESS_EQUAL: compare(lambda a, b: a <= b),
    Function.GREATER_EQUAL: compare(lambda a, b: a >= b),
}


def value(expression: Any, row: Any) -> Any:
    match expression:
        case Var(name):
            if row.get(name) is None:
                raise ExpressionError
            return row[name]
        case Const(term):
            return constant(term)
        case Call(Function.CAST, (Const(datatype), arg)):
            return (math.trunc if datatype.value == XSD + "integer" else float)(value(arg, row))
        case Call(Function.IF, (condition, yes, no)):
            return value(yes if value(condition, row) else no, row)
        case Call(Function.IN, (one, *others)):
            equal = (Call(Function.EQUAL, (one, other)) for other in others)
            return value(Call(Function.OR, tuple(equal)), row)
        case Call((Function.AND | Function.OR) as function, args):
            decisive = function is Function.OR
            results = [attempt(arg, row) for arg in args]
            if decisive in results:
                return decisive
            if None in results:
                raise ExpressionError
            return not decisive
        case Call(function, args):
            return STRICT[function](*(value(arg, row) for arg in args))


def attempt(expression: Any, row: Any) -> Any:
    try:
        return value(expression, row)
    except ExpressionError:
        return None


def aggregated(aggregate: Any, rows: Any) -> Any:
    if aggregate.arg is None:
        return len(rows)
    values = [attempt(aggregate.arg, row) for row in rows]
    values = [v for v in values if v is not None]
    values = list(dict.fromkeys(values)) if aggregate.distinct else values
    match aggregate.function:
        case AggregateFunction.COUNT:
            return len(values)
        case AggregateFunction.SUM:
            return sum(values) if values or not rows else None
        case AggregateFunction.AVG:
            return sum(values) / len(values) if values else None if rows else 0
        case AggregateFunction.MIN:
            return min(values, default=None)
        case AggregateFunction.MAX:
            return max(values, default=None)


def group(node: Any, tables: Any) -> Iterator[Any]:
    groups = {}
    for row in evaluate(node.child, tables):
        groups.setdefault(tuple(row.get(key) for key in node.keys), []).append(row)
    if not node.keys:
        groups.setdefault((), [])
    for key, rows in groups.items():
        yield dict(zip(node.keys, key, strict=True)) | {
            name: aggregated(a, rows) for name, a in node.aggregates
        }


def evaluate(node: Any, tables: Any) -> Any:
    match node:
        case nodes.Scan(nodes.InWindow(i), columns):
            return [{variable: row[column] for column, variable in columns} for row in tables[i]]
        case nodes.Join(left, right):
            pairs = ((a, b) for a in evaluate(left, tables) for b in evaluate(right, tables))
            return [
                a | b for a, b in pairs if all(a[name] == b[name] for name in a.keys() & b.keys())
            ]
        case nodes.Filter(child, condition):
            return [row for row in evaluate(child, tables) if attempt(condition, row) is True]
        case nodes.Extend(child, variable, expression):
            return [row | {variable: attempt(expression, row)} for row in evaluate(child, tables)]
        case nodes.Group():
            return list(group(node, tables))
        case nodes.Project(child, names):
            return [{name: row.get(name) for name in names} for row in evaluate(child, tables)]
        case nodes.Distinct(child):
            return list({tuple(row.items()): row for row in evaluate(child, tables)}.values())


def by_levada(text: Any, data: Any) -> Any:
    query = translate_cql(text, STREAMS)
    tables = [data[window.stream] for window in query.windows]
    return Counter(
        tuple(row[name] for name in query.variables) for row in evaluate(query.pattern, tables)
    )


def by_sqlite(text: Any, data: Any) -> Any:
    connection = sqlite3.connect(":memory:")
    for name, columns in STREAMS.items():
        declared = ", ".join(f"{column} {TYPES[kind]}" for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {name} ({declared})")
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f"INSERT INTO {name} VALUES ({marks})",
            [tuple(row[c] for c in columns) for row in data[name]],
        )
    return Counter(connection.execute(text).fetchall())


small = st.integers(-4, 4)
halves = st.integers(-6, 6).map(lambda n: n / 2)
words = st.sampled_from(["", "x", "it's", "xy"])
VALUES = {"integer": small, "double": halves, "string": words}
data_sets = st.fixed_dictionaries(
    {
        name: st.lists(
            st.fixed_dictionaries({column: VALUES[kind] for column, kind in columns.items()}),
            max_size=8,
        )
        for name, columns in STREAMS.items()
    }
)


def numbers(integers: Any, doubles: Any) -> Any:
    """Arithmetic texts; doubles are never divided, since SQLite's NULL for x/0.0 is not SPARQL's
    INF.
    """
    whole = st.recursive(
        st.one_of(st.sampled_from(integers), small.map(str)),
        lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        ),
        max_leaves=3,
    )
    real = st.one_of(st.sampled_from(doubles), halves.map(str))
    mixed = st.tuples(real, st.sampled_from("+-*"), st.one_of(whole, real)).map(
        lambda p: f"({p[0]} {p[1]} {p[2]})"
    )
    return st.one_of(whole, real, mixed)


def conditions(numeric: Any, strings: Any) -> Any:
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    negated = st.sampled_from(["", "Not "])
    texts = st.one_of(
        st.sampled_from(strings), words.map(lambda w: "'" + w.replace("'", "''") + "'")
    )
    atom = st.one_of(
        st.tuples(numeric, operators, numeric).map(" ".join),
        st.tuples(texts, st.sampled_from(["=", "<>"]), texts).map(" ".join),
        st.tuples(numeric, negated, numeric, numeric).map(
            lambda p: f"{p[0]} {p[1]}Between {p[2]} And {p[3]}"
        ),
        *(
            st.tuples(kind, negated, st.lists(kind, min_size=1, max_size=3)).map(
                lambda p: f"{p[0]} {p[1]}In ({', '.join(p[2])})"
            )
            for kind in (numeric, texts)
        ),
    )
    return st.recursive(
        atom,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["And", "Or"]), inner).map(
                lambda p: f"({p[0]} {p[1]} {p[2]})"
            ),
            inner.map(lambda c: f"Not ({c})"),
        ),
        max_leaves=3,
    )


one = numbers(["k", "j"], ["v"])
two = numbers(["A.k", "j", "B.k"], ["v", "w"])
where_one = conditions(one, ["s"])
where_two = st.lists(
    st.one_of(
        conditions(two, ["A.s", "B.s"]),
        st.sampled_from(["A.k = B.k", "A.s = B.s", "j = B.k", "A.k = w", "v = w"]),
    ),
    min_size=1,
    max_size=3,
).map(" And ".join)
aggregates = st.one_of(
    st.just("Count(*)"),
    st.tuples(
        st.sampled_from(["Count", "Sum", "Avg", "Min", "Max"]),
        st.sampled_from(["", "Distinct "]),
        one,
    ).map(lambda p: f"{p[0]}({p[1]}{p[2]})"),
)


def listed(items: Any, most: int = 3) -> Any:
    return st.lists(items, min_size=1, max_size=most).map(
        lambda parts: ", ".join(f"{p} As c{i}" for i, p in enumerate(parts))
    )


selections = st.tuples(st.sampled_from(["", "Distinct "]), listed(one), where_one).map(
    lambda p: f"Select {p[0]}{p[1]} From A Where {p[2]}"
)
joins = st.tuples(listed(two), where_two).map(
    lambda p: f"Select A.k, B.k, {p[0]} From A, B Where {p[1]}"
)
self_joins = st.just(
    "Select X.k, Y.v, X.v From A As X, A As Y Where X.k = Y.k And X.j = Y.j And X.j = Y.k"
)
groups = st.tuples(listed(aggregates), where_one, st.sampled_from(["k", "j, s", "k / 2", "s"])).map(
    lambda p: f"Select {p[2]}, {p[0]} From A Where {p[1]} Group By {p[2]} Having Count(*) > 1"
)
totals = st.tuples(listed(aggregates), where_one).map(
    lambda p: f"Select {p[0]} From A Where {p[1]}"
)


@settings(max_examples=250, deadline=None)
@given(text=st.one_of(selections, joins, self_joins, groups, totals), data=data_sets)
def test_a_translated_query_means_what_it_means_in_sql(text: Any, data: Any) -> None:
    assert by_levada(text, data) == by_sqlite(text, data)
