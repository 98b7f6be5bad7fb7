"""The installation of queries that are added together: common operators are installed once, with
the columns of all readers.

    numbers     the operators of each query, inputs first
                (``binding/installer``, ``share_equal_operators``)
    needs       from the results down: an operator's needs are the union of its readers'
    operators   from the streams up; existing ones are read, and nothing below them is requested

Results do not depend on it: each edge drops unneeded columns. Cost: linear in the operators of the
queries; values that follow from a form and its needs are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from levada.plan.binding.edges import Installed, Read, base_of, collect_reads
from levada.plan.binding.installer import Installer, Place
from levada.plan.binding.required_facets import Needs, emit_needs
from levada.plan.binding.slot_resolution import slots_of
from levada.plan.execution.row_layout import NOTHING, Facet
from levada.plan.physical.operators import Applied, Constant, Op
from levada.plan.sharing.share_equal_operators import (
    CommonSubexpressions,
    InstalledOperator,
    Numbered,
    Wanted,
)


class _RequestedOperator(NamedTuple):
    """An operator as the first query with it has it."""

    installer: Installer
    op: Op
    numbered: Numbered
    place: Place
    below: tuple[int, ...]


@dataclass(slots=True)
class Batch:
    """The queries of plan version ``version`` that are not yet installed. ``narrower``: the running
    relaxed joins that lack a column which these queries read, and that a wider one replaces.
    """

    common: CommonSubexpressions
    version: int
    roots: dict[str, int] = field(default_factory=dict)
    narrower: list[InstalledOperator] = field(default_factory=list)
    _asked: dict[int, _RequestedOperator] = field(default_factory=dict)
    _wanted: dict[int, dict[int, Facet]] = field(default_factory=dict)
    _input_reads: dict[int, list[Read]] = field(default_factory=dict)
    _made: dict[int, InstalledOperator] = field(default_factory=dict)

    def number(self, installer: Installer, op: Op) -> int:
        """Returns the number of an operator of an added query."""

        def note(op: Op, numbered: Numbered, place: Place) -> None:
            if numbered.number not in self._asked:
                whole = isinstance(op.spec, Applied)
                bases = () if whole else (base_of(child) for child in op.inputs)
                below = tuple([installer.numbers[id(base)] for base in bases])
                self._asked[numbered.number] = _RequestedOperator(
                    installer, op, numbered, place, below
                )

        return installer.number(op, self.common, note)

    def ask(self, name: str, installer: Installer, root: Op) -> None:
        """Adds a query by its last operator, its Emit."""
        self.roots[name] = self.number(installer, root)
        self._want(self.roots[name], _places(root, emit_needs(root)))

    def install(self) -> dict[str, InstalledOperator]:
        """Installs all queries; returns the installed last operator of each."""
        new = [number for number in sorted(self._asked, reverse=True) if self._read(number)]
        for number in reversed(new):
            self._made[number] = made = self._make(number)
            self.common.install(number, made)
        return {name: self._made[number] for name, number in self.roots.items()}

    def _want(self, number: int, wanted: Wanted) -> None:
        known = self._wanted.setdefault(number, {})
        for at, facets in wanted:
            known[at] = known.get(at, NOTHING) | facets

    def _read(self, number: int) -> bool:
        """Whether an operator must be installed; then it requests its inputs."""
        if number not in self._wanted:
            return False
        wanted = self._wanted[number]
        known = self.common.known[number]
        there = known.find_covering(wanted, self.version)
        if there is not None:
            self._made[number] = there
            return False
        if known.form.is_relaxed_join:
            self.narrower += known.made
        wanted = self._wanted[number] = known.widen(wanted)
        asked = self._asked[number]
        key, form = tuple(sorted(wanted.items())), asked.numbered.form
        if key not in form.reads:
            input_reads = collect_reads(asked.op, _needs(asked.op, key)) if asked.below else []
            self._input_reads[number] = input_reads
            form.reads[key] = tuple([_places(read.base, read.wants) for read in input_reads])
        for below, wants in zip(asked.below, form.reads[key], strict=True):
            self._want(below, wants)
        return True

    def _make(self, number: int) -> InstalledOperator:
        """Installs an operator, with the shape of an earlier one of its form if the inputs are the
        same.
        """
        asked = self._asked[number]
        installer, op, numbered, place, below = asked
        inputs = [self._made[n] for n in below]
        key = tuple(sorted(self._wanted[number].items()))
        shape, places = numbered.form.shapes.get(key, (None, ()))
        if shape is not None and all(
            a is b.shape for (a, _), b in zip(shape.inputs, inputs, strict=True)
        ):
            member = numbered.member.with_inputs(tuple([made.member for made in inputs]))
            return InstalledOperator(*installer.intern(shape, member), places, self.version)

        def made_below(base: Op) -> Installed:
            return self._made[installer.numbers[id(base)]].with_variables(base.variables)

        needs = _needs(op, key)
        input_reads = self._input_reads.pop(number, None) or collect_reads(op, needs)
        (installed_shape, member_number, names), shape = installer.make(
            op, place, needs, made_below, input_reads
        )
        places = slots_of(names, op.variables)
        if not isinstance(op.spec, Applied | Constant):  # constants are those that are read
            numbered.form.shapes[key] = shape, places
        return InstalledOperator(installed_shape, member_number, places, self.version)


def _places(op: Op, needs: Needs) -> Wanted:
    return tuple([(at, needs[v]) for at, v in enumerate(op.variables) if v in needs])


def _needs(op: Op, wanted: Wanted) -> Needs:
    return {op.variables[at]: facets for at, facets in wanted}
