"""Writes the catalog to a file: a topology with the identities of its queries, beside its plan.

The file of a later version contains only differences, as that of the plan (``plan/execution``).

Derived tables are not written: nodes by shape, numbers by member, streams of queries, and numbers
of uses. A shape is written as its step and its edges to other nodes, since the input shapes of a
node are the shapes of earlier nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from levada.core.array_types import Longs
from levada.core.stream_facts import StreamFacts
from levada.errors import unreadable
from levada.plan.encoding.plan_codec import RECORDS, VALUES, encode, previous_path, read_file
from levada.plan.encoding.tag_registry import Registry
from levada.plan.execution.member_table import MemberTable
from levada.plan.execution.plan import QueryPlan
from levada.plan.execution.plan_delta import PlanChange
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.shapes import Edge, Shape
from levada.plan.execution.steps import Step
from levada.plan.migration.migration import PlanMigration
from levada.plan.topology.catalog_members import CatalogNode, Members
from levada.plan.topology.prune import count_uses
from levada.plan.topology.topology import Topology


@dataclass(frozen=True)
class KeptNode:
    """A node of the catalog. ``members``: the living members, ``at``: their numbers; ``born``: the
    plan versions that added all places.
    """

    number: int
    step: Step
    stage: int
    inputs: tuple[int, ...]
    edges: tuple[Edge, ...]
    layout: Layout
    generation: int
    members: MemberTable
    at: Longs
    born: Longs


@dataclass(frozen=True)
class Catalog:
    """A topology and the identities of its queries.

    ``base``: the version from which this file has the differences (0: it is complete). ``there``:
    the existing nodes. ``gone``: the queries of the previous version that were removed.
    """

    base: int
    version: int
    numbers: int
    streams: tuple[str, ...]
    facts: Mapping[str, StreamFacts]
    replaceable: frozenset[str | None]
    made: Mapping[str, str]
    queries: tuple[QueryPlan, ...]
    identities: Mapping[str, str]
    nodes: tuple[KeptNode, ...]
    there: tuple[int, ...]
    gone: tuple[str, ...]
    switches: tuple[PlanMigration, ...] = ()


CATALOGS = Registry(
    VALUES,
    RECORDS
    | {
        "stream facts": StreamFacts,
        "kept node": KeptNode,
        "catalog": Catalog,
        "switch": PlanMigration,
    },
)


def encode_catalog(
    topology: Topology, identities: Mapping[str, str], change: PlanChange | None = None
) -> bytes:
    """Returns the file content of a topology and the identities of its queries.

    With ``change`` it contains only differences, as that of the plan.
    """
    topology.install()
    new = topology.graph.nodes if change is None else change.nodes
    names = topology.queries if change is None else change.queries
    catalog = Catalog(
        0 if change is None else change.base,
        topology.version,
        topology.graph.numbers,
        topology.streams.names,
        topology.streams.facts,
        topology.replaceable,
        topology.streams.made,
        tuple([topology.queries[name] for name in names]),
        {name: identities[name] for name in names if name in identities},
        tuple([_keep(number, topology.graph.nodes[number]) for number in new]),
        tuple(topology.graph.nodes),
        () if change is None else change.gone,
        tuple(topology.switches.values()),
    )
    return encode(catalog, CATALOGS)


def read_catalog(path: Path) -> tuple[Topology, dict[str, str]]:
    """Reads a topology and the identities of its queries. Raises ``CheckpointError``."""
    last = read_file(path, Catalog, CATALOGS)
    queries, identities, nodes = _collect_catalogs(path, last)
    topology = Topology(last.facts, last.replaceable)
    topology.version, topology.graph.numbers = last.version, last.numbers
    topology.streams.names, topology.streams.made = last.streams, dict(last.made)
    topology.queries = queries
    topology.switches = {switch.name: switch for switch in last.switches}
    try:
        for number in last.there:
            _restore(topology, nodes[number])
        count_uses(topology)
    except (LookupError, ValueError) as error:
        raise unreadable(path, "its nodes do not fit") from error
    return topology, identities


def read_queries(path: Path) -> tuple[dict[str, QueryPlan], dict[str, str]]:
    """Reads the queries of a catalog and their identities. Raises ``CheckpointError``."""
    queries, identities, _ = _collect_catalogs(path, read_file(path, Catalog, CATALOGS))
    return queries, identities


def _collect_catalogs(
    path: Path, last: Catalog
) -> tuple[dict[str, QueryPlan], dict[str, str], dict[int, KeptNode]]:
    """Returns all queries, their identities and nodes, from the last complete catalog on."""
    chain = [last]
    at = path
    while chain[-1].base:
        at = previous_path(at, chain[-1].base)
        chain.append(read_file(at, Catalog, CATALOGS))
    queries: dict[str, QueryPlan] = {}
    identities: dict[str, str] = {}
    nodes: dict[int, KeptNode] = {}
    for catalog in reversed(chain):
        for name in catalog.gone:
            queries.pop(name, None)
            identities.pop(name, None)
        queries |= {query.name: query for query in catalog.queries}
        identities |= catalog.identities
        nodes |= {kept.number: kept for kept in catalog.nodes}
    return queries, identities, nodes


def _keep(number: int, node: CatalogNode) -> KeptNode:
    shape, members = node.shape, node.members
    return KeptNode(
        number,
        shape.step,
        shape.stage,
        node.inputs,
        tuple(edge for _, edge in shape.inputs),
        shape.layout,
        shape.generation,
        members.living_members(),
        np.array(members.living_numbers(), np.int64),
        np.array(members.born, np.int64),
    )


def _restore(topology: Topology, kept: KeptNode) -> None:
    """Puts a node back in its place."""
    below = [topology.graph.nodes[i].shape for i in kept.inputs]
    inputs = tuple(zip(below, kept.edges, strict=True))
    shape = Shape(kept.step, kept.stage, inputs, kept.layout, kept.generation)
    topology.graph.nodes[kept.number] = CatalogNode(shape, kept.inputs, _members(kept))
    topology.graph.index[shape] = kept.number
    first = replace(shape, generation=0) if kept.generation else shape
    topology.graph.alike.setdefault(first, []).append(kept.number)


def _members(kept: KeptNode) -> Members:
    there = dict(zip(kept.at.tolist(), kept.members, strict=True))
    if len(there) != len(kept.at) or not there:
        raise ValueError("a member for each number")
    members, first = Members(), next(iter(there.values()))
    for at, version in enumerate(kept.born.tolist()):
        members.add(there.pop(at, first), version)
    if there:
        raise LookupError("a member behind the last place")
    for at in sorted({*range(members.places)} - {*kept.at.tolist()}):
        members.drop(at)
    return members
