"""Aggregates of the user over columns (``core.user_functions``): part of ``aggregate_functions``.

The partials of aggregate j are ``a{j}.n``, its values, ``a{j}.err``, its rows without one, and a
column for each column of the user's state. The user's functions see only groups with values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from levada.core.array_types import Ints, Longs
from levada.core.frame import Column, Frame
from levada.core.user_functions import UserAggregate, ValueType, require
from levada.errors import UserFunctionError
from levada.kernels.keyed.group_sums import sum_weights
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions.user_functions import (
    DTYPES,
    KINDS,
    argument,
    read_frame,
    read_result,
)
from levada.operators.rows.term_columns import column
from levada.plan.execution.steps import Aggregate


def fold(
    rows: Frame, codes: Ints, g: int, spec: Aggregate, p: str, *, pool: TermLookup
) -> dict[str, Column]:
    """Returns the partials of g groups from rows."""
    made = _aggregate(spec)
    values, fits = argument(column(rows, spec.slot, pool), made.arguments[0], rows.n)
    ones = np.ones(rows.n, np.int64)
    out: dict[str, Column] = {
        p + "n": sum_weights(codes, ones * fits, g),
        p + "err": sum_weights(codes, ones * ~fits, g),
    }
    at = np.flatnonzero(fits)
    frame = pl.DataFrame({"group": codes[at].astype(np.int64), "value": values.gather(at)})
    return out | _states(made, (lambda: made.fold(frame)) if len(at) else None, p, g)


def merge(
    parts: Frame, codes: Ints, g: int, spec: Aggregate, p: str, *, chosen: Longs | None
) -> dict[str, Column]:
    """Returns the partials of g groups from partials."""
    made = _aggregate(spec)
    rows = parts if chosen is None else parts.take(chosen)
    out: dict[str, Column] = {p + n: sum_weights(codes, rows[p + n], g) for n in ("n", "err")}
    at = np.flatnonzero(rows[p + "n"] > 0)
    groups = pl.Series("group", codes[at].astype(np.int64))
    frame = _frame(made, rows, p, at).insert_column(0, groups)
    return out | _states(made, (lambda: made.merge(frame)) if len(at) else None, p, g)


def finish(parts: Frame, spec: Aggregate, p: str, *, tuples: bool) -> dict[str, Column]:
    """Returns the value columns of the aggregate, one row a group."""
    made, n = _aggregate(spec), parts.n
    bound = parts[p + "n"] > 0
    if not tuples:
        bound &= parts[p + "err"] == 0
    out: dict[str, Column] = {
        "k": np.zeros(n, np.uint8),
        "d": np.zeros(n),
        "m": np.zeros(n, np.int64),
        "c": np.zeros(n, np.uint8),
    }
    at = np.flatnonzero(bound)
    if not len(at):
        return out
    frame = _frame(made, parts, p, at)
    values = read_result(made, made.returns, lambda: made.finish(frame), len(at))
    some = values.is_not_null().to_numpy()
    values, at = values.filter(some), at[some]
    out["k"][at] = KINDS[made.returns]
    out["d"][at] = values.cast(pl.Float64).to_numpy() + 0.0
    if made.returns is not ValueType.DOUBLE:
        out["m"][at] = values.cast(pl.Int64).to_numpy()
    return out


def _aggregate(spec: Aggregate) -> UserAggregate:
    assert spec.separator is not None, "an aggregate of the user has an IRI"
    made = require(spec.separator)
    if not isinstance(made, UserAggregate):
        raise UserFunctionError(f"<{made.iri}> was an aggregate, and is a function now.")
    return made


def _frame(made: UserAggregate, rows: Frame, p: str, at: Longs) -> pl.DataFrame:
    """Returns the states at these rows, under the names of the user. Raises ``UserFunctionError``
    if the stored ones are of another declaration.
    """
    names = {name: f"{p}{kind.value}.{name}" for name, kind in made.state.items()}
    stored = {n for n in rows.columns if n.startswith(p) and n[len(p) :] not in ("n", "err")}
    if stored != set(names.values()):
        raise UserFunctionError(
            f"The aggregate <{made.iri}> has another state than the one that is stored.",
            hint="Give the new one another IRI, or take the query out and add it again.",
        )
    return pl.DataFrame([pl.Series(name, rows[column][at]) for name, column in names.items()])


def _states(
    made: UserAggregate, call: Callable[[], Any] | None, p: str, g: int
) -> dict[str, Column]:
    """Returns the states of g groups from the user's frame; groups without values have zeros."""
    out: dict[str, Column] = {
        f"{p}{kind.value}.{name}": np.zeros(g, DTYPES[kind]) for name, kind in made.state.items()
    }
    if call is not None:
        states = read_frame(made, call, ("group", g), made.state, nullable=False)
        groups = states["group"].to_numpy()
        if len(np.unique(groups)) < len(groups):
            raise UserFunctionError(f"The aggregate <{made.iri}> returned a group twice.")
        for name, kind in made.state.items():
            out[f"{p}{kind.value}.{name}"][groups] = states[name].to_numpy()
    return out
