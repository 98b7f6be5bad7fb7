"""The kernels with their arguments and their twins: what ``kernels`` times.

A case is made for a number of rows; both functions take no argument and are compared by what they
return. Where a twin is a loop in Python, it is timed on fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash

from bench.srbench import Weather, _triples
from levada.intake.matching.match import PatternTable, match_by_comparison
from levada.intake.parse.ntriples import Triples, parse
from levada.intake.parse.ntriples_twin import parse_slow
from levada.kernels.keyed import (
    groups,
    keyed,
    probe,
    probe_latest,
    sums,
    sums_dd,
)
from levada.kernels.keyed import keyed_twins as twins
from levada.kernels.keyed import (
    route as keyed_route,
)
from levada.kernels.text import xxh3
from levada.kernels.time import expand, interval
from levada.model.time import MIN, Window, WindowKind

Call = Callable[[], Any]
SEED = 7


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel and its twin over the same ``rows`` rows."""

    kernel: Call
    twin: Call
    rows: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Keys (ten rows each, so that something meets), times, values, codes of a thousand groups."""

    n: int

    def keys(self, seed: int = 1) -> tuple[Any, Any]:
        """Both halves of a key."""
        of = np.random.default_rng(seed).integers(0, max(self.n // 10, 1), self.n)
        x = np.random.default_rng(0).integers(0, 2**64, (2, max(self.n // 10, 1)), dtype=np.uint64)
        return x[0][of].copy(), x[1][of].copy()

    @property
    def ts(self) -> Any:
        """Times, one a millisecond."""
        return np.arange(self.n, dtype=np.int64)

    @property
    def codes(self) -> Any:
        """A group of each row."""
        return np.random.default_rng(2).integers(0, 1000, self.n).astype(np.int32)

    @property
    def weights(self) -> Any:
        """All 1."""
        return np.ones(self.n, np.int8)

    @property
    def values(self) -> Any:
        """Doubles."""
        return np.random.default_rng(3).random(self.n) * 1000

    @property
    def params(self) -> interval.Params:
        """A window on close and one per element."""
        windows = (
            Window(WindowKind.CLOSE_OPEN, range=60_000, step=10_000),
            Window(WindowKind.RANGE, range=60_001),
        )
        return interval.Params.of(windows)

    @property
    def which(self) -> Any:
        """The window of each row."""
        return (np.arange(self.n) % 2).astype(np.int32)


def bucket_order(n: int) -> Case:
    k, bits = Rows(n).keys()[0], keyed.bits_for(n)
    return Case(lambda: keyed.bucket_order(k, bits), lambda: twins.bucket_order_twin(k, bits), n)


def scatter_order(n: int) -> Case:
    target = Rows(n).codes % 8
    return Case(
        lambda: keyed_route.scatter_order(target, 8), lambda: twins.scatter_order_twin(target, 8), n
    )


def group(n: int) -> Case:
    k, h = Rows(n).keys()
    return Case(lambda: groups.group(k, h), lambda: twins.group_twin(k, h), n)


def _run(n: int) -> Any:
    k, h = Rows(n).keys(5)
    return probe.arrange(k, h, Rows(n).ts, Rows(n).ts + n // 5)[1]


def join_pairs(n: int) -> Case:
    (k, h), s, run = Rows(n).keys(), Rows(n).ts, _run(n)
    e = s + n // 5
    return Case(
        lambda: probe.join_pairs(k, h, s, e, run), lambda: twins.join_pairs_twin(k, h, s, e, run), n
    )


def latest(n: int) -> Case:
    (k, h), ts, run = Rows(n).keys(), Rows(n).ts, _run(n)
    return Case(
        lambda: probe_latest.latest(k, h, ts, run), lambda: twins.latest_twin(k, h, ts, run), n
    )


def previous_within(n: int) -> Case:
    (k, h), ts = Rows(n).keys(), Rows(n).ts
    return Case(
        lambda: probe_latest.previous_within(k, h, ts),
        lambda: twins.previous_within_twin(k, h, ts),
        n,
    )


def enter(n: int) -> Case:
    p, which, ts = Rows(n).params, Rows(n).which, Rows(n).ts
    return Case(lambda: interval.enter(*p, which, ts), lambda: twins.enter_twin(p, which, ts), n)


def leave(n: int) -> Case:
    p, which, ts = Rows(n).params, Rows(n).which, Rows(n).ts
    return Case(lambda: interval.leave(*p, which, ts), lambda: twins.leave_twin(p, which, ts), n)


def intervals(n: int) -> Case:
    p, which, ts = Rows(n).params, Rows(n).which, Rows(n).ts
    start, prev = np.full(2, MIN, np.int64), np.maximum(ts - 5, 0)
    return Case(
        lambda: interval.interval(*p, start, which, ts, ts, prev),
        lambda: twins.interval_twin(p, start, which, ts, ts, prev), n,
    )  # fmt: skip


def expand_closes(n: int) -> Case:
    s, which, p = Rows(n).ts, np.zeros(n, np.int32), Rows(n).params
    e, closes = s + 60_000, (p.range[:1], p.step[:1], p.t0[:1], p.given[:1])
    return Case(
        lambda: expand.expand_closes(s, e, -1, n, closes, which),
        lambda: twins.expand_closes_twin(s, e, -1, n, closes, which), n,
    )  # fmt: skip


def expand_instants(n: int) -> Case:
    s = Rows(n).ts
    e, at = s + 3000, np.arange(0, n, 1000, dtype=np.int64)
    return Case(
        lambda: expand.expand_instants(s, e, at), lambda: twins.expand_instants_twin(s, e, at), n
    )


def net(n: int) -> Case:
    c, w = Rows(n).codes, Rows(n).weights
    return Case(lambda: sums.net(c, w, 1000), lambda: twins.net_twin(c, w, 1000), n)


def sum_int(n: int) -> Case:
    c, w, v = Rows(n).codes, Rows(n).weights, Rows(n).values.astype(np.int64)
    return Case(
        lambda: sums.round_int(*sums.sum_int(c, v, w, 1000))[0],
        lambda: twins.sum_int_twin(c, v, w, 1000),
        n,
    )


def sum_dd(n: int) -> Case:
    c, w, v = Rows(n).codes, Rows(n).weights, Rows(n).values
    return Case(
        lambda: sums_dd.round_dd(sums_dd.sum_dd(c, v, w, 1000)), lambda: twins.sum_dd_twin(c, v, w, 1000), n
    )  # fmt: skip


def winners(n: int) -> Case:
    c, v, (x, y) = Rows(n).codes, Rows(n).values, Rows(n).keys()
    return Case(
        lambda: sums.winners(c, v, x, y, 1000, False), lambda: twins.winners_twin(c, v, x, y, 1000, False), n
    )  # fmt: skip


def _text(n: int) -> bytes:
    """N-Triples of W3, ``n`` lines at least."""
    weather = Weather(20)
    lines: list[str] = []
    for ts, serial, speeds in weather.minutes():
        lines += (f"{t} {ts} .\n" for t in _triples(serial, speeds))
        if len(lines) >= n:
            break
    return "".join(lines).encode()


def _parsed(n: int) -> Triples:
    return parse(_text(n), quads=False, timed=True, seed=SEED, document=1)


def parse_lines(n: int) -> Case:
    text = _text(n)

    def columns(found: Triples) -> tuple[Any, ...]:
        return found.s.x, found.s.y, found.p.x, found.o.x, found.o.dbl, found.time

    return Case(
        lambda: columns(parse(text, quads=False, timed=True, seed=SEED, document=1)),
        lambda: columns(parse_slow(text, quads=False, timed=True, seed=SEED, document=1)),
        text.count(b"\n"),
    )  # fmt: skip


def match(n: int) -> Case:
    triples = _parsed(n)
    predicates = [triples.text(triples.p, row) for row in range(3)]
    patterns = [(None, p, None) for p in predicates] + [
        (None, f"<http://example.org/p{i}>", None) for i in range(97)
    ]
    table = PatternTable.build(patterns, [0] * len(patterns), SEED)
    return Case(
        lambda: table.match(triples), lambda: match_by_comparison(table, triples), triples.n
    )


def identify(n: int) -> Case:
    texts = [b"<http://example.org/observation/%d>" % i for i in range(n)]
    data = np.frombuffer(b"".join(texts), np.uint8)
    size = np.array([len(t) for t in texts], np.int64)
    start, secret = np.cumsum(size) - size, xxh3.schedule(SEED)

    def kernel() -> Any:
        x, y = np.empty(n, np.uint64), np.empty(n, np.uint64)
        xxh3.identify_slices(data, start, size, secret, x, y)
        return x, y

    def twin() -> Any:
        both = [xxhash.xxh3_128_intdigest(t, SEED) for t in texts]
        return np.array([b & (2**64 - 1) for b in both], np.uint64), np.array(
            [b >> 64 for b in both], np.uint64
        )

    return Case(kernel, twin, n)


# (case, whether its twin is a loop in Python)
CASES: tuple[tuple[Callable[[int], Case], bool], ...] = (
    (parse_lines, True), (identify, True), (match, False), (bucket_order, False), (scatter_order, False), (group, False),
    (join_pairs, False), (latest, False), (previous_within, False), (enter, True), (leave, True), (intervals, True),
    (expand_closes, False), (expand_instants, False), (net, False), (sum_int, True), (sum_dd, True), (winners, False),
)  # fmt: skip
