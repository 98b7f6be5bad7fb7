"""Reads large static files in many tasks: the task functions of ``runtime.driver.load_static``.

    pieces of files --gather--> rows, by the hash of the whole row --settle--> a file a partition,
    in which each row is once

Cost: each row is written and read once more than if one task reads small files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import EpochContext, decode_context, load_plan
from levada.connectors.ingest.static_load_report import Loaded, merge_loads
from levada.core.frame import Frame, concat, pack, unpack
from levada.kernels.keyed.key_partitioner import partition_of, scatter_order
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.rows.route_rows import key_of
from levada.operators.state.checksummed_frames import checked_parts
from levada.plan.execution.plan import Plan, PlanNode
from levada.runtime.task.exchange import text_identities
from levada.runtime.task.static_reader import StaticPart, StaticReader
from levada.runtime.task.static_rows import matching, sum_weights


def gather(context: bytes, payload: bytes) -> list[tuple[int, Any]]:
    """Reads some parts. Returns a blob of rows for each partition."""
    decoded = decode_context(context)
    plan, pool = load_plan(decoded.plan), TermLookup(decoded.seed)
    reader = StaticReader(decoded.root, decoded.epoch, decoded.seed)
    pieces = msgspec.json.decode(payload, type=list[StaticPart])
    node_rows = matching(decoded, plan, pool, pieces, reader)
    loaded = msgspec.to_builtins(reader.finish())
    boxes: list[dict[int, Frame]] = [{} for _ in range(decoded.partitions)]
    table = np.arange(decoded.partitions, dtype=np.int16)
    for number, rows in node_rows.items():
        _, h = key_of(rows, range(len(plan.nodes[number].layout.slots)))
        order, offsets = scatter_order(partition_of(h, table), decoded.partitions)
        for target, box in enumerate(boxes):
            box[number] = rows.take(order[offsets[target] : offsets[target + 1]])
    return [
        (target, pack(_frames(plan, pool, box), None if target else loaded))
        for target, box in enumerate(boxes)
    ]


def settle(
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


def read(
    context: EpochContext, plan: Plan, pool: TermLookup, name: str
) -> Iterator[tuple[PlanNode, Frame]]:
    """Returns the rows of a file that ``settle`` has written."""
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
