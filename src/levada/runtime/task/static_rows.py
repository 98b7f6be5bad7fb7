"""Computes the rows of static data in an epoch: those of patterns that read them for the first
time, and the changes of a replacement.

A pattern reads the union of some static graphs, which is a set. New members receive all its rows.
So do queries without windows, which are answered anew when one of their graphs is replaced. Other
members receive the difference of the union after and before the replacement: removed rows with
weight -1, added ones with +1, both at the instant of the replacement
(docs/semantics.md#static-data-that-are-replaced). Cost: linear in the content of the files, also if
little has changed; a replacement reads both contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import EpochContext, decode_context, load_plan, load_setup
from levada.connectors.ingest.parse.json_ld_contexts import declare_as_driver
from levada.connectors.ingest.parse.ntriples import Triples
from levada.connectors.ingest.static_cache import CacheRequest
from levada.connectors.ingest.static_file_stamps import read_stamp
from levada.connectors.ingest.static_files import StaticFile, cut, select_graphs
from levada.connectors.ingest.static_load_report import Loaded, merge_loads
from levada.core import column_names as col
from levada.core.array_types import Bools
from levada.core.frame import Frame, concat, pack, unpack
from levada.core.frozen import frozen
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.key_partitioner import partition_of, scatter_order
from levada.kernels.keyed.pattern_match import RECORD, SHAPE
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.matching.pattern_table import Patterns, patterns_of
from levada.operators.matching.scan_rows import match_
from levada.operators.matching.slot_columns import Chunk
from levada.operators.rows.route_rows import key_of as row_key
from levada.operators.state.checksummed_frames import checked_parts
from levada.operators.windowed.static_input import ALWAYS
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.execution.row_layout import Facet
from levada.plan.execution.sharing_demand import sharing_demand_of
from levada.runtime.task.exchange import text_identities
from levada.runtime.task.static_reader import StaticPart, StaticReader, key_of

Graphs = tuple[str | None, ...]
_PREDICATE = 2  # in the shape of a pattern: that is a constant


Find = Callable[[StaticFile], "Pieces | None"]
"""The imprint of a file; None: there is none of what it is now."""


@frozen
class Pieces:
    """The imprint of a source: for each part the file of imprints, its number in that, and the
    bytes of the source that it represents.
    """

    of: tuple[tuple[str, int, int], ...]


@frozen
class Reading:
    """The files of a setup for the members that read them (by node), with the ``sign`` of their
    rows.
    """

    files: list[StaticFile]
    chosen: dict[int, Bools]
    sign: int

    def graphs(self, plan: Plan) -> frozenset[str | None]:
        """Returns the graphs that are read."""
        members = (
            m
            for n, mine in self.chosen.items()
            for m, member in zip(plan.nodes[n].members, mine, strict=True)
            if member
        )
        return frozenset(g for m in members for g in m.graphs)


def readings(context: EpochContext, plan: Plan) -> list[Reading]:
    """Returns the readings of an epoch: static data as they are, and replaced ones as they were."""
    changing = {n.id: _changing(n, context) for n in _readers(plan)}
    whole = {
        n.id: n.members_read_whole(context.is_first_epoch, context.replaced_graphs)
        for n in _readers(plan)
    }
    planned = [
        Reading(load_setup(context.setup).static, {n: whole[n] | changing[n] for n in whole}, 1)
    ]
    if context.replacement is not None:
        planned.append(Reading(load_setup(context.replacement.previous_setup).static, changing, -1))
    return planned


def parts(
    context: EpochContext, plan: Plan, size: int, find: Find, *, press: bool
) -> list[StaticPart]:
    """Returns all parts to read, of about ``size`` bytes, each once: existing imprints, and files
    without one, of which imprints are made if ``press``.
    """
    out, imprinted = list[StaticPart](), set[tuple[str, str, str]]()
    for reading in readings(context, plan):
        graphs, before = reading.graphs(plan), reading.sign < 0
        for number, file in enumerate(reading.files):
            if not file.graphs & graphs:
                continue
            pieces, fresh = find(file), press and not before and key_of(file) not in imprinted
            if pieces is not None:
                out += [
                    StaticPart(before, number, imprint=name, source=source, size=stands_for)
                    for name, source, stands_for in pieces.of
                ]
                continue
            imprinted.add(key_of(file))
            stamp = read_stamp(file)
            out += [
                StaticPart(before, number, start, stop, stamp, fresh)
                for start, stop in cut(file, size)
            ]
    return out


def to_read(
    context: EpochContext, plan: Plan, find: Find, *, press: bool
) -> tuple[list[StaticPart], int]:
    """Returns all parts to read, each file whole, and their size on the disk in bytes."""
    pieces = parts(context, plan, 1 << 62, find, press=press)
    return pieces, sum(part.size if part.imprint else part.seen[0] for part in pieces)


def matching(
    context: EpochContext,
    plan: Plan,
    pool: TermLookup,
    pieces: Sequence[StaticPart],
    reader: StaticReader,
) -> dict[int, Frame]:
    """Returns each node's rows in these parts, with their multiplicity, and their sign in
    ``#v``.
    """
    node_rows: dict[int, list[Frame]] = {}
    for reading in readings(context, plan):
        tables = list(_patterns(plan, reading.chosen, context.seed))
        request = _wanted_terms([patterns for _, patterns in tables])
        for part in (p for p in pieces if p.before == (reading.sign < 0)):
            file = reading.files[part.file]
            for triples in reader.triples(part, file, request):
                for node, frame in _match_(file, triples, tables, context.seed, pool):
                    signed = frame.with_(**{col.SIGN: np.full(frame.n, reading.sign, np.int8)})
                    node_rows.setdefault(node.id, []).append(signed)
    return {number: concat(frames) for number, frames in node_rows.items()}


def _wanted_terms(tables: Sequence[Patterns]) -> CacheRequest:
    """Returns the terms that these patterns need of imprints."""
    every = [t for table in tables for t in table.tables()]
    records = np.concatenate([t.table.patterns for t in every] or [np.zeros((0, RECORD), np.int64)])
    bound = (records[:, SHAPE] & _PREDICATE) != 0
    layouts = [n.layout for t in every for n, _, _ in t.nodes]
    layouts += [ways.node.layout for t in every for ways in t.entailed]
    facets = [facet for layout in layouts for facet in layout.slots]
    return CacheRequest(
        np.unique(records[:, 2].view(np.uint64)) if bound.all() else None,
        any(Facet.TEXT in facet for facet in facets),
        any(Facet.NUM in facet for facet in facets),
    )


def _match_(
    file: StaticFile,
    triples: Triples,
    tables: Sequence[tuple[Graphs, Patterns]],
    seed: int,
    pool: TermLookup,
) -> Iterator[tuple[PlanNode, Frame]]:
    for graphs, patterns in tables:
        if not file.graphs.isdisjoint(graphs):
            some = select_graphs(file, triples, graphs, seed)
            yield from match_(patterns, Chunk(some, np.zeros(some.n, np.int64), pool))


def _readers(plan: Plan) -> list[PlanNode]:
    """Returns the nodes of patterns over static graphs."""
    nodes = map(plan.nodes.__getitem__, plan.order)
    return [n for n in nodes if isinstance(n.step, (s.Match, s.Entailed)) and n.step.static]


def _changing(node: PlanNode, context: EpochContext) -> Bools:
    """Returns a mask of the members that receive the changes of a replacement."""
    touched = np.array(
        [not context.replaced_graphs.isdisjoint(g) for g in node.members.each_graph()], np.bool_
    )
    return (
        touched
        & node.alive
        & node.layout.weighted
        & ~node.members_read_whole(context.is_first_epoch, context.replaced_graphs)
    )


def _patterns(
    plan: Plan, chosen: Mapping[int, Bools], seed: int
) -> Iterator[tuple[Graphs, Patterns]]:
    """Yields the patterns of the chosen members, by the graphs that they read."""
    nodes = [plan.nodes[n] for n in chosen]
    choices = {
        graphs_read
        for n in nodes
        for graphs_read, mine in zip(n.members.each_graph(), chosen[n.id], strict=True)
        if mine
    }
    for graphs in sorted(choices, key=str):
        graphs_read = [
            np.array([g == graphs for g in n.members.each_graph()], np.bool_) & chosen[n.id]
            for n in nodes
        ]
        patterns = patterns_of(nodes, graphs_read, seed, sharing_demand_of(plan).new_terms)
        assert patterns is not None, "some member reads these graphs"
        yield graphs, patterns


def sum_weights(context: EpochContext, node: PlanNode, rows: Frame) -> Frame:
    """Returns each row once: with weight +1 if it is new, -1 if it is removed, and not at all if it
    stays.
    """
    codes, first = group(*row_key(rows, range(len(node.layout.slots))))
    sign = rows[col.SIGN]
    plain = rows.drop(col.SIGN)
    if not node.layout.windows:
        return plain if len(first) == rows.n else plain.take(first)
    now, before = np.zeros(len(first), np.bool_), np.zeros(len(first), np.bool_)
    now[codes[sign > 0]] = True
    before[codes[sign < 0]] = True
    changed = np.flatnonzero(now != before)
    out = plain.take(first[changed])
    weight = np.where(now[changed], 1, -1).astype(np.int8)
    instant = context.replacement.instant if context.replacement else ALWAYS
    return out.with_(lo0=np.where(_changing(node, context)[out["op"]], instant, ALWAYS), w=weight)


# Reads large static files in many tasks: the task functions of ``runtime.driver.load_static``.
#
#     pieces of files --gather_rows--> rows, by the hash of the whole row
#                     --settle_rows--> a file a partition, in which each row is once
#
# Cost: each row is written and read once more than if one task reads small files.


def gather_rows(context: bytes, payload: bytes) -> list[tuple[int, Any]]:
    """Reads some parts. Returns a blob of rows for each partition."""
    decoded = decode_context(context)
    declare_as_driver(decoded.contexts)
    plan, pool = load_plan(decoded.plan), TermLookup(decoded.seed)
    reader = StaticReader(decoded.root, decoded.epoch, decoded.seed)
    pieces = msgspec.json.decode(payload, type=list[StaticPart])
    node_rows = matching(decoded, plan, pool, pieces, reader)
    loaded = msgspec.to_builtins(reader.finish())
    boxes: list[dict[int, Frame]] = [{} for _ in range(decoded.partitions)]
    table = np.arange(decoded.partitions, dtype=np.int16)
    for number, rows in node_rows.items():
        _, h = row_key(rows, range(len(plan.nodes[number].layout.slots)))
        order, offsets = scatter_order(partition_of(h, table), decoded.partitions)
        for target, box in enumerate(boxes):
            box[number] = rows.take(order[offsets[target] : offsets[target + 1]])
    return [
        (target, pack(_frames(plan, pool, box), None if target else loaded))
        for target, box in enumerate(boxes)
    ]


def settle_rows(
    context: bytes, number: int, partition: int, blobs: Sequence[Any]
) -> list[tuple[int, Any]]:
    """Writes the rows of a partition, each once. The first partition also reports what was read."""
    decoded = decode_context(context)
    plan, pool = load_plan(decoded.plan), TermLookup(decoded.seed)
    rows: dict[int, list[Frame]] = {}
    loaded: list[Loaded] = []
    for blob in blobs:
        frames, meta = unpack(blob)
        loaded += [] if meta is None else [msgspec.convert(meta, Loaded)]
        for node, frame in _rows(plan, pool, frames):
            rows.setdefault(node.id, []).append(frame)
    whole = {
        node: sum_weights(decoded, plan.nodes[node], concat(frames))
        for node, frames in rows.items()
    }
    data = checked_parts(_frames(plan, pool, whole))
    name = state_files.write(decoded.root, "state", f"{decoded.epoch}-static-{partition}", data)
    return [(-1, msgspec.json.encode((name, merge_loads(loaded))))]


def read_gathered(
    context: EpochContext, plan: Plan, pool: TermLookup, name: str
) -> Iterator[tuple[PlanNode, Frame]]:
    """Returns the rows of a file that ``settle_rows`` has written."""
    return _rows(plan, pool, state_files.map_(context.root, name)[0])


def _frames(plan: Plan, pool: TermLookup, rows: dict[int, Frame]) -> dict[str, Frame]:
    """Returns rows by node, and the texts that they need."""
    ids = [
        pair
        for node, frame in rows.items()
        for pair in text_identities(frame, plan.nodes[node].layout)
    ]
    x, y = (
        np.concatenate([np.empty(0, np.uint64), *(pair[half] for pair in ids)]) for half in (0, 1)
    )
    return {
        **{str(node): frame for node, frame in rows.items() if frame.n},
        **pool.pick(x, y).frames("terms"),
    }


def _rows(
    plan: Plan, pool: TermLookup, frames: Mapping[str, Frame]
) -> Iterator[tuple[PlanNode, Frame]]:
    if "terms.id" in frames:
        pool.add(Terms.from_frames(frames, "terms"))
    for name, frame in frames.items():
        if name.isdigit():
            yield plan.nodes[int(name)], frame
