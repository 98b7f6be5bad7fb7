"""Compiles formulas over the columns of a row, as in mapping files: a small part of Python's
expressions, evaluated by Polars.

    -1 if avgSpeed == 0 else 1030 / avgSpeed
    totalspaces - vehiclecount
    replace(timestamp, " ", "T")

    names        columns, earlier formulas, ``row`` (the number of the record in its file, from 0),
                 paths such as ``payload.temp``; others as ``column("CO(GT)")``
    constants    numbers, texts in quotes, True, False
    operators    + - * / (always a double; by zero: no value), == != < <= > >=, and or not,
                 A if CONDITION else B
    functions    those of ``FUNCTIONS``

An operand without a value makes no value, and neither does an integer beyond 64 bits. Indexes,
loops and Python's own names are not allowed. A formula reads one row only, so the division into
epochs has no effect. Cost: a few column operations of Polars a formula.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import polars as pl
import polars.selectors as cs

from levada.errors import UsageError, near

DTYPES: dict[str, pl.DataType] = {
    "integer": pl.Int64(), "double": pl.Float64(), "boolean": pl.Boolean(), "string": pl.String(),
}  # fmt: skip
_MAX_NUMBER = 2**63 - 1
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


def _add(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """Returns the sum of integers; no value if it wraps: then its sign is that of neither."""
    total = a + b
    return pl.when(((a < 0) != (b < 0)) | ((total < 0) == (a < 0))).then(total)


def _subtract(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """Returns the difference, like ``_add``."""
    total = a - b
    return pl.when(((a < 0) == (b < 0)) | ((total < 0) == (a < 0))).then(total)


def _multiply(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """Returns the product, like ``_add``: the product of doubles shows far overflows, the sign near
    ones.
    """
    product, about = a * b, a.cast(pl.Float64) * b.cast(pl.Float64)
    return pl.when((about.abs() < 9.3e18) & (product.sign() == about.sign())).then(product)


_EXACT = {ast.Add: _add, ast.Sub: _subtract, ast.Mult: _multiply}


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


def column_of(name: str) -> pl.Expr:
    """Returns the values of the column of exactly this name, also if Polars would read it as a
    pattern (``*``, ``^a$``).

    >>> pl.DataFrame({"*": [1], "b": [2]}).select(v=column_of("*"))["v"].to_list()
    [1]
    """
    return cs.by_name(name).as_expr().alias("") if name[:1] in ("*", "^") else pl.col(name)


def compile_(text: str, columns: Mapping[str, str]) -> tuple[pl.Expr, str]:
    """Compiles a formula over columns of these types; returns it with the type of its values.
    Raises ``UsageError``.

    >>> expression, kind = compile_("-1 if v == 0 else 10 / v", {"v": "integer"})
    >>> kind, pl.DataFrame({"v": [0, 4]}).select(x=expression)["x"].to_list()
    ('double', [-1.0, 2.5])
    """
    try:
        tree = _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
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
            return expression.cast(DTYPES[kind], strict=False), kind
    return expression.cast(pl.String), "string"


def _tree(text: str) -> ast.Expression:
    """Parses a formula. Python's warnings (``1if``) are hidden from users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(text.strip(), mode="eval")


def names_of(text: str) -> list[str]:
    """Returns the names in a formula, in order, without those of functions.

    >>> names_of("round(a) + row if b else 'c' + column('d e')")
    ['a', 'row', 'b', 'd e']
    """
    tree = _tree(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    paths = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    placed_names = []
    for node in ast.walk(tree):
        name = None if id(node) in paths else _column(node)
        if isinstance(node, ast.Name) and id(node) not in called | paths:
            name = node.id
        if name is not None:
            assert isinstance(node, ast.expr), "a name has a place"
            placed_names.append((node.col_offset, name))
    return list(dict.fromkeys(name for _, name in sorted(placed_names)))


def _column(node: ast.AST) -> str | None:
    """Returns the name of the column in ``column("..")``, or of a path such as ``a.b``."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=member):
            return f"{name}.{member}"
        case ast.Attribute(value=ast.Attribute() as inner, attr=member):
            outer = _column(inner)
            return None if outer is None else f"{outer}.{member}"
        case ast.Call(
            func=ast.Name(id="column"), args=[ast.Constant(value=str(name))], keywords=[]
        ):
            return name
    return None


class _Formula:
    """Compiles one formula to Polars, with a method for each kind of node."""

    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self.text, self.columns = text, columns

    def visit(self, node: ast.expr) -> pl.Expr:
        match node:
            case ast.Constant(value=int() | float() | str() as value):
                return self.constant(node, value)
            case ast.Name(id=name):
                return self.column(node, name)
            case ast.Attribute() if (path := _column(node)) is not None:
                return self.column(node, path)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self.binary(type(op), self.visit(left), self.visit(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.negative(self.visit(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self.visit(operand)
            case ast.BoolOp(op=op, values=[first, *others]):
                join = operator.and_ if isinstance(op, ast.And) else operator.or_
                return reduce(join, map(self.visit, others), self.visit(first))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](self.visit(left), self.visit(right))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return (
                    pl.when(self.visit(test)).then(self.visit(body)).otherwise(self.visit(orelse))
                )
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                said = _column(node)
                return self.call(node, name, arguments) if said is None else self.column(node, said)
        raise self.wrong(node, "this is nothing that a formula has", "")

    def column(self, node: ast.expr, name: str) -> pl.Expr:
        """Returns a column's values."""
        if name not in self.columns:
            written = [n if n.isidentifier() else f"column({n!r})" for n in self.columns]
            raise self.wrong(node, f"{name} is no column", near(name, written))
        return column_of(name)

    def constant(self, node: ast.expr, value: int | float | str) -> pl.Expr:
        """Returns a constant's value."""
        if not isinstance(value, int) or isinstance(value, bool):
            return pl.lit(value)
        if value > _MAX_NUMBER:
            raise self.wrong(node, f"{value} has more than 64 bits", "")
        return pl.lit(value, pl.Int64)

    def negative(self, value: pl.Expr) -> pl.Expr:
        """Returns the negated value."""
        return _subtract(pl.lit(0, pl.Int64), value) if self.whole(value) else -value

    def binary(self, op: type[ast.operator], a: pl.Expr, b: pl.Expr) -> pl.Expr:
        """Returns an operator's value."""
        exact = _EXACT.get(op)
        return exact(a, b) if exact and self.whole(a) and self.whole(b) else _BINARY[op](a, b)

    def whole(self, value: pl.Expr) -> bool:
        """Whether the values are integers."""
        schema = {name: DTYPES[kind] for name, kind in self.columns.items()}
        try:
            return pl.DataFrame(schema=schema).select(value=value)["value"].dtype.is_integer()
        except pl.exceptions.PolarsError:
            return False  # the check of the whole formula reports the error

    def call(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> pl.Expr:
        """Returns a function's value."""
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
