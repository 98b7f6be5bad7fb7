"""Operators of the user: rows of a stream to rows, with state for each key
(``core.user_functions.UserOperator``).

Rows are those of a key in the order of (ts, canonical text), as in count windows. An instant is
never in two epochs, so a key sees its rows in one order, however epochs and partitions divide them.
The state of a key is a few rows of columns of fixed size. An epoch writes the state of the keys
that it has seen anew, as the next version; parts are merged from the oldest on, and the last
version counts. A key without state keeps one row that says so. Cost: a call of the user's function
an epoch, over its rows and the state of their keys.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.frame import Column as Array
from levada.core.frame import Frame
from levada.core.user_functions import UserOperator, operator_of
from levada.errors import UserFunctionError
from levada.kernels.keyed.hash_groups import group
from levada.operators.expressions.user_functions import (
    DTYPES,
    argument,
    column_of,
    read_frame,
    run_user_code,
)
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.route_rows import gather
from levada.operators.rows.term_columns import column, slot
from levada.operators.state import counters
from levada.operators.state.state_parts import State
from levada.operators.windowed.count_window import Sequences, in_sequences
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

_KEPT = "#kept"


def user_operator(
    node: PlanNode[s.UserOperator], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """Returns the rows that the user's operator makes of new rows, and keeps its new state."""
    made, (frame,) = operator_of(node.step.iri), inputs
    if frame is None:
        return None
    if not node.alive.all():
        frame = frame.where(node.alive[frame["op"]])
    if not frame.n:
        return None
    fresh = in_sequences(node, frame, env.pool, node.step.keys)
    key = f"{node.id}.user"
    version, states = _states(made, env.state, key, fresh)
    rows = _rows(node, made, fresh, env)
    new, left = run_user_code(made, lambda: _as_pair(made.apply(rows, states)))
    out = read_frame(made, lambda: new, ("row", fresh.rows.n), made.returns)
    after = read_frame(made, lambda: left, ("key", len(fresh.k)), made.state, nullable=False)
    if made.state:
        _remember(node, made, env.state, key, fresh=fresh, version=version, after=after)
    return _output(node, made, fresh.rows, out, env) if out.height else None


def _rows(
    node: PlanNode[s.UserOperator], made: UserOperator, fresh: Sequences, env: OperatorContext
) -> pl.DataFrame:
    rows = fresh.rows
    columns: dict[str, object] = {
        "row": np.arange(rows.n),
        "key": fresh.of.astype(np.int64),
        "ts": rows[col.least(0)],
    }
    for name, at in node.step.reads:
        if name in made.takes:
            values, fits = argument(column(rows, at, env.pool), made.takes[name], rows.n)
            columns[name] = values if fits.all() else values.set(pl.Series(~fits), None)
    lacking = made.takes.keys() - columns.keys()
    if lacking:
        raise UserFunctionError(f"The operator <{made.iri}> now takes {min(lacking)}, too.")
    return pl.DataFrame(columns)


def _names(made: UserOperator) -> dict[str, str]:
    return {name: f"{kind.value}.{name}" for name, kind in made.state.items()}


def _states(
    made: UserOperator, state: State, key: str, fresh: Sequences
) -> tuple[Longs, pl.DataFrame]:
    """Returns the last version of each key's state (0: none), and its rows by the key's number."""
    version = np.zeros(len(fresh.k), np.int64)
    matches = counters.find(state, key, fresh.k, fresh.h)
    empty = {name: np.empty(0, DTYPES[kind]) for name, kind in made.state.items()}
    if matches is None:
        return version, pl.DataFrame({"key": np.empty(0, np.int64), **empty})
    of, rows = matches
    names = _names(made)
    if {n for n in rows.columns if "." in n} != set(names.values()):
        raise UserFunctionError(
            f"The operator <{made.iri}> has another state than the one that is stored.",
            hint="Give the new one another IRI, or take the query out and add it again.",
        )
    np.maximum.at(version, of, rows[col.NUMBER])
    at = np.flatnonzero((rows[col.NUMBER] == version[of]) & rows[_KEPT])
    at = at[np.lexsort((rows[col.WHOLE][at], of[at]))]
    columns = {name: rows[stored][at] for name, stored in names.items()}
    return version, pl.DataFrame({"key": of[at].astype(np.int64), **columns})


def _as_pair(result: object) -> tuple[pl.DataFrame, pl.DataFrame]:
    match result:
        case (pl.DataFrame() as rows, pl.DataFrame() as state):
            return rows, state
    raise TypeError("it returned no pair of frames, rows and state")


def _remember(
    node: PlanNode[s.UserOperator],
    made: UserOperator,
    state: State,
    key: str,
    *,
    fresh: Sequences,
    version: Longs,
    after: pl.DataFrame,
) -> None:
    """Keeps the new state of the keys, in the order of the user's rows."""
    of = after["key"].to_numpy()
    gone = np.setdiff1d(np.arange(len(fresh.k)), of)
    both = np.concatenate([of, gone])
    columns: dict[str, Array] = {
        col.KEY: fresh.k[both],
        col.CHECK: fresh.h[both],
        "op": fresh.rows["op"][fresh.starts[both]],
        col.PLACE: fresh.rows[col.PLACE][fresh.starts[both]],
        col.NUMBER: version[both] + 1,
        col.WHOLE: np.arange(len(both)),
        _KEPT: np.arange(len(both)) < len(of),
    }
    for name, stored in _names(made).items():
        values = after[name].to_numpy()
        columns[stored] = np.concatenate([values, np.zeros(len(gone), values.dtype)])

    def latest(rows: Frame) -> Frame:
        """The last version of each key's state."""
        rows = rows.where(node.alive[rows["op"]])
        codes, first = group(rows[col.KEY], rows[col.CHECK])
        top = np.zeros(len(first), np.int64)
        np.maximum.at(top, codes, rows[col.NUMBER])
        return rows.where(rows[col.NUMBER] == top[codes])

    counters.insert(state, key, Frame(columns, len(both)), latest)


def _output(
    node: PlanNode[s.UserOperator],
    made: UserOperator,
    rows: Frame,
    out: pl.DataFrame,
    env: OperatorContext,
) -> Frame:
    """Returns the rows of the user, each at the time of its input row."""
    at = out["row"].to_numpy()
    columns = {
        n: c.take(at) for n, c in rows.columns.items() if n in ("op", col.PLACE) or col.is_time(n)
    }
    for i, source in enumerate(node.step.out):
        facets = node.layout.slots[i]
        if isinstance(source, int):
            columns.update(gather(rows, at, source, i, facets))
        else:
            values = column_of(made.returns[source], out[source])
            columns.update(slot(values, i, facets, env.pool, tuples=True))
    return Frame(columns, len(at))
