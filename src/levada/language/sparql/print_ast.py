"""Prints the stable text form of the syntax tree, for ``explain --stage ast``: an indented
s-expression.

Each node is ``(name part ...)``: its class in kebab case, then its fields in order, without
positions and empty fields. Terms are in N-Triples, variables are ``?x``, operators have their
spelling. A node that fits a line stays on one.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from levada.core.event_time import shown_duration
from levada.core.expressions import AggregateFunction
from levada.core.rdf_terms import Blank, Iri, Literal
from levada.language.sparql import ast

_WIDTH = 100
Sexpr = str | list[Any]
_DURATION_NODES = (
    ast.Range,
    ast.Session,
    ast.Reporting,
)  # nodes of which each number is a duration
_LABELLED = {
    "base",
    "every",
    "output",
    "t0",
    "to",
    "group_by",
    "having",
    "order_by",
    "limit",
    "offset",
    "separator",
    "variables",
    "rows",
    "values",
}


def show(node: ast.QueryUnit) -> str:
    """The text form of a query's tree.

    >>> from levada.language import parse
    >>> text = "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <w> ON <s> [NOW] "
    >>> print(show(parse(text + "{ WINDOW <w> { ?s ?p 1.5 } }")))
    (query-unit
      (select ALL (projected ?n (COUNT *)))
      (window-clause <w> <s> NOW)
      (group (window <w> (group (triples (?s ?p "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>))))))
    """
    return _render(_sexpr(node), 0)


def _sexpr(value: Any) -> Sexpr:
    match value:
        case Iri() | Literal() | Blank():
            return str(value)
        case ast.Var(name):
            return f"?{name}"
        case ast.Constant(term):
            return str(term)
        case ast.BlankNode(label):
            return f"_:{label}"
        case ast.Triple(subject, predicate, object_):
            return [_sexpr(subject), _sexpr(predicate), _sexpr(object_)]
        case ast.Operation(operator, operands):
            return [operator, *map(_sexpr, operands)]
        case ast.BuiltIn(name, args) | ast.FunctionCall(name, args, False):
            return [str(name), *map(_sexpr, args)]
        case ast.Aggregate(name, None, distinct, _):
            return [name, *(["DISTINCT"] if distinct else []), "*"]
        case ast.Aggregate(AggregateFunction.USER, arg, distinct, iri):
            return [f"<{iri}>", *(["DISTINCT"] if distinct else []), _sexpr(arg)]
        case ast.Aggregate(name, arg, distinct, separator):
            extra = [] if separator is None else [["separator", str(Literal(separator))]]
            return [name, *(["DISTINCT"] if distinct else []), _sexpr(arg), *extra]
        case Enum():
            return str(value.value)
        case None:
            return "UNDEF"
        case tuple():
            return [_sexpr(item) for item in value]
        case _ if is_dataclass(value):
            return _node(value)
        case _:
            return str(value)


def _node(node: Any) -> Sexpr:
    """Prints a node by class and fields; a tuple of children is spliced in unless its name is
    needed.
    """
    out: list[Any] = [re.sub(r"(?<!^)(?=[A-Z])", "-", type(node).__name__).lower()]
    for field in fields(node):
        value = getattr(node, field.name)
        if (
            isinstance(node, _DURATION_NODES)
            and type(value) is int
            and field.name != "t0"
            and value
        ):
            value = shown_duration(value)
        if (
            not field.compare
            or value in (None, False, (), ast.Modifiers())
            or value in (field.default, ast.Reporting())
        ):
            continue
        if field.name == "output" and node.register is not None:
            continue  # REGISTER shows it
        if value is True:
            out.append(field.name)
        elif field.name in _LABELLED:
            parts = (
                [_sexpr(item) for item in value] if isinstance(value, tuple) else [_sexpr(value)]
            )
            out.append([field.name.replace("_", "-"), *parts])
        elif isinstance(value, tuple):
            out += map(_sexpr, value)
        else:
            out.append(_sexpr(value))
    return out


def _render(sexpr: Sexpr, indent: int) -> str:
    line = _flat(sexpr)
    if isinstance(sexpr, str) or indent + len(line) <= _WIDTH:
        return " " * indent + line
    head = next((i for i, part in enumerate(sexpr) if not isinstance(part, str)), len(sexpr))
    if head == 0:
        return " " * indent + "(\n" + "\n".join(_render(part, indent + 2) for part in sexpr) + ")"
    first = " " * indent + "(" + " ".join(sexpr[:head])
    return "\n".join([first, *(_render(part, indent + 2) for part in sexpr[head:])]) + ")"


def _flat(sexpr: Sexpr) -> str:
    return sexpr if isinstance(sexpr, str) else "(" + " ".join(map(_flat, sexpr)) + ")"
