"""``GET /explain``: the running topology, as text or as data for a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from levada.checkpoint.key_group_tables import GroupTables
from levada.core.checkpoint_files import facts_of
from levada.core.names import display_name
from levada.plan.execution import steps as s
from levada.plan.execution.pattern_text import pattern_text
from levada.plan.execution.shapes import Member
from levada.plan.execution.steps import Step
from levada.plan.topology.print_topology import describe, describe_edges, show
from levada.plan.topology.topology import Topology
from levada.server.app_state import ServerState, off_loop, slot_of, state_of
from levada.server.content_negotiation import choose_media_type, number
from levada.server.problem_json import Json, Problem
from levada.server.route import JSON

MAX_SHOWN_NODES = 1_000_000


async def topology(request: Request) -> Response:
    """Returns the shared operators of all queries, as they run."""
    server = state_of(request)
    most = number(request, "max_nodes", 0, MAX_SHOWN_NODES)
    drawn = choose_media_type(request.headers.get("accept", ""), ["text/plain", JSON]) == JSON
    async with slot_of(request, server.parsing):
        plan_topology = await off_loop(server.facts.topology)
        if plan_topology is None:
            raise Problem(404, "There is no plan yet.", hint="A query makes one.")
        if drawn:
            return Json(
                await off_loop(
                    lambda: picture(plan_topology, MAX_SHOWN_NODES if most is None else most)
                )
            )
        return Response(
            await off_loop(lambda: _text(server, plan_topology)), media_type="text/plain"
        )


def _text(server: ServerState, topology: Topology) -> str:
    tables = GroupTables(server.settings.root, facts_of(server.settings.root).id, 0)
    return show(topology, tables.load(tables.current).partitions) + "\n"


def picture(topology: Topology, most: int) -> dict[str, Any]:
    """Returns nodes, edges, and for each query the node of its output. ``reads`` of a node: the
    patterns whose matches the status counts. With more than ``most`` nodes only their number.
    """
    topology.install()
    count = len(topology.graph.nodes)
    if count > most:
        return {"node_count": count, "nodes": [], "edges": [], "queries": []}
    described = describe(topology)
    names = dict(zip(topology.graph.order(), (node.name for node in described), strict=True))
    nodes = msgspec.to_builtins(described)
    for number_, node in zip(names, nodes, strict=True):
        plan_node = topology.graph.nodes[number_]
        members = () if plan_node.inputs else plan_node.members.index
        node["reads"] = [r for member in members for r in _reads(member, plan_node.shape.step)]
    leave = [{"name": name, "node": names[q.node]} for name, q in topology.queries.items()]
    edges = msgspec.to_builtins(describe_edges(topology))
    return {"node_count": count, "nodes": nodes, "edges": edges, "queries": leave}


def _reads(member: Member, step: Step) -> Iterator[dict[str, str]]:
    """Yields the streams and patterns that a node reads itself; "" for all rows of a stream."""
    stream = next((display_name(name) for name in member.streams if name), "")
    match step:
        case s.Match(positions, _, False, ()):
            yield {"stream": stream, "text": pattern_text(member.constants, positions)}
        case s.Star(legs, _):
            for leg, positions in enumerate(legs):
                constants = member.constants[3 * leg : 3 * leg + 3]
                yield {"stream": stream, "text": pattern_text(constants, positions)}
        case _ if stream:
            yield {"stream": stream, "text": ""}
