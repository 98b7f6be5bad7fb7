"""Formulas over the columns of a row, as mapping files have them: a small part of Python's
expressions, evaluated by Polars.

    -1 if avgSpeed == 0 else 1030 / avgSpeed
    totalspaces - vehiclecount
    replace(timestamp, " ", "T")

    names        columns, earlier formulas, ``row`` (the number of the record in its file, from 0)
    constants    numbers, texts in quotes, True, False
    operators    + - * / (always a double; by zero: no value), == != < <= > >=, and or not,
                 A if CONDITION else B
    functions    those of ``FUNCTIONS``

What has no value makes no value. There is nothing else: no attribute, index, loop or name of
Python's. A formula sees one row and nothing beside it, so the cut into epochs never shows. Cost: a
few column operations of Polars a formula.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from levada.errors import UsageError, near

DTYPES: dict[str, pl.DataType] = {
    "integer": pl.Int64(), "double": pl.Float64(), "boolean": pl.Boolean(), "string": pl.String(),
}  # fmt: skip
_BINARY: dict[type[ast.operator], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a.cast(pl.Float64) / pl.when(b != 0).then(b.cast(pl.Float64)),
}
_COMPARE: dict[type[ast.cmpop], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _part(text: pl.Expr, separator: pl.Expr, number: pl.Expr) -> pl.Expr:
    return text.str.split(separator).list.get(number, null_on_oob=True)


FUNCTIONS: dict[str, tuple[int, Callable[..., pl.Expr]]] = {
    "replace": (3, lambda text, old, new: text.str.replace_all(old, new, literal=True)),
    "part": (3, _part),
    "lower": (1, lambda text: text.str.to_lowercase()),
    "upper": (1, lambda text: text.str.to_uppercase()),
    "trim": (1, lambda text: text.str.strip_chars()),
    "integer": (1, lambda value: value.cast(pl.Int64, strict=False)),
    "double": (1, lambda value: value.cast(pl.Float64, strict=False)),
    "string": (1, lambda value: value.cast(pl.String)),
    "round": (1, lambda value: value.round(0)),
    "either": (2, lambda value, other: pl.coalesce(value, other)),
}


def compile_(text: str, columns: Mapping[str, str]) -> tuple[pl.Expr, str]:
    """A formula over columns of these types, and the type of its values. Raises ``UsageError``.

    >>> expression, kind = compile_("-1 if v == 0 else 10 / v", {"v": "integer"})
    >>> kind, pl.DataFrame({"v": [0, 4]}).select(x=expression)["x"].to_list()
    ('double', [-1.0, 2.5])
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        where = (
            f", column {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        )
        raise UsageError(f"The formula {text}{where} is not well-formed.") from error
    expression = _Formula(text.strip(), columns).visit(tree.body)
    try:
        schema = {name: DTYPES[kind] for name, kind in columns.items()}
        dtype = pl.DataFrame(schema=schema).select(value=expression)["value"].dtype
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"The formula {text} cannot be: {str(error).splitlines()[0]}.") from error
    for kind, wanted in (
        ("integer", dtype.is_integer()),
        ("double", dtype.is_float()),
        ("boolean", dtype == pl.Boolean),
    ):
        if wanted:
            return expression.cast(DTYPES[kind]), kind
    return expression.cast(pl.String), "string"


def names_of(text: str) -> list[str]:
    """The names in a formula, in order; those of functions left out.

    >>> names_of("round(a) + row if b else 'c'")
    ['a', 'row', 'b']
    """
    tree = ast.parse(text.strip(), mode="eval")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [
        node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called
    ]
    return list(dict.fromkeys(node.id for node in sorted(found, key=lambda node: node.col_offset)))


class _Formula:
    """One formula on its way to Polars: a method for each kind of node that there is."""

    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self.text, self.columns = text, columns

    def visit(self, node: ast.expr) -> pl.Expr:
        match node:
            case ast.Constant(value=int() | float() | str() as value):
                return pl.lit(value)
            case ast.Name(id=name):
                if name not in self.columns:
                    raise self.wrong(node, f"{name} is no column", near(name, self.columns))
                return pl.col(name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](self.visit(left), self.visit(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.visit(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self.visit(operand)
            case ast.BoolOp(op=op, values=[first, *others]):
                found = self.visit(first)
                for other in others:
                    found = (
                        found & self.visit(other)
                        if isinstance(op, ast.And)
                        else found | self.visit(other)
                    )
                return found
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](self.visit(left), self.visit(right))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return (
                    pl.when(self.visit(test)).then(self.visit(body)).otherwise(self.visit(orelse))
                )
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self.call(node, name, arguments)
        raise self.wrong(node, "this is nothing that a formula has", "")

    def call(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> pl.Expr:
        """A function's value."""
        if name not in FUNCTIONS:
            raise self.wrong(node, f"{name} is no function", near(name, FUNCTIONS))
        count, function = FUNCTIONS[name]
        if len(arguments) != count:
            raise self.wrong(
                node, f"{name} takes {count} value{'s' * (count > 1)}, not {len(arguments)}", ""
            )
        made: Any = function(*map(self.visit, arguments))
        assert isinstance(made, pl.Expr), "a function makes an expression"
        return made

    def wrong(self, node: ast.expr, what: str, hint: str) -> UsageError:
        return UsageError(
            f"The formula {self.text}, column {node.col_offset + 1}: {what}.", hint=hint
        )
