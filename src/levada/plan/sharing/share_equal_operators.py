"""Common subexpressions: equal operators of queries, regardless of the columns that are read.

An operator's *form* is its step over all variables of its inputs, and the forms of the inputs. With
its parameters and the numbers of its inputs it is one operator with a *number*, whatever columns,
facets or result forms its readers want. An installed operator has the columns of all readers that
were added together; each edge selects its own (``batch_install``). A new query reads an existing
operator if that has all that it wants. Otherwise it gets another one, since rows of state cannot
get a column later. Cost: two lookups for each operator of each query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from levada.plan.binding.edges import Installed
from levada.plan.execution.joins import Join
from levada.plan.execution.row_layout import NOTHING, Facet
from levada.plan.execution.shapes import Member, Shape

Key = tuple[object, ...]
Wanted = tuple[tuple[int, Facet], ...]
"""Facets by the place of a variable among those of its operator, ascending."""


@dataclass(eq=False, slots=True)
class Form:
    """The common part of operators that differ in parameters alone. It exists while its numbers do.

    ``once``: some of their rows arrive when static data are read, and never again, so a later query
    cannot read them. ``keeps``: they keep rows that later queries can read, as a join with a stream
    or an arrangement (``Arrange``) does. ``reads``: the needs of each input for these wanted
    facets. ``shapes``: the installed shape for them, and the variable of each slot. Both are
    caches.
    """

    key: Key
    once: bool
    keeps: bool = False
    uses: int = 0
    reads: dict[Wanted, tuple[Wanted, ...]] = field(default_factory=dict)
    shapes: dict[Wanted, tuple[Shape, tuple[int, ...]]] = field(default_factory=dict)

    @property
    def is_relaxed_join(self) -> bool:
        """Whether it is a join whose rows are those that some pick above wants."""
        return isinstance(step := self.key[0], Join) and step.relaxed


class Numbered(NamedTuple):
    """An operator's number, its form, and its member without inputs."""

    number: int
    form: Form
    member: Member


class InstalledOperator(NamedTuple):
    """An operator installed in plan version ``version``; ``places``: the variable of each slot."""

    shape: Shape
    member: int
    places: tuple[int, ...]
    version: int

    def covers(self, wanted: Mapping[int, Facet]) -> bool:
        """Whether the rows have all these columns, and their texts."""
        slots = dict(zip(self.places, self.shape.layout.slots, strict=True))
        return all(at in slots and _has(slots[at], facets) for at, facets in wanted.items())

    def with_variables(self, variables: tuple[str, ...]) -> Installed:
        """Returns it as an operator of these variables."""
        return Installed(
            self.shape, self.member, tuple([variables[place] for place in self.places])
        )


@dataclass(slots=True)
class SharedOperator:
    """An operator, and its installed versions. ``held``: the number of further holders of its
    number (``shared_join_sides``), which exists while it is installed or held.
    """

    key: Key
    form: Form
    made: list[InstalledOperator] = field(default_factory=list)
    held: int = 0

    def find_covering(self, wanted: Mapping[int, Facet], version: int) -> InstalledOperator | None:
        """Returns an installed operator that a query of this plan version may read, if there is
        one.
        """
        for made in self.made:
            stays = self.form.keeps or not self.form.once
            if made.covers(wanted) and (made.version == version or stays):
                return made
        return None

    def widen(self, wanted: Mapping[int, Facet]) -> dict[int, Facet]:
        """Returns the facets to install for a new query with these wanted facets.

        For arrangements and relaxed joins they include those of existing ones: there are never
        many partial ones, and the readers of the existing ones may go over to the new one.
        """
        facets_by_place = dict(wanted)
        for made in self.made if self.form.keeps or self.form.is_relaxed_join else ():
            for place, facets in zip(made.places, made.shape.layout.slots, strict=True):
                facets_by_place[place] = facets_by_place.get(place, NOTHING) | facets
        return facets_by_place


class CommonSubexpressions:
    """The operators of all queries by number; inputs have lower numbers."""

    def __init__(self) -> None:
        self.known: dict[int, SharedOperator] = {}
        self._numbers: dict[Key, int] = {}
        self._forms: dict[Key, Form] = {}
        self._of: dict[tuple[int, int], list[int]] = {}  # by shape and member
        self._kept = dict[object, int]()  # the number of arrangements for each operator
        self._next = 0

    def form(self, key: Key, once: bool, *, keeps: bool = False) -> Form:
        """Returns the form of this key."""
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = Form(key, once, keeps)
        return form

    def number(self, form: Form, parameters: Key) -> int:
        """Returns the number of an operator of this form with these parameters and inputs."""
        key = (form, *parameters)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._next
            self.known[number] = SharedOperator(key, form)
            self._next += 1
            form.uses += 1
            if form.keeps:
                self._kept[parameters[-1]] = self._kept.get(parameters[-1], 0) + 1
        return number

    def keeps(self, below: int) -> bool:
        """Whether an arrangement of an operator's rows exists."""
        return below in self._kept

    def install(self, number: int, made: InstalledOperator) -> None:
        """Registers an installed operator."""
        self.known[number].made.append(made)
        of = self._of.setdefault((id(made.shape), made.member), [])
        if number not in of:
            of.append(number)

    def forget(self, shape: Shape, member: int) -> None:
        """Removes an operator that is no longer used."""
        for number in self._of.pop((id(shape), member), ()):
            known = self.known[number]
            known.made = [m for m in known.made if m.shape is not shape or m.member != member]
            self._drop(number, known)

    def hold(self, number: int) -> None:
        """Holds a number, whether its operator is installed or not."""
        self.known[number].held += 1

    def release(self, number: int) -> None:
        """Releases a held number."""
        known = self.known[number]
        known.held -= 1
        self._drop(number, known)

    def _drop(self, number: int, known: SharedOperator) -> None:
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
    """Whether a slot has these facets: a text includes its identity."""
    lacks = int(wanted) & ~int(held)
    return not lacks or (lacks == int(Facet.ID) and Facet.TEXT in held)
