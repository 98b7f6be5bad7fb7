"""Terms and columns in short form for table-driven tests.

``1``, ``1.5``, ``1e0``, ``true`` as in SPARQL; ``"01"^^xsd:byte``; ``"a"@en``; ``<http://a>``;
``_:b``; ``-`` is unbound.
"""

import re
from functools import partial

import numpy as np
import polars as pl

from levada.core.expressions import Call, Const, Expression, Function, Var
from levada.core.rdf_terms import XSD, Literal, Term, parse_term
from levada.kernels.terms.term_ids import identify
from levada.operators.expressions import Column, Scope, evaluate, from_texts
from levada.operators.expressions.term_values import classify

IDENTIFY = partial(identify, seed=7)
_NUMBERS = (
    (re.compile(r"[+-]?[0-9]+"), "integer"),
    (re.compile(r"[+-]?[0-9]*\.[0-9]+"), "decimal"),
    (re.compile(r"[+-]?[0-9.]+[eE][+-]?[0-9]+"), "double"),
    (re.compile(r"true|false"), "boolean"),
)


def term(text: str) -> Term | None:
    """The term of a short form."""
    if text == "-":
        return None
    for pattern, name in _NUMBERS:
        if pattern.fullmatch(text):
            return Literal(text, XSD + name)
    return parse_term(re.sub(r"\^\^xsd:(\w+)$", rf"^^<{XSD}\1>", text))


def const(text: str) -> Const:
    """The term of a short form, as an expression."""
    found = term(text)
    assert found is not None
    return Const(found)


def split(args: str) -> list[str]:
    """Short forms separated by blanks; strings may hold blanks."""
    return re.findall(r'"(?:\\.|[^"\\])*"[^ ]*|[^ ]+', args)


def texts(*short: str) -> pl.Series:
    return pl.Series([None if (t := term(s)) is None else str(t) for s in short], dtype=pl.String)


def column(*short: str) -> Column:
    """A column that was shipped whole: identities, values and texts."""
    shipped = texts(*short)
    kind, dbl, man, scale = classify(shipped)
    x, y = IDENTIFY(shipped)
    return Column(len(shipped), x, y, kind, dbl, man, scale, lambda: shipped)


def text_column(*short: str) -> Column:
    return from_texts(texts(*short))


def scope(n: int = 1, **columns: Column) -> Scope:
    return Scope(n, columns, now=1_000, seeds=np.arange(n, dtype=np.uint64), identify=IDENTIFY)


def call(function: Function, *args: Expression) -> Call:
    return Call(function, args)


def of_constants(function: Function, *args: str) -> str | None:
    """The text of a call on constants (an unbound argument is an unknown variable)."""
    terms = [term(a) for a in args]
    expression = Call(function, tuple(Var("none") if t is None else Const(t) for t in terms))
    return evaluate(expression, scope()).texts()[0]


def of_columns(function: Function, *args: str) -> str | None:
    """The same with the arguments as variables of two rows, so that nothing is a constant."""
    names = [f"v{i}" for i in range(len(args))]
    columns = {name: column(a, a) for name, a in zip(names, args, strict=True)}
    done = evaluate(Call(function, tuple(map(Var, names))), scope(2, **columns)).texts()
    assert done[0] == done[1]
    return done[0]


def expected(short: str) -> str | None:
    return texts(short)[0]
