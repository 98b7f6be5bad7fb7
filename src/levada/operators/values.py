"""Slots as columns of terms for expressions, ranks and results; and computed columns back into slots.

``column`` gives an expression the facets that the frame has; texts come from the pool when they are asked for, or, for
typed columns, from the values. ``slot`` turns a computed column into the facets that a layout wants.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from levada.model.frame import Column as Array
from levada.model.frame import Frame
from levada.operators.expressions.values import Column
from levada.operators.pool import Pool
from levada.operators.rows import value
from levada.plan.layout import Facet, slot_columns


def column(frame: Frame, i: int, pool: Pool) -> Column:
    """Slot ``i`` as a column of terms."""
    get = frame.columns.get
    text: Callable[[], pl.Series] | None = None
    if f"x{i}" in frame:
        text = partial(pool.texts, frame[f"x{i}"], frame[f"y{i}"])
    if f"k{i}" not in frame:
        return Column(frame.n, get(f"x{i}"), get(f"y{i}"), text=text)
    d, m, c = (value(frame, name, i) for name in "dmc")
    return Column(frame.n, get(f"x{i}"), get(f"y{i}"), frame[f"k{i}"], d, m, c, text)


def slot(values: Column, i: int, facets: Facet, pool: Pool) -> dict[str, Array]:
    """A computed column as the columns of slot ``i``; its texts become known to the pool where they are wanted."""
    out: dict[str, Array] = {}
    if Facet.ID in facets or Facet.TEXT in facets:
        known = values.x is not None and values.y is not None and Facet.TEXT not in facets
        x, y = (values.x, values.y) if known else pool.identify(values.texts())
        assert x is not None and y is not None, "an identified column has both halves"
        out[f"x{i}"], out[f"y{i}"] = x, y
    names = [n for n in slot_columns(i, facets) if n[0] in "kdmc"]
    if names:
        by_name: dict[str, Array] = dict(zip("kdmc", values.values(), strict=True))
        out.update({n: by_name[n[0]] for n in names})
    return {name: np.ascontiguousarray(a) for name, a in out.items()}
