"""What queries have in common: operators by what they do, whatever is read of them.

An operator's *form* is its step over all variables of its inputs, and their forms; with its
parameters and the numbers of its inputs it is one operator and has a *number*, however much its
readers want of it: other columns, facets, forms of the result. What is installed of an operator has
the columns of all its readers that came together, and each edge takes its own
(``plan/install/batch``). So a newcomer reads what is there if that has all that it wants; else it
has one of its own, since rows of state cannot get a column that they came without.

What static data alone answer flows once, when it is read. So it is no newcomer's; what needs a row
of a stream beside, a join, has it in its state, and is, and so does what keeps it for joins, an
``Arrange``. A newcomer that wants more of that than is kept has another one made with both.
A number lives as long as something is installed of its operator, or it is held (``shared``), a form
as long as its numbers.
Cost: two look-ups for each operator of each query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from levada.plan.binding.edges import Installed
from levada.plan.execution.row_layout import NOTHING, Facet
from levada.plan.execution.shapes import Member, Shape

Key = tuple[object, ...]
Wanted = tuple[tuple[int, Facet], ...]
"""Facets by the place of a variable among those of its operator, ascending."""


@dataclass(eq=False, slots=True)
class Form:
    """What operators have in common that differ in parameters alone. ``once``: some of their rows
    come when static data are read, and never again; ``keeps``: who comes later finds them here.

    ``reads``: what each input is asked for where so much is wanted, ``shapes``: what was installed
    then, and which variable each slot is. Both follow from the form; they are remembered.
    """

    key: Key
    once: bool
    keeps: bool = False
    uses: int = 0
    reads: dict[Wanted, tuple[Wanted, ...]] = field(default_factory=dict)
    shapes: dict[Wanted, tuple[Shape, tuple[int, ...]]] = field(default_factory=dict)


class Numbered(NamedTuple):
    """An operator's number, its form, and what its member has beside inputs."""

    number: int
    form: Form
    member: Member


class InstalledOperator(NamedTuple):
    """What is installed of an operator in plan version ``version``; ``places``: which of its
    variables each slot is.
    """

    shape: Shape
    member: int
    places: tuple[int, ...]
    version: int

    def covers(self, wanted: Mapping[int, Facet]) -> bool:
        """Whether rows have all these columns, and their texts."""
        slots = dict(zip(self.places, self.shape.layout.slots, strict=True))
        return all(at in slots and _has(slots[at], facets) for at, facets in wanted.items())

    def with_variables(self, variables: tuple[str, ...]) -> Installed:
        """It as an operator of these variables."""
        return Installed(
            self.shape, self.member, tuple([variables[place] for place in self.places])
        )


@dataclass(slots=True)
class Known:
    """An operator that there is, and what is installed of it; ``held``: how often its number is
    known beside that.
    """

    key: Key
    form: Form
    made: list[InstalledOperator] = field(default_factory=list)
    held: int = 0

    def find_covering(self, wanted: Mapping[int, Facet], version: int) -> InstalledOperator | None:
        """What a query of this plan version may read, if anything."""
        for made in self.made:
            stays = self.form.keeps or not self.form.once
            if made.covers(wanted) and (made.version == version or stays):
                return made
        return None

    def widen(self, wanted: Mapping[int, Facet]) -> dict[int, Facet]:
        """What is to be installed for a newcomer that wants this: of what is kept for whoever comes
        also what others have of it, so that there are not many that have a part each.
        """
        facets_by_place = dict(wanted)
        for made in self.made if self.form.keeps else ():
            for place, facets in zip(made.places, made.shape.layout.slots, strict=True):
                facets_by_place[place] = facets_by_place.get(place, NOTHING) | facets
        return facets_by_place


class CommonSubexpressions:
    """The operators of all queries, by their numbers: those of inputs are lower."""

    def __init__(self) -> None:
        self.known: dict[int, Known] = {}
        self._numbers: dict[Key, int] = {}
        self._forms: dict[Key, Form] = {}
        self._of: dict[tuple[int, int], list[int]] = {}  # by shape and member
        self._kept = dict[object, int]()  # how much there is that keeps rows, by whose they are
        self._next = 0

    def form(self, key: Key, once: bool, *, keeps: bool = False) -> Form:
        """The form of this key."""
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = Form(key, once, keeps)
        return form

    def number(self, form: Form, parameters: Key) -> int:
        """The number of an operator of this form with these parameters, over these inputs."""
        key = (form, *parameters)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._next
            self.known[number] = Known(key, form)
            self._next += 1
            form.uses += 1
            if form.keeps:
                self._kept[parameters[-1]] = self._kept.get(parameters[-1], 0) + 1
        return number

    def keeps(self, below: int) -> bool:
        """Whether anything is known that keeps the rows of an operator."""
        return below in self._kept

    def install(self, number: int, made: InstalledOperator) -> None:
        """Notes what has been installed of an operator."""
        self.known[number].made.append(made)
        of = self._of.setdefault((id(made.shape), made.member), [])
        if number not in of:
            of.append(number)

    def forget(self, shape: Shape, member: int) -> None:
        """Forgets what nobody uses any more."""
        for number in self._of.pop((id(shape), member), ()):
            known = self.known[number]
            known.made = [m for m in known.made if m.shape is not shape or m.member != member]
            self._drop(number, known)

    def hold(self, number: int) -> None:
        """Keeps a number, whether anything is installed of its operator or not."""
        self.known[number].held += 1

    def release(self, number: int) -> None:
        """Keeps it no more."""
        known = self.known[number]
        known.held -= 1
        self._drop(number, known)

    def _drop(self, number: int, known: Known) -> None:
        if known.made or known.held:
            return
        del self.known[number], self._numbers[known.key]
        if known.form.keeps:
            self._kept[known.key[-1]] -= 1
            if not self._kept[known.key[-1]]:
                del self._kept[known.key[-1]]
        known.form.uses -= 1
        if not known.form.uses:
            del self._forms[known.form.key]


def _has(held: Facet, wanted: Facet) -> bool:
    """Whether a slot has these facets: a text comes with its identity."""
    lacks = int(wanted) & ~int(held)
    return not lacks or (lacks == int(Facet.ID) and Facet.TEXT in held)
