"""The model ``sustainable`` of dataflows with several spouts: what each of them gives.

With one spout the slowest replica bounds all. With several each gives what it can until it is held
up itself: where full queues block, a replica takes from its queues in turn, and there is one for
each replica of each producer, so of those that send more than they may all replicas send equally
much (max-min fairness by queues). What an operator is not let to pass on it does not take in, by
the same turns. So there is a limit for each operator, found in passes down and up the dataflow,
each of which goes half of the way; then tuples flow by what spouts give, and none is lost.

Cost: some ms a plan. So it is for one that is there (``models.estimate``); a search, which looks at
very many, has all spouts give in proportion to what comes to them.
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
    """``sources``, ``selectivity``, ``senders``: of each stream that it gets the producer, tuples
    for each that this takes in, its replicas; ``times``: s that the replicas of this one need for a
    tuple a second of each stream, by the places where it has some.
    """

    sources: Longs
    selectivity: Doubles
    senders: Longs
    times: Doubles  # [stream, place]
    places: Longs

    def share_inputs(self, offers: Doubles, limit: float) -> Doubles:
        """What it takes of each stream, tuples/s: of those that offer more than that equally much
        of each replica that sends, as much as its replicas have time for and ``limit`` allows.
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
    """Tuples/s at the sinks; what replicas take in, and how busy they are, operators by places."""
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
    """What operators take in, by what spouts give."""
    rate = spout_rates.copy()
    for o, op in enumerate(operators):
        if len(op.sources):
            rate[o] = _offers(op, rate).sum()
    return rate


def _solve(a: Arrays, operators: list[_Operator], replicas: Longs) -> Doubles:
    """What each operator takes in once nobody is held up any further."""
    most = np.minimum(a.rate * a.weight, replicas * SECOND / a.cost)  # of spouts
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
    """How much each operator may take in, by what those that it feeds would take of it."""
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
