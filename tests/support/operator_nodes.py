"""Operators without an engine: the node of a query, rows in Turtle-like terms in, terms out.

bench = Bench("SELECT ?s ?o", "?s :p ?o")
node = bench.node(shapes.Occur)
frame = bench.frame(node, [(":a", "1")], lo0=[1000])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from levada.core import column_names as col
from levada.core.event_time import MAX, MIN
from levada.core.frame import Frame
from levada.core.rdf_terms import XSD
from levada.core.stream_facts import StreamFacts
from levada.kernels.terms.term_lookup import TermLookup
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.operators.expressions.term_values import classify
from levada.operators.operator_context import OperatorContext, PartitionInfo
from levada.operators.reporting.due_reports import Calendar
from levada.operators.state.state_parts import State
from levada.operators.windowing.element_times import EventTimes
from levada.operators.windowing.report_times import WatermarkProgress
from levada.plan.execution.joins import JoinForm, JoinKind
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.steps import ReportJoin, Step
from levada.plan.logical.query_options import QueryOptions
from levada.plan.optimizer.pipeline import optimize
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"
STEPPED = "[RANGE PT4S STEP PT2S]"
DTYPES = {
    "lo": np.int64,
    "hi": np.int64,
    "prev": np.int64,
    "u": np.int64,
    "r": np.int64,
    "w": np.int8,
    "op": np.int32,
}
Kind = TypeVar("Kind", bound=Step)


def term(short: str | None) -> str | None:
    """``:a`` is an IRI, a number an xsd:integer or xsd:decimal, None unbound; all else is as
    written.

    >>> term(":a"), term("-2")
    ('<http://e/a>', '"-2"^^<http://www.w3.org/2001/XMLSchema#integer>')
    """
    if short is None or short[0] in '"<_':
        return short
    if short.startswith(":"):
        return f"<http://e/{short[1:]}>"
    return f'"{short}"^^<{XSD}{"decimal" if "." in short else "integer"}>'


def short(text: str | None) -> str | None:
    """The inverse of ``term``."""
    if text is None:
        return None
    if text.startswith("<http://e/"):
        return ":" + text[10:-1]
    return text[1 : text.rindex('"')] if text.startswith('"') else text


def state() -> State:
    """An empty state whose pieces are all new."""

    def no_file(name: str) -> Any:
        raise AssertionError(f"{name} is not opened: all pieces are new")

    return State(None, "", no_file)


class Bench:
    """The topology of queries over one window each of one stream, and a pool of texts."""

    def __init__(
        self, head: str, group: str, tail: str = "", *, output: str = "RSTREAM",
        clause: str = STEPPED, more: Sequence[str] = (),
        options: QueryOptions = QueryOptions(),  # noqa: B008 a frozen value
        joins: JoinForm = JoinForm.BINARY,
    ) -> None:  # fmt: skip
        self.pool = TermLookup(7)
        topology = Topology({STREAM: StreamFacts()}, joins=joins)
        for i, body in enumerate((group, *more)):
            text = (
                f"PREFIX : <http://e/> REGISTER {output} :q AS {head} "
                f"FROM NAMED WINDOW :w ON <{STREAM}> {clause} "
                f"WHERE {{ WINDOW :w {{ {body} }} }} {tail}"
            )
            query = translate(parse(text), options, text=text)
            topology.add(f"q{i}", optimize(query), MIN)
        self.plan = topology.seal()

    def node(self, step: type[Kind], number: int = 0) -> PlanNode[Kind]:
        """The node of this step; ``number`` if there are several."""
        nodes = (self.plan.nodes[n].as_step(step) for n in self.plan.order)
        return [node for node in nodes if node is not None][number]

    def join(self, kind: JoinKind) -> PlanNode[ReportJoin]:
        """The join of report rows of this kind."""
        joins = (self.plan.nodes[n].as_step(ReportJoin) for n in self.plan.order)
        return next(n for n in joins if n is not None and n.step.kind is kind)

    def frame(
        self, node: PlanNode, rows: Sequence[Sequence[str | None]], side: int = 0, **columns: Any
    ) -> Frame:
        """Rows of an input of a node, a term a slot; times, weights, reports and members by their
        columns (member 0).
        """
        layout = node.input_layouts[side]
        given: dict[str, Any] = {"op": [0] * len(rows), **columns}
        built: dict[str, Any] = {}
        for i in range(len(layout.slots)):
            texts = pl.Series([term(row[i]) for row in rows], dtype=pl.String)
            built[f"x{i}"], built[f"y{i}"] = self.pool.identify(texts)
            built.update(zip((f"{n}{i}" for n in "kdmc"), classify(texts), strict=True))
        for name in layout.columns():
            stem = name.rstrip("0123456789")
            if stem in DTYPES and name not in built:
                rest = {
                    "hi": given.get("lo" + name[2:]),
                    "prev": [MIN] * len(rows),
                    "w": [1] * len(rows),
                    "u": [MAX] * len(rows),
                }
                built[name] = np.array(given[name] if name in given else rest[stem], DTYPES[stem])
        shown = {name: built[name] for name in layout.columns()}
        return Frame({**shown, col.PLACE: np.zeros(len(rows), np.uint16)}, len(rows))

    def terms(self, frame: Frame | None, slots: int = 1) -> list[tuple[str | None, ...]]:
        """The first slots of a frame's rows, in short."""
        if frame is None:
            return []
        columns = [self.pool.texts(frame[f"x{i}"], frame[f"y{i}"]).to_list() for i in range(slots)]
        return [tuple(short(t) for t in row) for row in zip(*columns, strict=True)]

    def env(
        self,
        old: int = MIN,
        new: int = MIN,
        element_times: Sequence[int] = (),
        *,
        kept: State | None = None,
        partition: int = 0,
    ) -> OperatorContext:
        """What operators may ask while the stream's watermark goes from ``old`` to ``new``; all
        members are at home in partition 0.
        """
        progress = WatermarkProgress(np.array([old], np.int64), np.array([new], np.int64))
        place = PartitionInfo(partition, np.zeros(64, np.int16))
        return OperatorContext(
            kept or state(), self.pool, progress, {0: EventTimes.from_times(element_times)}, place
        )


def calendar(node: PlanNode, old: int, new: int, element_times: Sequence[int] = ()) -> Calendar:
    """The reports that are due when the stream's watermark goes from ``old`` to ``new``."""
    progress = WatermarkProgress(np.array([old], np.int64), np.array([new], np.int64))
    return Calendar(node, node.step.kinds, progress, {0: EventTimes.from_times(element_times)})
