"""Recounts the uses of a topology's members, and drops members that only some queries use.

``Topology.remove`` reverts the changes of a query, table by table. If that fails, the topology is
read from its file again, and the members in use follow from the remaining queries. Cost: linear in
the members.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection

import numpy as np

from levada.plan.topology.topology import Topology


def count_uses(topology: Topology) -> None:
    """Counts the uses of each member: by the members that read it, and by queries."""
    uses = {n: np.zeros(node.members.places, np.int64) for n, node in topology.graph.nodes.items()}
    for node in topology.graph.nodes.values():
        for i, below in enumerate(node.inputs):
            np.add.at(uses[below], node.members.living_members().inputs[i], 1)
    for query in topology.queries.values():
        uses[query.node][query.member] += 1
    for switch in topology.switches.values():
        uses[switch.node][switch.member] += 1
    for n, node in topology.graph.nodes.items():
        node.members.uses = array("q", uses[n].tolist())


def drop_queries(topology: Topology, names: Collection[str]) -> None:
    """Removes queries from a topology that was just read, with members that no other query uses.

    The streams that the queries made keep their numbers.
    """
    for of in (topology.queries, topology.switches):
        for name in names:
            of.pop(name, None)
    topology.streams.remove_makers(names)
    count_uses(topology)
    for number in reversed(topology.graph.order()):
        node = topology.graph.nodes[number]
        members = node.members
        for at in members.living_numbers():
            if not members.uses[at]:
                for below, used in zip(node.inputs, members[at].inputs, strict=True):
                    topology.graph.nodes[below].members.uses[used] -= 1
                members.drop(at)
        if not members:
            topology.graph.drop_node(number)
