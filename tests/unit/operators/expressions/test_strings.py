"""String functions over whole columns say what they say term by term."""

import numpy as np
import polars as pl
import pytest
from shorthand import IDENTIFY, term

from levada.core.expressions import Function as Fn
from levada.operators.expressions.row_blocks import strict
from levada.operators.expressions.scalar.function_table import SCALAR
from levada.operators.expressions.strings import STRINGS, string_function
from levada.operators.expressions.term_values import MAX_PARSED_TEXTS, Column, constant, from_texts

ARGUMENTS = {Fn.STR: 1, Fn.STRLEN: 1, Fn.UCASE: 1, Fn.LCASE: 1, Fn.CONCAT: 3}
BODIES = (
    "",
    "a",
    "ab",
    "aba",
    "b",
    "B",
    "ß",
    "İ",
    "é\U00010348",
    "a.b",
    "a\\\\b",
    'a\\"b',
    "\\n",
    "a b",
    "^\\u0001",
)
OTHERS = (
    "<http://e/a>",
    "<http://e/ab>",
    "1",
    "1.5",
    "true",
    '"ab"@en',
    '"a"@en',
    '"a"@de',
    '"x"^^<http://e/d>',
    "_:b",
    "-",
)
POOL = [None if (t := term(s)) is None else str(t) for s in (*(f'"{b}"' for b in BODIES), *OTHERS)]


def drawn(rng: np.random.Generator, n: int, pool: list[str | None]) -> Column:
    return from_texts(pl.Series([pool[i] for i in rng.integers(0, len(pool), n)], dtype=pl.String))


def said(column: Column) -> list[object]:
    kind, dbl, man, scale = column.values()
    x, y = column.identify(IDENTIFY)
    return list(zip(column.texts().to_list(), kind, dbl, man, scale, x, y, strict=True))


@pytest.mark.parametrize("function", sorted(STRINGS, key=str))
@pytest.mark.parametrize("seed", range(4))
def test_over_columns_is_term_by_term(function: Fn, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = MAX_PARSED_TEXTS + 200
    pool = POOL if seed < 3 else POOL[: len(BODIES) - 5]  # plain ones alone in the last
    columns = [drawn(rng, n, pool) for _ in range(ARGUMENTS.get(function, 2))]
    if seed == 1 and len(columns) > 1:
        columns[1] = constant(term('"a"'))
    if seed == 2 and len(columns) > 1:
        columns[1] = constant(term('"b"@en'))
    assert said(string_function(function, columns)) == said(strict(SCALAR[function], columns))


def test_numbers_that_came_without_texts_have_their_strings() -> None:
    n = MAX_PARSED_TEXTS + 1
    v = Column(
        n,
        kind=np.full(n, 10, np.uint8),
        dbl=np.arange(n, dtype=np.float64),
        man=np.arange(n),
        scale=np.zeros(n, np.uint8),
    )
    assert string_function(Fn.STR, [v]).texts().to_list() == [f'"{i}"' for i in range(n)]


def test_an_argument_that_is_never_bound_is_an_error_everywhere() -> None:
    texts = from_texts(pl.Series(['"a"'] * (MAX_PARSED_TEXTS + 1)))
    assert (
        string_function(Fn.CONCAT, [texts, constant(None)]).texts().null_count()
        == MAX_PARSED_TEXTS + 1
    )
