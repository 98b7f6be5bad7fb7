"""Which queries have their blocks relaxed: those of which others want other rows
(``plan/install/relax``).

A block has two forms: with times of each window of its query, and with times of each pattern
(``physical/shared/by_leaf``). By the second those are alike that read the same patterns in one
window here and in several there. It has more columns, and so is taken only where there are such
queries, or where it runs.

Cost: linear in the operators of the queries that have blocks; two keys a block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from levada.algebra.template import substituted
from levada.model.term import Term
from levada.plan.install.common import Key
from levada.plan.install.install import Installer
from levada.plan.install.relax import Block, Wants, blocks, replaced, sub_blocks, with_leaf_times
from levada.plan.physical.operators import Op

Refused = Callable[[str, Sequence[Wants], Wants], str]


class Form(NamedTuple):
    """A block, and what it is but for what is wanted of it."""

    key: Key
    block: Block

    @property
    def wants(self) -> Wants:
        """What is wanted of it."""
        return self.block.wants


class Noted(NamedTuple):
    """A block of a query, as its ``own`` windows have it and ``by_leaf``, which may be the same;
    the join ``above`` it, by its identity, of one within another.
    """

    own: Form
    by_leaf: Form
    above: int = 0

    @property
    def forms(self) -> tuple[Form, ...]:
        """Both, if they are two."""
        return (self.own,) if self.by_leaf is self.own else (self.own, self.by_leaf)

    def with_terms(self, terms: Mapping[Term, Term]) -> Noted:
        """The same with other terms."""
        forms = [Form(key, _with_terms(block, terms)) for key, block in self.forms]
        return Noted(forms[0], forms[-1], self.above)


def _with_terms(block: Block, terms: Mapping[Term, Term]) -> Block:
    return replace(block, wants=substituted(block.wants, terms))


@dataclass(slots=True)
class Alike:
    """Blocks that are the same but for what is wanted of them: how many queries want each, and how
    many of these have it as it is, not relaxed. ``last``: the last query that has it relaxed;
    ``users``: how many have, but for rows of templates.
    """

    wants: Counter[Wants] = field(default_factory=Counter)
    exact: Counter[Wants] = field(default_factory=Counter)
    last: str = ""
    users: int = 0


@dataclass(slots=True)
class Relaxations:
    """The blocks of the queries that there are. ``apart``: why queries have joins of their own."""

    alike: dict[Key, Alike] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)
    _of: dict[str, list[Noted]] = field(default_factory=dict)
    _within: dict[str, list[Noted]] = field(default_factory=dict)
    _exact: dict[str, list[Form]] = field(default_factory=dict)
    _picked: dict[str, list[Form]] = field(default_factory=dict)
    # by its key by leaf: how many blocks there are of each key of their own
    _windowed: dict[Key, Counter[Key]] = field(default_factory=dict)

    def note(self, name: str, installer: Installer, root: Op) -> None:
        """A query that comes."""
        windows = installer.timing.of_rows
        found = [_noted(installer, block) for block in blocks(root, windows)]
        self._note(self._of, name, found)
        within = [
            _noted(installer, inner, above)
            for one in found
            for above, inner in sub_blocks(one.own.block.join, windows)
        ]
        self._note(self._within, name, within)

    def note_as(
        self, name: str, others: Relaxations, like: str, terms: Mapping[Term, Term]
    ) -> None:
        """A query that comes, as one of ``others`` is noted but for these terms."""
        self._note(self._of, name, [one.with_terms(terms) for one in others._of.get(like, ())])

    def _note(self, kept: dict[str, list[Noted]], name: str, found: list[Noted]) -> None:
        if found:
            kept[name] = found
        for one in found:
            self._windowed.setdefault(one.by_leaf.key, Counter())[one.own.key] += 1
            for key, block in one.forms:
                self.alike.setdefault(key, Alike()).wants[block.wants] += 1

    def forget(self, name: str) -> None:
        """A query that goes."""
        self.apart.pop(name, None)
        for form in self._exact.pop(name, ()):
            _less(self.alike[form.key].exact, form.wants)
        for form in self._picked.pop(name, ()):
            self.alike[form.key].users -= 1
        for one in (*self._of.pop(name, ()), *self._within.pop(name, ())):
            _less(self._windowed[one.by_leaf.key], one.own.key)
            if not self._windowed[one.by_leaf.key]:
                del self._windowed[one.by_leaf.key]
            for form in one.forms:
                self._forget(name, form)

    def _forget(self, name: str, form: Form) -> None:
        alike = self.alike[form.key]
        _less(alike.wants, form.wants)
        if not alike.wants:
            del self.alike[form.key]
        elif alike.last == name:
            alike.last = ""

    def relaxed(self, name: str, root: Op, refused: Refused) -> Op:
        """A query with those of its blocks relaxed of which others want other rows, and of one that
        is not, those within it; what runs as it is has no need of that. ``refused``: why a newcomer
        is to have its own ("": it is not), by what the last query has that has it relaxed, and what
        they want.
        """
        by: dict[int, Op] = {}
        whole: set[int] = set()  # joins of which no part is looked at any more
        for one in (*self._of.get(name, ()), *self._within.get(name, ())):
            join = id(one.own.block.join)
            if one.above in whole:
                whole.add(join)
            elif (form := self._taken(name, one, refused)) is not None:
                by[join] = form.block.picked()
                whole.add(join)
        return replaced(root, by, {}, late=True) if by else root

    def _taken(self, name: str, one: Noted, refused: Refused) -> Form | None:
        """The form in which a query picks a block; None: it has it as it is."""
        form, own = self._form(one), self.alike[one.own.key]
        alike = self.alike[form.key]
        asked = len(alike.wants) > 1 and one.own.wants not in own.exact
        why = refused(alike.last, tuple(alike.wants), form.wants) if asked and alike.last else ""
        if why:
            self.apart[name] = why
        if asked and not why:
            alike.last, alike.users = name, alike.users + 1
            self._picked.setdefault(name, []).append(form)
            return form
        own.exact[one.own.wants] += 1
        self._exact.setdefault(name, []).append(one.own)
        return None

    def _form(self, one: Noted) -> Form:
        """The form in which a block would be relaxed."""
        others = len(self._windowed[one.by_leaf.key]) > 1 or self.alike[one.by_leaf.key].users
        return one.by_leaf if others else one.own

    def partners(self, name: str) -> int:
        """How many other queries have parts of the relaxed joins that one has parts of."""
        relaxed = [self.alike[form.key] for form in self._picked.get(name, ())]
        return max([0, *(alike.users - 1 for alike in relaxed)])

    @property
    def names(self) -> tuple[str, ...]:
        """The queries that have a join that others could share."""
        return tuple(self._of)

    def of(self, name: str) -> Iterator[Form]:
        """The joins of a query that others could share, whatever its windows."""
        return (one.by_leaf for one in self._of.get(name, ()))


def _noted(installer: Installer, block: Block, above: int = 0) -> Noted:
    own = Form(installer.signature(block.relaxed), block)
    other = with_leaf_times(block, installer.timing.of_rows)
    by_leaf = own if other is None else Form(installer.signature(other.relaxed), other)
    return Noted(own, by_leaf, above)


def _less(counts: Counter[Wants] | Counter[Key], wants: Wants | Key) -> None:
    counts[wants] -= 1
    if not counts[wants]:
        del counts[wants]
