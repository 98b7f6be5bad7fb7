"""SPARQL expressions over columns of values (SPARQL 1.1, section 17;
docs/architecture.md#a-triples-way).

Two paths, one meaning: operators on exact numbers, booleans, times and identities are vectorised
over NumPy columns; all else, and every row that the vectorised path cannot decide, is evaluated
once per distinct combination of arguments by the functions of ``scalar``. Modules: ``values``
(columns), ``rows`` (blocks of one kind, the general path), ``compare``, ``arithmetic``, ``logic``,
``seeded``, ``evaluate``, ``rank`` (ORDER BY, MIN, MAX).
"""

from levada.operators.expressions.evaluate import BY_TEXT, Scope, evaluate, truth
from levada.operators.expressions.sort_keys import compare_rank, order_rank, order_rows
from levada.operators.expressions.term_values import (
    Column,
    Identify,
    constant,
    from_texts,
    gather,
)

__all__ = [
    "BY_TEXT",
    "Column",
    "Identify",
    "Scope",
    "compare_rank",
    "constant",
    "evaluate",
    "from_texts",
    "gather",
    "order_rank",
    "order_rows",
    "truth",
]
