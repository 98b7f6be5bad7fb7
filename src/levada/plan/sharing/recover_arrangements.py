"""The recovery of arrangements of an earlier run by their members alone.

Operators are registered when queries are added (``share_equal_operators``). The members of an
``Arrange`` over a pattern define it completely: the kept variables and keys, the constants and
graphs, and (``since``) the version of the static files. For rows of a stream, which are made a set,
they also define the windows. So the arrangement is registered as if it had just been installed, and
later queries read it. Cost: linear in the registered members.
"""

from __future__ import annotations

from dataclasses import replace

from levada.plan.execution import steps as s
from levada.plan.execution.shapes import Member, Shape
from levada.plan.sharing.share_equal_operators import CommonSubexpressions, Form, InstalledOperator
from levada.plan.topology.topology import Topology


def recover_arrangements(topology: Topology) -> None:
    """Registers the arrangements of patterns in a topology that was read from a file."""
    for node in topology.graph.nodes.values():
        for member in node.members.index.values() if isinstance(node.shape.step, s.Arrange) else ():
            _note_arrangement(topology, node.shape, member)


def _note_arrangement(topology: Topology, shape: Shape, member_number: int) -> None:
    """Registers a member of an arrangement, if it is over a pattern."""
    node = topology.graph.nodes[topology.graph.index[shape]]
    if (forms := _forms(topology.graph.common, shape)) is None:
        return
    member = node.members[member_number]
    leaf = topology.graph.nodes[node.inputs[0]].members[member.inputs[0]]
    number = _number(topology.graph.common, forms, leaf, member)
    made = InstalledOperator(node.shape, member_number, forms[2], topology.version)
    topology.graph.common.install(number, made)


def _number(common: CommonSubexpressions, forms: _Forms, leaf: Member, arrangement: Member) -> int:
    """Returns the number of a pattern's arrangement; the version of the static files is part of
    both.
    """
    below, form, _ = forms
    pattern = common.number(below, (leaf._replace(since=arrangement.since),))
    return common.number(form, (arrangement._replace(inputs=()), pattern))


_Forms = tuple[Form, Form, tuple[int, ...]]


def _forms(common: CommonSubexpressions, shape: Shape) -> _Forms | None:
    """Returns the forms of a pattern and of its arrangement, and the kept variables.

    None: the shape is not an arrangement of a pattern. Such a pattern has a slot for each of its
    variables (``plan.binding.edges.outputs_of``; for a stream because it is made a set), and both
    forms are as in ``Installer.number``.
    """
    step = shape.step
    if not isinstance(step, s.Arrange):
        return None
    ((leaf, edge),) = shape.inputs
    of_stream = step if isinstance(step, s.ArrangeStream) and step.raw else None
    if not isinstance(leaf.step, s.Match | s.Entailed) or not (leaf.step.static or of_stream):
        return None
    once, width = leaf.step.static, len(leaf.layout.slots)
    at = edge.slots
    below = common.form((leaf.step, leaf.stage, (), width, (), False, False, ()), once)
    keys = tuple([at[key] for key in step.keys])
    by = None if edge.exchange is None else tuple([at[i] for i in edge.exchange])
    every = tuple(range(width))
    whole = replace(of_stream or step, keys=keys, kept=every)
    read = ((below, (), (), by),)
    form = common.form((whole, shape.stage, read, width, (), False, False, ()), once, keeps=True)
    return below, form, tuple([at[key] for key in step.kept])
