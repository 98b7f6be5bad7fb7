"""Static rows that are kept, found by members alone: those of the run before, when it goes on, and
those of templates, which are installed by members (``rows``).

What operators do is noted as queries come (``plan/install/common``). Of an ``Arrange`` over a
pattern its members say all: which variables are kept by which, of which constants and graphs, and,
as ``since``, of which version of the static files. So it is noted as if it had just been installed,
and who asks for the same reads it. Cost: linear in the members that are noted.
"""

from __future__ import annotations

from levada.plan.install.common import Common, Form, Made
from levada.plan.sealed import steps as s
from levada.plan.sealed.shapes import Member, Shape
from levada.plan.topology.topology import Topology


def stand_kept(topology: Topology) -> None:
    """Notes the arrangements of patterns that a topology has which was read."""
    for node in topology.nodes.values():
        for own in node.members.index.values() if isinstance(node.shape.step, s.Arrange) else ():
            note_kept(topology, node.shape, own)


def note_kept(topology: Topology, shape: Shape, own: int) -> None:
    """Notes a member of an arrangement, if it is of a pattern."""
    node = topology.nodes[topology.index[shape]]
    if (forms := _forms(topology._common, shape)) is None:
        return
    member = node.members[own]
    leaf = topology.nodes[node.inputs[0]].members[member.inputs[0]]
    number = _number(topology._common, forms, leaf, member.since)
    made = Made(node.shape, own, forms[2], topology.version)
    topology._common.install(number, made)


def find_kept(topology: Topology, shape: Shape, leaf: Member) -> tuple[Shape, int] | None:
    """The arrangement of this shape and pattern, of the static files as they are; None: there is
    none.
    """
    if (forms := _forms(topology._common, shape)) is None:
        return None
    number = _number(topology._common, forms, leaf, topology.data)
    made = (one for one in topology._common.known[number].made if one.shape == shape)
    return next(((one.shape, one.member) for one in made), None)


def _number(common: Common, forms: _Forms, leaf: Member, since: int) -> int:
    below, form, _ = forms
    pattern = common.number(below, (leaf._replace(since=since),))
    return common.number(form, (Member(since=since), pattern))


_Forms = tuple[Form, Form, tuple[int, ...]]


def _forms(common: Common, shape: Shape) -> _Forms | None:
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
