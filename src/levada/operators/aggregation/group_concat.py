"""GROUP_CONCAT of report rows (SPARQL 1.1, 18.5.1.7): the strings of a group in order of their
characters, a separator between.

The specification leaves the order open; here it is that of the strings, so that it follows from the
group alone. The result is a simple literal, also of strings with language tags (as in the W3C tests
agg-groupconcat-4 to 6; pyoxigraph keeps a tag that all share); of no string it is "". The values
must be string literals, as for CONCAT: a number, an IRI, an unbound value is an error, and the
group's value is unbound (``GROUP_CONCAT(STR(?x))`` takes any literal or IRI). Parts are joined as
they are written in canonical texts, escapes and all, so no string is decoded. Cost: a sort of the
rows by group and string.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core import query_limits
from levada.core.expression_budget import Account
from levada.core.frame import Column, Frame
from levada.core.rdf_terms import Kind, Literal
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions.lexical_forms import patch
from levada.operators.rows.term_columns import column
from levada.plan.execution.steps import Aggregate

_STRING = r'(?s)^"(.*)"(?:@[^"]*)?$'  # between the quotes; no match for what is no string


def concatenate(
    rows: Frame, codes: npt.NDArray[np.int32], g: int, spec: Aggregate, pool: TermLookup
) -> dict[str, Column]:
    """The columns of the value of each of g groups (``codes``: each row's group), as
    ``aggregates.finish`` reads them.
    """
    assert spec.separator is not None, "a concatenation has a separator"
    texts = column(rows, spec.slot, pool).texts()
    parts = pl.DataFrame({"group": codes, "part": texts.str.extract(_STRING)}).sort("group", "part")
    between = str(Literal(spec.separator))[1:-1]
    parts = _check_lengths(parts, g, len(between.encode()), pool.spent.account())
    joined = parts.group_by("group", maintain_order=True).agg(
        pl.col("part").str.join(between, ignore_nulls=False)
    )
    whole = patch(pl.Series([""]).new_from_index(0, g), joined["group"].to_numpy(), joined["part"])
    return _literals(whole, pool)


def _check_lengths(parts: pl.DataFrame, g: int, between: int, account: Account) -> pl.DataFrame:
    """Returns the parts, null in the groups whose text would be too long. Raises
    ``ExcessError``.
    """
    group = parts["group"].to_numpy()
    sizes = parts["part"].str.len_bytes().fill_null(0).to_numpy().astype(np.int64) + between
    if (total := int(sizes.sum())) <= query_limits.LONGEST_TEXT:
        account.add(total)
        return parts
    too_long = account.make(np.bincount(group, weights=sizes, minlength=g).astype(np.int64))
    return parts.with_columns(part=parts["part"].set(pl.Series(too_long[group]), None))


def _literals(bodies: pl.Series, pool: TermLookup) -> dict[str, Column]:
    """Returns simple literals from the texts between their quotes; null is unbound."""
    x, y = pool.identify(pl.select(pl.lit('"') + pl.lit(bodies) + pl.lit('"')).to_series())
    kind = np.where(bodies.is_null().to_numpy(), np.uint8(Kind.UNBOUND), np.uint8(Kind.STRING))
    n = len(bodies)
    none: dict[str, Column] = {
        "d": np.zeros(n),
        "m": np.zeros(n, np.int64),
        "c": np.zeros(n, np.uint8),
    }
    return {"x": x, "y": y, "k": kind, **none, "err": np.zeros(n, np.int64)}
