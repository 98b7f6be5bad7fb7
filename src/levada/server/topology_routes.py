"""GET ``/explain``: the topology as it runs, as text or as what a picture of it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from levada.checkpoint.key_group_tables import GroupTables
from levada.core.checkpoint_facts import facts_of
from levada.core.names import display_name
from levada.plan.execution import steps as s
from levada.plan.execution.pattern_text import pattern_text
from levada.plan.execution.shapes import Member
from levada.plan.execution.steps import Step
from levada.plan.topology.print_topology import describe, describe_edges, show
from levada.plan.topology.topology import Topology
from levada.server.app_state import ServerState, off_loop, served, slot_of
from levada.server.content_negotiation import number, preferred
from levada.server.problem_json import Json, Problem
from levada.server.route import JSON

MOST = 1_000_000


async def topology(request: Request) -> Response:
    """What the queries share, as it runs."""
    own = served(request)
    most = number(request, "most", 0, MOST)
    drawn = preferred(request.headers.get("accept", ""), ["text/plain", JSON]) == JSON
    async with slot_of(request, own.parsing):
        found = await off_loop(own.facts.topology)
        if found is None:
            raise Problem(404, "There is no plan yet.", hint="A query makes one.")
        if drawn:
            return Json(await off_loop(lambda: picture(found, MOST if most is None else most)))
        return Response(await off_loop(lambda: _text(own, found)), media_type="text/plain")


def _text(own: ServerState, found: Topology) -> str:
    tables = GroupTables(own.settings.root, facts_of(own.settings.root).id, 0)
    return show(found, tables.load(tables.current).partitions) + "\n"


def picture(found: Topology, most: int) -> dict[str, Any]:
    """Nodes, edges, and by which node each query's rows leave; ``reads`` of a node: the patterns by
    whose text status counts what matched. With more than ``most`` nodes only how many there are.
    """
    found.install()
    count = len(found.nodes)
    if count > most:
        return {"count": count, "nodes": [], "edges": [], "queries": []}
    described = describe(found)
    names = dict(zip(found.order(), (node.name for node in described), strict=True))
    nodes = msgspec.to_builtins(described)
    for number_, node in zip(names, nodes, strict=True):
        own = found.nodes[number_]
        members = () if own.inputs else own.members.index
        node["reads"] = [r for member in members for r in _reads(member, own.shape.step)]
    leave = [{"name": name, "node": names[q.node]} for name, q in found.queries.items()]
    edges = msgspec.to_builtins(describe_edges(found))
    return {"count": count, "nodes": nodes, "edges": edges, "queries": leave}


def _reads(member: Member, step: Step) -> Iterator[dict[str, str]]:
    """Streams and patterns that a node reads itself; "" for all of a stream's rows."""
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
