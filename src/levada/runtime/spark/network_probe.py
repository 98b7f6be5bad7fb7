"""Measures the transport of a blob from each executor to each other, by Spark's shuffle: latency
and bandwidth.

One executor reads at a time. Every executor sends it the same blobs, small and large, each as the
one row of a partition of a shuffle. One task reads all these partitions in turn (``coalesce``), and
Spark fetches the blocks of a partition only when the task reaches it. So blobs arrive one by one,
each by a request to the executor that has it, or from the reader's own disk. The reader's Python
records the times.

    bandwidth of a pair = bytes of a large blob / its time
    latency of a pair   = (time of n small blobs and a large one - time of a large one) / n

The median of a few turns counts: if a reader pauses, one blob is slow, and the next, which has
arrived meanwhile, fast. A first turn does not count: it makes connections and loads classes. The
measurement covers the path of a blob in an epoch: the sender's block, the network, the reader's
JVM, the pipe to its Python. Cost: two jobs for each executor, of 11 MB for each sender.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
import numpy as np
from pyspark.sql import SparkSession

from levada.core.array_types import Doubles
from levada.core.frozen import frozen
from levada.errors import EngineError, LostTaskError, UsageError
from levada.runtime.spark.executor_checks import EVERYWHERE
from levada.runtime.spark.network_probe_tasks import (
    LARGE_BLOB_BYTES,
    SIZES,
    SMALL_BLOBS_PER_TURN,
    SendTask,
    Timed,
    TimeTask,
)
from levada.runtime.spark.spark_executor import SparkExecutor

MAX_EXECUTORS = 32
"""Executors that are compared: each is, with each other one."""
PATIENCE, STILL = 60.0, 3.0  # s for the first executor to join; s without a new one
ROUNDS = 3  # time in which an executor without room for the task is asked again
LOCALITY_WAIT = {"spark.locality.wait.process": "30s"}
"""A setting for the session: tasks wait for the executor that they are to measure."""


@frozen
class Member:
    """An executor; ``location`` is its name in Spark's locations."""

    name: str
    location: str
    cores: int

    @property
    def host(self) -> str:
        """The host of the executor."""
        return self.location.removeprefix("executor_").rpartition("_")[0]


@frozen
class NetworkMeasurement:
    """The measurements: ``latency`` in ns a small blob and ``bandwidth`` in bytes/s, from row to
    column, in the order of the members; an executor's latency to itself is 0. ``clock`` in GHz, of
    the slowest.
    """

    members: tuple[Member, ...]
    latency: Doubles
    bandwidth: Doubles
    clock: float
    assumed: tuple[str, ...]


def ping(session: SparkSession, *, expected: int = 0) -> NetworkMeasurement:
    """Measures all pairs. ``expected``: the number of executors in the master's URL. Raises
    ``UsageError`` for one executor or too many, ``EngineError`` if executors cannot run Levada or
    have no room.
    """
    pings = _Pings(session)
    members = pings.await_executors(expected)
    master = session.sparkContext.master
    if len(members) == 1:
        raise UsageError(
            f"{master} has one executor, so there is nothing between executors to measure.",
            hint="Give it more executors; without --master this machine is probed.",
        )
    if len(members) > MAX_EXECUTORS:
        raise UsageError(
            f"{master} has {len(members)} executors, which are too many to compare each with each.",
            hint=f"Start Spark with {MAX_EXECUTORS} at most.",
        )
    timings = pings.measure(members)
    latency, bandwidth = matrices([m.name for m in members], timings)
    assumed = dict.fromkeys(sentence for timed in timings.values() for sentence in timed.assumed)
    return NetworkMeasurement(
        members, latency, bandwidth, min(t.clock for t in timings.values()), tuple(assumed)
    )


def matrices(names: Sequence[str], timings: dict[str, Timed]) -> tuple[Doubles, Doubles]:
    """Returns latencies in ns and bandwidths in bytes/s, from row to column, from the readers'
    times.
    """
    n = len(names)
    latency, bandwidth = np.zeros((n, n)), np.zeros((n, n))
    for j, reader in enumerate(names):
        for i, sender in enumerate(names):
            latency[i, j], bandwidth[i, j] = _figures(timings[reader].came[sender])
    np.fill_diagonal(latency, 0.0)
    return np.round(latency), bandwidth


def _figures(arrivals: Sequence[float]) -> tuple[float, float]:
    """Returns the ns of a small blob and the bytes/s, from the arrival times of large blobs: the
    first, and two in each turn, of which the first follows the small ones.
    """
    steps = np.diff(arrivals)
    mixed, large = float(np.median(steps[0::2])), max(float(np.median(steps[1::2])), 1e-9)
    return max(mixed - large, 0.0) / SMALL_BLOBS_PER_TURN * 1e9, LARGE_BLOB_BYTES / large


class _Pings(SparkExecutor):
    """The measuring jobs of a session."""

    def await_executors(self, expected: int) -> tuple[Member, ...]:
        """Waits until all executors have joined, by the expected number, or until none has joined
        for some time; returns them.
        """
        began = changed = time.monotonic()
        cores = self._members.cores()
        while not self._is_all(len(cores), expected, time.monotonic() - changed):
            if not cores and time.monotonic() - began > PATIENCE:
                raise EngineError(
                    f"{self._context.master} has given no executor within {PATIENCE:g} s.",
                    hint="Its page tells whether it has workers with room.",
                )
            time.sleep(0.1)
            if (now := self._members.cores()) != cores:
                cores, changed = now, time.monotonic()
        return tuple(
            Member(name, self._members.location_of(name), core_count)
            for name, core_count in cores.items()
        )

    def _is_all(self, many: int, expected: int, still: float) -> bool:
        return many >= expected > 0 or (many > 0 and still > STILL)

    def measure(self, members: Sequence[Member]) -> dict[str, Timed]:
        """Returns the measurements of each executor as the reader."""
        timings: dict[str, Timed] = {}
        names = {member.name for member in members}
        for member in members:
            self._time_blobs(members, member)
        for _ in range(ROUNDS):
            for member in members:
                if member.name not in timings:
                    timed = self._time_blobs(members, member)
                    if timed.came.keys() == names:
                        timings[timed.executor] = timed
            if timings.keys() == names:
                return timings
        missed = next(member for member in members if member.name not in timings)
        raise EngineError(
            f"Executor {missed.name} on {missed.host} could not be measured: what should have run "
            "there ran elsewhere.",
            hint="Probe when the cluster has nothing else to do.",
        )

    def _time_blobs(self, members: Sequence[Member], reader: Member) -> Timed:
        """Returns the arrival times at one executor of the blobs of all."""
        blobs = len(members) * len(SIZES)
        payloads = [b""] * len(members)
        senders = self._sources.placed_records(payloads, [member.location for member in members])
        sent = self._exchange(senders, SendTask(), blobs).toJavaRDD().coalesce(1, False).rdd()
        placed = self._sources.placed_splits(sent, blobs, [reader.location])
        try:
            (answer,) = self._collect(self._map(placed, TimeTask()))
        except LostTaskError as error:
            raise EngineError(
                f"An executor cannot run Levada: {error.message}", hint=EVERYWHERE
            ) from error
        return msgspec.json.decode(answer, type=Timed)
