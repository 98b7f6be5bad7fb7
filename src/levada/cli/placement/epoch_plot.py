"""A picture of how a run's epochs were spread: operators in columns by stage, each with a bar for
its predicted and one for its measured time in the last epoch.

Edges that cross tasks are red, others grey (KATTS, fig. 1: a topology with its schedule). Below is
the traffic matrix (``traffic_matrix``). The SVG needs no other file. Cost: by operators.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import Costs
from levada.cli.placement import traffic_matrix
from levada.core.checkpoint_files import facts_of
from levada.engine.placement.traffic_report import FlowsStatus
from levada.engine.status.execution_status import sentences
from levada.errors import UsageError
from levada.plan.execution.plan import Plan

WIDE, HIGH, GAP, LINE = 240, 58, 90, 18
BAR = WIDE - 20
READING, AROUND = "reading", "around "
Place = tuple[int, int]


class Flow(NamedTuple):
    """The operators by name with their stages, in plan order, and the edges between them."""

    stages: Mapping[str, int]
    edges: Sequence[tuple[str, str]]


def flow_of(plan: Plan) -> Flow:
    """Returns the operators of a plan, by the names in the costs. Operators without input read from
    ``READING``.
    """
    names = {n: f"{type(node.step).__name__} {n}" for n, node in plan.nodes.items()}
    edges = [(names[n], names[c.node]) for n in plan.order for c in plan.nodes[n].consumers]
    first = [(READING, names[n]) for n in plan.order if not plan.nodes[n].inputs]
    return Flow({names[n]: plan.nodes[n].stage for n in plan.order}, [*first, *edges])


def read_flow(checkpoint: Path) -> Flow:
    """Returns the operators of the last epoch. Raises ``CheckpointError``."""
    manifest = newest_manifest(checkpoint)
    assert manifest is not None, "what its epochs cost has been read"
    return flow_of(plan_of(checkpoint, facts_of(checkpoint), manifest.plan))


def write(path: Path, costs: Costs, flow: Flow, sent: FlowsStatus | None = None) -> None:
    """Draws the picture into a file. Raises ``UsageError``."""
    if path.suffix.lower() != ".svg":
        raise UsageError(f"{path} is no SVG by its ending.", hint=f"Say {path.stem}.svg.")
    try:
        path.write_text(draw(costs, flow, sent), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error


def draw(costs: Costs, flow: Flow, sent: FlowsStatus | None = None) -> str:
    """Returns the picture as SVG, with the traffic below it if it was counted."""
    lines = list(sentences(costs))
    if sent is not None and sent.bottleneck is not None:
        lines.append(sent.bottleneck.sentence)
    columns = _columns(costs, flow)
    top = LINE * (len(lines) + 3)
    places = {
        name: (20 + i * (WIDE + GAP), top + j * (HIGH + 14))
        for i, column in enumerate(columns.values())
        for j, name in enumerate(column)
    }
    bottom = top + max(map(len, columns.values()), default=0) * (HIGH + 14) + LINE
    below = traffic_matrix.matrix_of(sent)
    width = max(len(columns) * (WIDE + GAP), 900, below.width)
    body = [
        *(_text(20, LINE * (i + 1), line) for i, line in enumerate(lines)),
        *_heads(columns, costs, top),
        *_edges(flow, places),
        *(part for name, at in places.items() for part in _box(name, at, costs)),
        *traffic_matrix.draw(below, bottom),
    ]
    return _PAGE.format(width=width, height=bottom + below.height, body="\n".join(body))


def _columns(costs: Costs, flow: Flow) -> dict[int, list[str]]:
    """Returns the boxes of each column, by stage: all operators of the intake, others only if their
    cost is known.
    """
    columns: dict[int, list[str]] = {0: [READING]}
    for name, stage in flow.stages.items():
        if stage == 0 or name in costs.work_parts:
            columns.setdefault(stage, []).append(name)
    for name in costs.work_parts:
        if name.startswith(AROUND):
            columns.setdefault(int(name.removeprefix(AROUND)), []).append(name)
    return dict(sorted(columns.items()))


def _heads(columns: Mapping[int, object], costs: Costs, top: int) -> Iterator[str]:
    spread = costs.last_epoch.mode == "spread"
    for i, stage in enumerate(columns):
        many = costs.last_epoch.readers if stage == 0 else costs.partitions
        tasks = f"{many} task{'s' * (many != 1)}" if spread else "in one task"
        what = "intake" if stage == 0 else f"stage {stage}"
        yield _text(20 + i * (WIDE + GAP), top - 10, f"{what}: {tasks}", kind="head")


def _edges(flow: Flow, places: Mapping[str, Place]) -> Iterator[str]:
    for source, target in flow.edges:
        if source not in places or target not in places:
            continue
        far = flow.stages.get(source, 0) != flow.stages[target]
        (x, y), (u, v) = places[source], places[target]
        begin, end = (x + WIDE, u) if u > x else (x + WIDE, u + WIDE)
        middle = (begin + end) / 2 + (0 if u > x else 40)
        path = f"M{begin},{y + 29} C{middle},{y + 29} {middle},{v + 29} {end},{v + 29}"
        title = html.escape(f"{source} to {target}")
        yield f'<path class="{"far" if far else "near"}" d="{path}"><title>{title}</title></path>'


def _box(name: str, at: Place, costs: Costs) -> Iterator[str]:
    """Yields the box of an operator with both bars, in one scale for all operators."""
    x, y = at
    most = max((max(v[-2:]) for v in costs.work_parts.values()), default=0.0) or 1.0
    yield f'<rect class="box" x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="4"/>'
    yield _text(x + 10, y + 17, name)
    if name not in costs.work_parts:
        return
    predicted, measured = costs.work_parts[name][-2:]
    for down, kind, ms in ((24, "predicted", predicted), (40, "measured", measured)):
        long = f"{BAR * ms / most:.1f}"
        yield f'<rect class="{kind}" x="{x + 10}" y="{y + down}" width="{long}" height="12"/>'
        yield _text(x + 14, y + down + 10, f"{kind} {ms:,.2f} ms", kind="small")


def _text(x: int, y: int, text: str, kind: str = "text") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{html.escape(text)}</text>'


_PAGE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
width="{width}" height="{height}" role="img" aria-label="How epochs were spread">
<style>
text {{ font: 13px sans-serif; fill: #1b2631 }}
text.head {{ font-weight: bold }}
text.small {{ font-size: 10px }}
rect.box {{ fill: #ffffff; stroke: #2c3e50 }}
rect.predicted {{ fill: #d6dbdf; stroke: #8a8a8a }}
rect.measured {{ fill: #85c1e9 }}
rect.cell {{ stroke: #ffffff }}
path {{ fill: none; stroke-width: 1.5 }}
path.near {{ stroke: #8a8a8a }}
path.far {{ stroke: #c0392b }}
</style>
<rect width="100%" height="100%" fill="#fbfcfc"/>
{body}
</svg>
"""
