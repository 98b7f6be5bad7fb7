"""The contents of a profile: the cost of each operator as a line a + b rows with quantiles, the
selectivity and bytes of each edge, and predictions for epochs.

B11 to B13 of BriskStream (Zhang et al., SIGMOD 2019, section 3.1: T_e, N, selectivities, the median
of a sample). A line replaces the constant T_e, since a row costs less in a large frame. The lines
feed the model ``epochs`` (``placement/replication/throughput_models``), in which an operator is a
stage, since stages run apart.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from levada.core.frozen import frozen
from levada.core.machine_file import Machine
from levada.placement.replication.dataflow import Graph, Operator, Stream
from levada.placement.replication.model_arrays import problem
from levada.placement.replication.throughput_models import EPOCHS, Model, estimate

CLOCK = 1.0
"""GHz, so that cycles are ns."""
MIN_NS_PER_ROW = 1e-6
"""The least ns a row: every operator of a dataflow has a cost."""


@frozen
class Cost:
    """The CPU time of an operator: ``fixed`` us an epoch and ``each`` ns a row.

    ``rows``: rows for each element that is read. ``quantiles``: ns a row in the epochs of each
    size, as p5, p50, p95.
    """

    name: str
    stage: int
    rows: float
    fixed: float
    each: float
    quantiles: Mapping[int, tuple[float, float, float]]

    def predict_ns(self, elements: float) -> float:
        """Returns the predicted ns in an epoch of so many elements."""
        return self.fixed * 1e3 + self.each * self.rows * elements


@frozen
class Edge:
    """An edge between two operators. ``selectivity``: rows for each input row of the producer.
    ``bytes``: of one row. ``rows``: for each element that is read.
    """

    producer: str
    consumer: str
    rows: float
    selectivity: float
    bytes: float


@frozen
class Epoch:
    """The CPU time of an epoch of so many elements in ms: the mean of the ``measured`` epochs, and
    the time ``predicted`` by the lines.
    """

    elements: int
    epochs: int
    measured: float
    predicted: float


@frozen
class Profile:
    """A profile. ``driver``: the driver's cost in us an epoch and ns an element."""

    elements: int
    costs: tuple[Cost, ...]
    edges: tuple[Edge, ...]
    driver: tuple[float, float]
    epochs: tuple[Epoch, ...]

    def graph(self) -> Graph:
        """Returns the stages as a dataflow, in which an element of the streams is a tuple of the
        spout.
        """
        stages = sorted({cost.stage for cost in self.costs})
        stage_of = {cost.name: cost.stage for cost in self.costs}
        taken: dict[int, float] = {0: 1.0}
        sent: dict[tuple[int, int], list[float]] = {}
        for edge in self.edges:
            a, b = stage_of[edge.producer], stage_of[edge.consumer]
            if a < b:
                taken[b] = taken.get(b, 0.0) + edge.rows
                both = sent.setdefault((a, b), [0.0, 0.0])
                both[0] += edge.rows
                both[1] += edge.rows * edge.bytes
        return Graph(
            "profile",
            [
                Operator(f"stage {k}", max(self._each(k) / (taken.get(k) or 1.0), MIN_NS_PER_ROW))
                for k in stages
            ],
            [
                Stream(f"stage {a}", f"stage {b}", rows / taken[a] if taken.get(a) else 0.0,
                       size / rows if rows else 0.0)
                for (a, b), (rows, size) in sorted(sent.items())
            ],
        )  # fmt: skip

    def _each(self, stage: int) -> float:
        """Returns the ns of a stage for each element."""
        return sum(cost.each * cost.rows for cost in self.costs if cost.stage == stage)

    def model(self, elements: float) -> Model:
        """Returns the model ``epochs`` for epochs of so many elements in one process. The fixed
        costs of operators and driver are its overheads.
        """
        fixed = sum(cost.fixed for cost in self.costs) * 1e3
        stages = len({cost.stage for cost in self.costs})
        driver = self.driver[0] * 1e3 + self.driver[1] * elements
        return Model(EPOCHS, elements, driver, fixed / stages, 0.0)

    def predict(self, elements: int) -> float:
        """Returns the ms of CPU of an epoch of so many elements in one process, by the model
        ``epochs``.
        """
        local_problem = problem(self.graph(), HERE)
        counts = np.ones((local_problem.operators, 1), np.int64)
        taken = estimate(self.model(elements), local_problem, counts).taken[0, 0]
        return float(elements / taken * 1e3)


HERE = Machine("here", CLOCK, 64.0, ("here",), (1,), np.zeros((1, 1)), np.full((1, 1), 1e12))
"""One place with one core and no network."""
