"""SPARQL structures as texts, in the words of RSP-QL, CQELS-QL and C-SPARQL."""

from __future__ import annotations

from oracle.queries import (
    Bind,
    Exists,
    Expression,
    Filter,
    Group,
    In,
    Item,
    Minus,
    Optional,
    Part,
    Query,
    Select,
    Sub,
    Triple,
    Union,
    Values,
    Window,
)

NAMES = {
    "count": "COUNT", "sum": "SUM", "avg": "AVG", "min": "MIN", "max": "MAX", "bound": "BOUND",
    "coalesce": "COALESCE", "if": "IF", "str": "STR", "strlen": "STRLEN", "contains": "CONTAINS",
    "strstarts": "STRSTARTS", "isiri": "isIRI", "isnumeric": "isNUMERIC",
}  # fmt: skip


def text(query: Query) -> str:
    """The text of a query; what its options say is not in it."""
    where = "{ " + _group(query.select.parts, query) + " }"
    head, tail = _head(query), _tail(query.select)
    if query.dialect == "cqels":
        register = (
            "" if query.output == "ISTREAM" else f"REGISTER {query.output} <{name(query)}> AS "
        )
        if query.form == "construct":
            register = f"REGISTER {query.output} <{name(query)}> AS "
        return f"{register}{head} WHERE {where}{tail}"
    if query.dialect == "csparql":
        froms = " ".join(
            f"FROM STREAM <{w.stream}> [{brackets(w, query)}]" for _, w in query.windows
        )
        return f"REGISTER QUERY {query.name} AS {head} {froms} WHERE {where}{tail}"
    froms = " ".join(
        f"FROM NAMED WINDOW <http://e/{n}> ON <{w.stream}> [{brackets(w, query)}]"
        for n, w in query.windows
    )
    register = "" if query.output == "RSTREAM" and query.form != "construct" else (
        f"REGISTER {query.output} <{name(query)}> AS "
    )  # fmt: skip
    return f"{register}{head} {froms} WHERE {where}{tail}"


def name(query: Query) -> str:
    """The stream that a query makes."""
    return f"http://e/made/{query.name}"


def brackets(window: Window, query: Query) -> str:
    """What stands in a window's brackets."""
    a, b = (f"{ms} ms" for ms in (window.a, window.b))
    if window.kind == "elements" and query.dialect == "csparql" and window.n == window.m:
        return f"TRIPLES {window.n}"
    return {
        "range": f"RANGE {a}", "step": f"RANGE {a} STEP {b}", "now": "NOW", "all": "ALL",
        "triples": f"TRIPLES {window.n}", "elements": f"ELEMENTS {window.n} STEP {window.m}",
        "session": f"SESSION {a}", "past": f"FROM NOW-{window.a}ms TO NOW-{window.e}ms",
        "paststep": f"FROM NOW-{window.a}ms TO NOW-{window.e}ms STEP {b}",
    }[window.kind]  # fmt: skip


def _head(query: Query) -> str:
    if query.form == "ask":
        return "ASK"
    if query.form == "construct":
        return "CONSTRUCT { " + " . ".join(f"{t.s} {t.p} {t.o}" for t in query.template) + " }"
    return _select(query.select)


def _select(select: Select) -> str:
    items = " ".join(_item(i) for i in select.items)
    return f"SELECT {'DISTINCT ' if select.distinct else ''}{items}"


def _item(item: Item) -> str:
    return item.name if item.value is None else f"({expression(item.value)} AS {item.name})"


def _tail(select: Select) -> str:
    found = ""
    if select.group:
        found += " GROUP BY " + " ".join(select.group)
    if select.having is not None:
        found += f" HAVING ({expression(select.having)})"
    if select.order:
        found += " ORDER BY " + " ".join(f"DESC({v})" if d else v for v, d in select.order)
    return found if select.limit is None else f"{found} LIMIT {select.limit}"


def _group(parts: Group, query: Query) -> str:
    found = []
    for i, part in enumerate(parts):
        dot = isinstance(part, Triple) and i + 1 < len(parts) and isinstance(parts[i + 1], Triple)
        found.append(_part(part, query) + (" ." if dot else ""))
    return " ".join(found)


def _part(part: Part, query: Query) -> str:
    match part:
        case Triple(s, p, o):
            return f"{s} {p} {o}"
        case In(graph, parts):
            return f"{_graph(graph, query)} {{ {_group(parts, query)} }}".strip()
        case Optional(parts):
            return f"OPTIONAL {{ {_group(parts, query)} }}"
        case Minus(parts):
            return f"MINUS {{ {_group(parts, query)} }}"
        case Union(left, right):
            return f"{{ {_group(left, query)} }} UNION {{ {_group(right, query)} }}"
        case Exists(parts, negated):
            return f"FILTER {'NOT ' if negated else ''}EXISTS {{ {_group(parts, query)} }}"
        case Filter(condition):
            return f"FILTER({expression(condition)})"
        case Bind(value, name):
            return f"BIND({expression(value)} AS {name})"
        case Values(name, terms):
            return f"VALUES {name} {{ {' '.join(terms)} }}"
        case Sub(select):
            where = "{ " + _group(select.parts, query) + " }"
            return f"{{ {_select(select)} WHERE {where}{_tail(select)} }}"


def _graph(graph: str, query: Query) -> str:
    if graph.startswith("<"):
        return f"GRAPH {graph}"
    window = dict(query.windows)[graph]
    if query.dialect == "csparql":
        return ""
    if query.dialect == "cqels":
        return f"STREAM <{window.stream}> [{brackets(window, query)}]"
    return f"WINDOW <http://e/{graph}>"


def expression(of: Expression) -> str:
    """An expression, in brackets where that could matter."""
    if isinstance(of, str):
        return of
    args = [expression(a) for a in of.args]
    if of.op == "countd":
        return f"COUNT(DISTINCT {args[0]})"
    if of.op in NAMES:
        return f"{NAMES[of.op]}({', '.join(args)})"
    if of.op in ("in", "notin"):
        return f"({args[0]} {'IN' if of.op == 'in' else 'NOT IN'} ({', '.join(args[1:])}))"
    if len(args) == 1:
        return f"({of.op}{args[0]})"
    return "(" + f" {of.op} ".join(args) + ")"
