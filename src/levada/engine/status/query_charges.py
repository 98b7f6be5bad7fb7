"""The charges of each query for a status: CPU seconds, rows, bytes of state.

Operators are charged, and queries get their parts on request. An operator's amount is divided
equally among its members. A member's amount is divided among the members that read it, down to the
last operators of the queries. So the parts of all queries add up to the amounts of the operators.
Reading and matching streams is not charged.

Cost: the heads of all state files, and a pass over all members of the plan in arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from levada.checkpoint import state_files
from levada.checkpoint.manifest import Manifest
from levada.core.expression_budget import Charge
from levada.errors import CheckpointError
from levada.operators.state.checksummed_frames import CheckedFrames
from levada.operators.state.state_parts import read_head
from levada.plan.execution.plan import Charges, Plan, gather_up
from levada.plan.execution.query_charges import charge_members


class QueryCharges(NamedTuple):
    """The charges of a query. ``state_bytes`` is None if unknown."""

    cpu_seconds: float
    input_rows: int
    state_bytes: int | None


def charges(root: Path, manifest: Manifest, plan: Plan) -> dict[str, QueryCharges]:
    """Returns the charges of each query after an epoch, by name."""
    seconds = _divide(plan, {n: seconds for n, (seconds, _) in manifest.node_charges.items()})
    rows = _divide(plan, {n: rows for n, (_, rows) in manifest.node_charges.items()})
    kept: Charges | None = None
    with suppress(CheckpointError):  # a file was deleted meanwhile, or is damaged
        kept = _divide(plan, _state_bytes(str(root), manifest))
    return {
        name: QueryCharges(
            round(_amount(seconds, query.node, query.member), 6),
            round(_amount(rows, query.node, query.member)),
            None if kept is None else round(_amount(kept, query.node, query.member)),
        )
        for name, query in plan.queries.items()
    }


def _divide(plan: Plan, amounts: Mapping[int, float]) -> Charges:
    member_charges = charge_members(
        plan, [Charge(node, None, amount) for node, amount in amounts.items()]
    )
    return gather_up(plan, member_charges, divided=True)


def _amount(parts: Charges, node: int, member: int) -> float:
    return float(parts[node][member]) if node in parts else 0.0


def _state_bytes(root: str, manifest: Manifest) -> dict[int, float]:
    """Returns the bytes in files that operators keep in all partitions, by node. Raises
    ``CheckpointError``.
    """
    bytes_by_node, sizes = Counter[int](), dict[str, Counter[str]]()
    for name in manifest.state.values():
        pieces = read_head(state_files.map_(root, name)[1]).pieces
        for key, key_pieces in pieces.items():
            number = key.split(".", 1)[0]
            for piece in key_pieces if number.isdigit() else ():
                file = piece.file or name
                if file not in sizes:
                    sizes[file] = _sizes(root, file)
                bytes_by_node[int(number)] += sizes[file][piece.name]
    return dict(bytes_by_node)


def _sizes(root: str, file: str) -> Counter[str]:
    """Returns the bytes of each piece in a file."""
    frames, sizes = state_files.map_(root, file)[0], Counter[str]()
    assert isinstance(frames, CheckedFrames), "files of state are checked"
    for name, size in frames.sizes().items():
        sizes[name.split(".", 1)[0]] += size
    return sizes
