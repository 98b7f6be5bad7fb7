"""Static rows that the run before has kept: what newcomers find of them when it goes on.

What operators do is noted as queries come (``plan/install/common``), and a catalog that is read
again has members alone. Of an ``Arrange`` over a pattern it says all: which variables are kept by
which, of which constants and graphs, and, as ``since``, of which version of the static files. So it
is noted as if it had just been installed, and who asks for the same reads it. Cost: linear in the
members of arrangements.
"""

from __future__ import annotations

from levada.plan.install.common import Common, Form, Made
from levada.plan.sealed import steps as s
from levada.plan.sealed.shapes import Shape
from levada.plan.topology.topology import Topology


def stand_kept(topology: Topology) -> None:
    """Notes the arrangements of patterns that a topology has which was read."""
    common = topology._common
    for node in topology.nodes.values():
        if (forms := _forms(common, node.shape)) is None:
            continue
        below, form, places = forms
        leaves = topology.nodes[node.inputs[0]].members
        for member, own in node.members.index.items():
            leaf = leaves[member.inputs[0]]._replace(since=member.since)
            pattern = common.number(below, (leaf,))
            number = common.number(form, (member.over(()), pattern))
            common.install(number, Made(node.shape, own, places, topology.version))


def _forms(common: Common, shape: Shape) -> tuple[Form, Form, tuple[int, ...]] | None:
    """The forms of a static pattern and of what keeps it by some of its variables, and the
    variables that are kept; None: this is none. A pattern has a slot for each of its variables
    (``install.edges.outputs_of``), and both are as ``Installer.number`` has them.
    """
    if not isinstance(shape.step, s.Arrange):
        return None
    ((leaf, edge),) = shape.inputs
    if not isinstance(leaf.step, s.Match | s.Entailed) or not leaf.step.static:
        return None
    at, width = edge.slots, len(leaf.layout.slots)
    below = common.form((leaf.step, leaf.stage, (), width, (), False, False), True)
    keys = tuple([at[key] for key in shape.step.keys])
    by = None if edge.exchange is None else tuple([at[i] for i in edge.exchange])
    step = s.Arrange(keys, tuple(range(width)))
    read = ((below, (), (), by),)
    form = common.form((step, shape.stage, read, width, (), False, False), True, keeps=True)
    return below, form, tuple([at[key] for key in shape.step.kept])
