"""The catalog as a file: a topology with the identities of its queries, written beside its plan.

What follows from the rest is not written: the tables that find a node by its shape and a member's
number by the member, the queries' streams. A shape is written as its step and its edges to other
nodes, since the inputs of a node's shape are the shapes of nodes that were there before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from levada.errors import unreadable
from levada.model.arrays import Longs
from levada.plan.encoding.document import encode, read_file
from levada.plan.encoding.plans import RECORDS, VALUES
from levada.plan.encoding.registry import Registry
from levada.plan.lowering.scans import StreamFacts
from levada.plan.sealed.layout import Layout
from levada.plan.sealed.plan import QueryPlan
from levada.plan.sealed.shapes import Edge, Member, Shape
from levada.plan.sealed.steps import Step
from levada.plan.topology.members import Members
from levada.plan.topology.topology import CatalogNode, Topology


@dataclass(frozen=True)
class KeptNode:
    """A node of the catalog. ``members`` are the living ones, ``at`` their numbers; ``uses`` and
    ``born`` of all places.
    """

    number: int
    step: Step
    stage: int
    inputs: tuple[int, ...]
    edges: tuple[Edge, ...]
    layout: Layout
    generation: int
    members: tuple[Member, ...]
    at: Longs
    uses: Longs
    born: Longs


@dataclass(frozen=True)
class Catalog:
    """A topology and the identities of its queries."""

    version: int
    numbers: int
    streams: tuple[str, ...]
    facts: Mapping[str, StreamFacts]
    replaceable: frozenset[str | None]
    made: Mapping[str, str]
    queries: tuple[QueryPlan, ...]
    identities: Mapping[str, str]
    nodes: tuple[KeptNode, ...]


CATALOGS = Registry(
    VALUES, RECORDS | {"stream facts": StreamFacts, "kept node": KeptNode, "catalog": Catalog}
)


def encode_catalog(topology: Topology, identities: Mapping[str, str]) -> bytes:
    """A topology and the identities of its queries as the bytes of their file."""
    topology.install()
    catalog = Catalog(
        topology.version,
        topology.numbers,
        topology.streams,
        topology.facts,
        topology.replaceable,
        topology.made,
        tuple(topology.queries.values()),
        identities,
        tuple(_keep(number, node) for number, node in topology.nodes.items()),
    )
    return encode(catalog, CATALOGS)


def read_catalog(path: Path) -> tuple[Topology, dict[str, str]]:
    """The topology in a file, and the identities of its queries. Raises ``CheckpointError``."""
    catalog = read_file(path, Catalog, CATALOGS)
    topology = Topology(catalog.facts, catalog.replaceable)
    topology.go_on(catalog.version, catalog.numbers)
    topology.streams, topology.made = catalog.streams, dict(catalog.made)
    topology.queries = {query.name: query for query in catalog.queries}
    try:
        for kept in catalog.nodes:
            _restore(topology, kept)
    except (LookupError, ValueError) as error:
        raise unreadable(path, "its nodes do not fit") from error
    return topology, dict(catalog.identities)


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
        tuple(members.index),
        np.array(members.living(), np.int64),
        np.array(members.uses, np.int64),
        np.array(members.born, np.int64),
    )


def _restore(topology: Topology, kept: KeptNode) -> None:
    """Puts a node where it was."""
    below = [topology.nodes[i].shape for i in kept.inputs]
    inputs = tuple(zip(below, kept.edges, strict=True))
    shape = Shape(kept.step, kept.stage, inputs, kept.layout, kept.generation)
    topology.nodes[kept.number] = CatalogNode(shape, kept.inputs, _members(kept))
    topology.index[shape] = kept.number
    first = replace(shape, generation=0) if kept.generation else shape
    topology.alike.setdefault(first, []).append(kept.number)


def _members(kept: KeptNode) -> Members:
    at = kept.at.tolist()
    rows: list[Member | None] = [None] * len(kept.uses)
    for number, member in zip(at, kept.members, strict=True):
        rows[number] = member
    index = dict(zip(kept.members, at, strict=True))
    return Members(index, rows, kept.uses.tolist(), kept.born.tolist())
