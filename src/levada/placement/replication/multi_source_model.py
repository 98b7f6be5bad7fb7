"""The model ``sustainable`` for dataflows with several spouts: the output of each spout.

With one spout the slowest replica bounds all. With several each emits tuples until it is blocked
itself. Full queues block, and a replica takes from its queues in turn, one for each replica of each
producer. So all replicas that send more than they may send equally much (max-min fairness by
queues). An operator takes in only tuples that it may pass on, by the same turns. So each operator
has a limit, computed in passes down and up the dataflow that each go half of the way. Then tuples
flow from the spouts, and none is lost.

Cost: some ms a plan, so it is for a final plan (``throughput_models.estimate``). A search visits
very many plans and lets all spouts emit in proportion to their input.
"""

from __future__ import annotations

import math

import numpy as np

from levada.core.array_types import Doubles, Longs
from levada.core.frozen import frozen
from levada.placement.replication.model_arrays import Arrays

SECOND = 1e9
PASSES, RATE_TOLERANCE = 300, 1e-9


@frozen
class _Operator:
    """``sources``, ``selectivity``, ``senders``: for each input stream the producer, tuples for
    each that the producer takes, the producer's replicas. ``times``: s that this operator's
    replicas need for a tuple a second of each stream, in each of its ``places``.
    """

    sources: Longs
    selectivity: Doubles
    senders: Longs
    times: Doubles  # [stream, place]
    places: Longs

    def share_inputs(self, offers: Doubles, limit: float) -> Doubles:
        """Returns the tuples/s taken of each stream. Streams that offer too much get equal shares
        for each sending replica, up to the time of the replicas and ``limit``.
        """
        held = np.ones(len(offers), bool)
        while held.any():
            got = np.where(held, 0.0, offers)
            each = np.append(self.senders[held] @ self.times[held], self.senders[held].sum())
            left = np.append(1.0 - got @ self.times, limit - got.sum())
            level = float((np.maximum(left, 0.0) / np.maximum(each, 1e-300)).min())
            fits = held & (offers <= level * self.senders)
            if not fits.any():
                return np.where(held, level * self.senders, offers)
            held &= ~fits
        return offers


def several(a: Arrays, counts: Longs) -> tuple[float, Doubles, Doubles]:
    """Returns tuples/s at the sinks, and for operators by places the input and the busy fraction of
    a replica.
    """
    operators = [_operator(a, counts, o) for o in range(len(counts))]
    rate = _flow(operators, _solve(a, operators, counts.sum(axis=1)))
    busy = np.zeros(counts.shape)
    for o, op in enumerate(operators):
        load = _offers(op, rate) @ op.times if len(op.sources) else rate[o] * a.cost[o] / SECOND
        busy[o, op.places] = load / (1 if len(op.sources) else counts[o].sum())
    rate /= max(float(busy.max()), 1.0)
    busy /= max(float(busy.max()), 1.0)
    taken = np.where(counts, (rate / counts.sum(axis=1))[:, None], 0.0)
    return float(rate[a.sink].sum()), taken, busy


def _operator(a: Arrays, counts: Longs, o: int) -> _Operator:
    streams = np.arange(a.first[o], a.first[o + 1])
    sources, (places,) = a.source[streams], np.nonzero(counts[o])
    part = counts[sources] / counts[sources].sum(axis=1, keepdims=True)
    ns = a.cost[o] + a.lines[streams, None] * (part @ a.latency[:, places])
    times = ns / SECOND / counts[o].sum()
    return _Operator(sources, a.selectivity[streams], counts[sources].sum(axis=1), times, places)


def _offers(op: _Operator, rate: Doubles) -> Doubles:
    offers: Doubles = rate[op.sources] * op.selectivity
    return offers


def _flow(operators: list[_Operator], spout_rates: Doubles) -> Doubles:
    """Returns the input of operators if spouts emit ``spout_rates``."""
    rate = spout_rates.copy()
    for o, op in enumerate(operators):
        if len(op.sources):
            rate[o] = _offers(op, rate).sum()
    return rate


def _solve(a: Arrays, operators: list[_Operator], replicas: Longs) -> Doubles:
    """Returns the input of each operator in the steady state of blocking."""
    most = np.minimum(a.rate * a.weight, replicas * SECOND / a.cost)  # for spouts
    limit, rate = np.full(len(operators), math.inf), np.zeros(len(operators))
    for _ in range(PASSES):
        before = rate.copy()
        for o, op in enumerate(operators):
            alone = min(most[o], limit[o])
            rate[o] = (
                op.share_inputs(_offers(op, rate), limit[o]).sum() if len(op.sources) else alone
            )
        if (np.abs(rate - before) <= RATE_TOLERANCE * np.maximum(rate, before)).all():
            break
        _hold_up(operators, rate, limit)
    return rate


def _hold_up(operators: list[_Operator], rate: Doubles, limit: Doubles) -> None:
    """Computes each operator's ``limit`` from the shares that its consumers would take."""
    wanted = np.full(len(operators), math.inf)
    for o in reversed(range(len(operators))):
        op, new = operators[o], wanted[o]
        limit[o] = new if math.isinf(limit[o]) or math.isinf(new) else (limit[o] + new) / 2.0
        offers = _offers(op, rate)
        for e, source in enumerate(op.sources):
            if op.selectivity[e] > 0.0:
                all_of_it = offers.copy()
                all_of_it[e] = math.inf
                share = op.share_inputs(all_of_it, limit[o])[e] / op.selectivity[e]
                wanted[source] = min(wanted[source], share)
