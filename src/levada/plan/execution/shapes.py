"""Shapes: operators by slots, shared by queries that differ only in constants, windows and streams.

A ``Shape`` is a value: its kind (a ``Step``), its input shapes with the edges to them, its layout.
Each shape becomes one node of the topology with a table of members. A ``Member`` has the parameters
in which members differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from levada.core.event_time import Window
from levada.core.rdf_terms import Term
from levada.plan.execution.leaves import EntailmentAlternative
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.steps import Step

TO_ALL = (-1,)
"""A value of ``Edge.exchange``: all rows go to all partitions."""


class Edge(NamedTuple):
    """The mapping of an input's rows to a consumer's, by slot and by window (-1: unbound, absent).

    ``exchange``: the slots of the consumer's input whose identities partition the rows; () by
    member; ``TO_ALL``; None: local.
    """

    slots: tuple[int, ...]
    windows: tuple[int, ...]
    layout: Layout
    exchange: tuple[int, ...] | None


@dataclass(frozen=True)
class Shape:
    """One operator by slots, with its inputs. ``generation`` distinguishes nodes of one shape
    (``plan/topology/catalog_members``).
    """

    step: Step
    stage: int
    inputs: tuple[tuple[Shape, Edge], ...]
    layout: Layout
    generation: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_hash", hash((self.step, self.stage, self.inputs, self.layout, self.generation))
        )

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]


class Member(NamedTuple):
    """The parameters of one query's operator. Only the fields of its kind are set.

    ``windows`` and ``streams`` in parallel: of the rows (joins) or of the whole query (schedules; a
    clock has no stream). ``start``: earlier elements do not count. ``constants``: the lifted terms,
    or a pattern's constants (None where variable). ``query``: set for an Emit, for random values,
    and for leaves that no other query shares. ``since``: for static data and constants, the plan
    version that reads them. Their rows arrive then and never again, so a later query has other
    members. ``ways``: the alternatives of an entailed pattern, in the order of their forms.
    ``reread_graphs``: for a query without windows, the static graphs at whose replacement it is
    answered again.
    """

    inputs: tuple[int, ...] = ()
    windows: tuple[Window, ...] = ()
    streams: tuple[str, ...] = ()
    start: int = 0
    constants: tuple[Term | None, ...] = ()
    rows: tuple[tuple[Term | None, ...], ...] = ()
    graphs: tuple[str | None, ...] = ()
    query: str = ""
    show_empty: bool = False
    nonempty: bool = False
    since: int = 0
    ways: tuple[EntailmentAlternative, ...] = ()
    reread_graphs: tuple[str | None, ...] = ()

    def with_inputs(
        self, inputs: tuple[int, ...], constants: tuple[Term | None, ...] | None = None
    ) -> Member:
        """Returns the member over these inputs, with these constants if given.

        (``replace`` takes three times as long.)
        """
        return Member(
            inputs,
            self.windows,
            self.streams,
            self.start,
            self.constants if constants is None else constants,
            self.rows,
            self.graphs,
            self.query,
            self.show_empty,
            self.nonempty,
            self.since,
            self.ways,
            self.reread_graphs,
        )
