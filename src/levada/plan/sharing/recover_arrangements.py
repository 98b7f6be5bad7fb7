"""Rows that are kept, found by members alone: those of the run before, when it goes on, and those
of templates, which are installed by members (``rows``).

What operators do is noted as queries come (``plan/install/common``). Of an ``Arrange`` over a
pattern its members say all: which variables are kept by which, of which constants and graphs, and,
as ``since``, of which version of the static files; of rows of a stream, which are made a set, also
in which windows. So it is noted as if it had just been installed, and who asks for the same reads
it. Cost: linear in the members that are noted.
"""

from __future__ import annotations

from dataclasses import replace

from levada.plan.execution import steps as s
from levada.plan.execution.shapes import Member, Shape
from levada.plan.sharing.common_subexpressions import CommonSubexpressions, Form, InstalledOperator
from levada.plan.topology.topology import Topology


def recover_arrangements(topology: Topology) -> None:
    """Notes the arrangements of patterns that a topology has which was read."""
    for node in topology.nodes.values():
        for member in node.members.index.values() if isinstance(node.shape.step, s.Arrange) else ():
            note_arrangement(topology, node.shape, member)


def note_arrangement(topology: Topology, shape: Shape, member_number: int) -> None:
    """Notes a member of an arrangement, if it is of a pattern."""
    node = topology.nodes[topology.index[shape]]
    if (forms := _forms(topology._common, shape)) is None:
        return
    member = node.members[member_number]
    leaf = topology.nodes[node.inputs[0]].members[member.inputs[0]]
    number = _number(topology._common, forms, leaf, member)
    made = InstalledOperator(node.shape, member_number, forms[2], topology.version)
    topology._common.install(number, made)


def find_arrangement(topology: Topology, shape: Shape, leaf: Member) -> tuple[Shape, int] | None:
    """The arrangement of this shape and pattern, of the static files as they are; None: there is
    none.
    """
    forms = _forms(topology._common, shape)
    if forms is None or isinstance(shape.step, s.ArrangeStream):  # of streams by its shape
        return None
    number = _number(topology._common, forms, leaf, Member(since=topology.data))
    made = (one for one in topology._common.known[number].made if one.shape == shape)
    return next(((one.shape, one.member) for one in made), None)


def _number(common: CommonSubexpressions, forms: _Forms, leaf: Member, arrangement: Member) -> int:
    """The number of what keeps a pattern. Of static data the version of the files tells both."""
    below, form, _ = forms
    pattern = common.number(below, (leaf._replace(since=arrangement.since),))
    return common.number(form, (arrangement._replace(inputs=()), pattern))


_Forms = tuple[Form, Form, tuple[int, ...]]


def _forms(common: CommonSubexpressions, shape: Shape) -> _Forms | None:
    """The forms of a pattern and of what keeps it by some of its variables, and the variables that
    are kept; None: this is none. Such a pattern has a slot for each of its variables
    (``plan.binding.edges.outputs_of``; of a stream since it is made a set), and both are as
    ``Installer.number`` has them.
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
