"""The naive reference of the lattice: rows are made, for a definition alone and by the operators
that run, compensations before the wires. It shares nothing with prices and searches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from airport import streams
from bench.papers.streamreuse.model.conditions import Where
from bench.papers.streamreuse.model.dataflow import Dataflow
from bench.papers.streamreuse.model.descriptor import Descriptor

Values = Mapping[str, int]


@dataclass(frozen=True)
class Row:
    values: Values
    times: Mapping[str, int]


Data = Mapping[str, list[Row]]
CONDITIONS = {"GATE <= AREA": lambda gate, area: gate <= area}


FEW = {"DELAY": 10}


def random_data(rng: np.random.Generator, until: int = 8) -> Data:
    """A few rows of each stream, before ``until``; values are few, so that much meets."""
    return {
        stream: [
            Row(
                {f"{stream}.{a}": int(rng.integers(FEW.get(a, 3))) for a in told.attributes},
                {stream: int(rng.integers(until))},
            )
            for _ in range(5)
        ]
        for stream, told in streams().items()
    }


def alone(wanted: Descriptor, data: Data, now: int) -> Counter:
    """What a definition says by itself."""
    inputs = [data[source] for source in wanted.sources]
    return told(wanted, rows_of(wanted, inputs, now))


def by_operators(dataflow: Dataflow, number: int, user: object, data: Data, now: int) -> Counter:
    """What a user gets of the operators that run."""
    wanted = dataflow.operators[number].demands[user].definition
    return told(wanted, _sent(dataflow, number, user, data, now))


def _sent(dataflow: Dataflow, number: int, user: object, data: Data, now: int) -> list[Row]:
    """The rows on a wire: those of the operator that its user's demand lets through."""
    operator = dataflow.operators[number]
    demand = operator.demands[user].definition
    assert operator.definition.windows.instants.has(now), "it reports when its users do"
    inputs = [
        _sent(dataflow, source, (number, place), data, now)
        for place, source in enumerate(operator.inputs)
    ]
    made = rows_of(operator.definition, inputs or [data[operator.definition.sources[0]]], now)
    return rows_of(demand, [made], now)


def rows_of(d: Descriptor, inputs: Iterable[list[Row]], now: int) -> list[Row]:
    """Rows of all inputs that meet, hold and are in the windows; their columns."""
    met = []
    for rows in product(*inputs):
        row = Row(
            {a: v for r in rows for a, v in r.values.items()},
            {s: t for r in rows for s, t in r.times.items()},
        )
        if _equal(d, row) and holds(d, d.where, row) and _inside(d, row, now):
            met.append(Row({a: _value(d, row, a) for a in d.columns}, row.times))
    return met


def told(d: Descriptor, rows: list[Row]) -> Counter:
    return Counter(tuple(sorted(row.values.items())) for row in rows)


def holds(d: Descriptor, conditions: Where, row: Row) -> bool:
    box = all(found.has(_value(d, row, a)) for a, found in conditions.box if _there(d, row, a))
    return box and all(
        any(CONDITIONS[text](*(_value(d, row, a) for a in names)) for text, names in clause)
        for clause in conditions.clauses
        if all(_there(d, row, a) for _, names in clause for a in names)
    )


def _same(d: Descriptor, attribute: str) -> set[str]:
    return next((set(c) for c in d.joins if attribute in c), {attribute})


def _there(d: Descriptor, row: Row, attribute: str) -> bool:
    """A condition on what a row no longer shows was checked below."""
    return bool(_same(d, attribute) & row.values.keys())


def _value(d: Descriptor, row: Row, attribute: str) -> int:
    return row.values[next(iter(sorted(_same(d, attribute) & row.values.keys())))]


def _equal(d: Descriptor, row: Row) -> bool:
    return all(len({row.values[a] for a in c if a in row.values}) <= 1 for c in d.joins)


def _inside(d: Descriptor, row: Row, now: int) -> bool:
    """Leaves have range 0: no window."""
    spans = zip(d.sources, d.windows.ranges, strict=True)
    return all(not ms or now - ms < row.times[s] <= now for s, ms in spans)


def report(wanted: Descriptor) -> int:
    """An instant at which it reports, when some rows have come."""
    step, offset = wanted.windows.instants.parts[0]
    return next(t for t in range(offset, 5 + 2 * step, step) if t >= 4)
