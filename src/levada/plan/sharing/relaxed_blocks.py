"""The choice of the queries that read relaxed blocks: those with equal blocks of different demand
(``share_relaxed_joins``).

A block has two forms: with times of each window of its query, and with times of each leaf
(``per_leaf_times``). In the second form blocks are equal that read the same patterns in one window
here and in several there. This form has more columns, so it is used only if such queries exist, or
if it runs already. It follows from the first form, so it is computed once for all equal blocks.

Cost: linear in the operators of the queries that have blocks; a key for each block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from levada.core.rdf_terms import Term
from levada.plan.binding.installer import Installer
from levada.plan.logical.query_template import substitute
from levada.plan.physical.operators import Op
from levada.plan.sharing.share_equal_operators import Key
from levada.plan.sharing.share_relaxed_joins import (
    Block,
    BlockDemand,
    blocks,
    replace_operators,
    sub_blocks,
)

Refused = Callable[[str], str]


@dataclass(eq=False, slots=True)
class Alike:
    """Blocks that are equal (``key``) except for the rows that their queries want.

    ``wants``: the number of queries with each demand. ``exact``: how many of them have the block
    unrelaxed, and ``unrelaxed``: their names. ``last``: the last query that reads the relaxed
    block. ``users``: the number of queries that read it, without the rows of templates.

    ``block_count``: the number of blocks with this form over the windows of their queries.
    ``by_leaf``: the form of these blocks with times of each leaf, if it differs. ``places``: the
    position of each leaf's window among the windows of the block. ``forms``: the number of forms
    that become this one with times of each leaf.
    """

    key: Key
    wants: Counter[BlockDemand] = field(default_factory=Counter)
    exact: Counter[BlockDemand] = field(default_factory=Counter)
    unrelaxed: dict[str, None] = field(default_factory=dict)
    last: str = ""
    users: int = 0
    block_count: int = 0
    forms: int = 0
    by_leaf: Alike | None = None
    places: tuple[int, ...] = ()

    @property
    def form(self) -> Alike:
        """The form with times of each leaf, or this one."""
        return self if self.by_leaf is None else self.by_leaf

    @property
    def is_mixed(self) -> bool:
        """Whether blocks of other windows exist, or have existed and their join still does."""
        return self.form.forms > 1 or self.form.users > 0


class RegisteredBlock(NamedTuple):
    """A block of a query with its entry; ``above``: the identity of the join above a block within
    another.
    """

    alike: Alike
    block: Block
    above: int = 0


class Picked(NamedTuple):
    """The demand of a query on equal blocks."""

    alike: Alike
    wants: BlockDemand


@dataclass(slots=True)
class Relaxations:
    """The blocks of all queries. ``apart``: reasons why queries have joins of their own. ``late``:
    queries with a block unrelaxed that others share relaxed by now. They may be planned again and
    then share it, too (``plan/migration/migrate_to_shared``).
    """

    alike: dict[Key, Alike] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)
    late: dict[str, None] = field(default_factory=dict)
    _of: dict[str, list[RegisteredBlock]] = field(default_factory=dict)
    _within: dict[str, list[RegisteredBlock]] = field(default_factory=dict)
    _exact: dict[str, list[Picked]] = field(default_factory=dict)
    _picked: dict[str, list[Picked]] = field(default_factory=dict)

    def note(self, name: str, installer: Installer, root: Op) -> None:
        """Registers the blocks of an added query."""
        windows = installer.timing.member_of_rows
        registered = [self._register(installer, block) for block in blocks(root, windows)]
        within = [
            self._register(installer, inner, above)
            for one in registered
            for above, inner in sub_blocks(one.block.join, windows)
        ]
        if registered:
            self._of[name] = registered
        if within:
            self._within[name] = within

    def recover(self, name: str, installer: Installer, root: Op, *, picks: bool) -> None:
        """Registers the blocks of a query of a previous run; ``picks``: it reads them relaxed."""
        self.note(name, installer, root)
        for alike, block, _ in self._of.get(name, ()):
            if picks:
                self._count_picked(name, alike, block.wants)
            else:
                self._count_exact(name, alike, block.wants)

    def note_as(self, name: str, like: str, terms: Mapping[Term, Term]) -> None:
        """Registers an added query like another one, except for these terms."""
        registered = [
            _count_block(
                RegisteredBlock(alike, replace(block, wants=substitute(block.wants, terms)))
            )
            for alike, block, _ in self._of.get(like, ())
        ]
        if registered:
            self._of[name] = registered

    def _register(self, installer: Installer, block: Block, above: int = 0) -> RegisteredBlock:
        key = installer.signature(block.relaxed)
        alike = self.alike.get(key)
        if alike is None or not alike.block_count:
            leaves = block.leaves
            other = installer.signature(block.with_leaf_times().relaxed) if leaves else None
            alike = self._form_of(key, other, leaves)
        return _count_block(RegisteredBlock(alike, block, above))

    def _form_of(self, key: Key, by_leaf: Key | None, places: tuple[int, ...]) -> Alike:
        """Returns the entry of a form; ``by_leaf``: its form with times of each leaf, if it
        differs.
        """
        entry = self.alike.get(key)
        if entry is None:
            entry = self.alike[key] = Alike(key)
        if by_leaf is not None and entry.by_leaf is None:
            other = self.alike.get(by_leaf)
            if other is None:
                other = self.alike[by_leaf] = Alike(by_leaf)
            entry.by_leaf, entry.places = other, places
        return entry

    def forget(self, name: str) -> None:
        """Removes a query."""
        self.apart.pop(name, None)
        self.late.pop(name, None)
        for alike, wants in self._exact.pop(name, ()):
            _decrement(alike.exact, wants)
            alike.unrelaxed.pop(name, None)
        for alike, _ in self._picked.pop(name, ()):
            alike.users -= 1
        for alike, block, _ in (*self._of.pop(name, ()), *self._within.pop(name, ())):
            alike.block_count -= 1
            alike.form.forms -= not alike.block_count
            if alike.by_leaf is not None:
                self._forget(name, alike.by_leaf, block.wants.select_windows(alike.places))
            self._forget(name, alike, block.wants)

    def _forget(self, name: str, alike: Alike, wants: BlockDemand) -> None:
        _decrement(alike.wants, wants)
        if not alike.wants:
            del self.alike[alike.key]
        elif alike.last == name:
            alike.last = ""

    def relax(self, name: str, root: Op, refused: Refused) -> Op:
        """Returns a query with its blocks relaxed for which other queries have other demands.

        If a block is not relaxed, the blocks within it are considered, unless it runs unrelaxed
        already. ``refused`` returns why a new query gets a join of its own ("": it does not), from
        the last query with the relaxed block ("": there is none).
        """
        by: dict[int, Op] = {}
        whole: set[int] = set()  # joins whose parts are skipped from now on
        for one in (*self._of.get(name, ()), *self._within.get(name, ())):
            join = id(one.block.join)
            if one.above in whole:
                whole.add(join)
            elif (block := self._take_block(name, one, refused)) is not None:
                by[join] = block.pick()
                whole.add(join)
        return replace_operators(root, by, {}, late=True) if by else root

    def _take_block(self, name: str, one: RegisteredBlock, refused: Refused) -> Block | None:
        """Returns the block as a query picks from it; None: the query has it unrelaxed."""
        block_form, block = one.alike, one.block
        alike = (
            block_form.by_leaf
            if block_form.by_leaf is not None and block_form.is_mixed
            else block_form
        )
        wants = (
            block.wants if alike is block_form else block.wants.select_windows(block_form.places)
        )
        asked = len(alike.wants) > 1 and block.wants not in block_form.exact
        why = refused(alike.last) if asked else ""
        if why:
            self.apart[name] = why
        if asked and not why:
            self.late |= block_form.unrelaxed
            block_form.unrelaxed = {}
            self._count_picked(name, alike, wants)
            return block if alike is block_form else block.with_leaf_times()
        self._count_exact(name, block_form, block.wants)
        return None

    def _count_picked(self, name: str, alike: Alike, wants: BlockDemand) -> None:
        alike.last, alike.users = name, alike.users + 1
        self._picked.setdefault(name, []).append(Picked(alike, wants))

    def _count_exact(self, name: str, alike: Alike, wants: BlockDemand) -> None:
        alike.exact[wants] += 1
        alike.unrelaxed[name] = None
        self._exact.setdefault(name, []).append(Picked(alike, wants))

    def partners(self, name: str) -> int:
        """Returns the number of other queries that pick from the relaxed joins of a query."""
        relaxed = [alike for alike, _ in self._picked.get(name, ())]
        return max([0, *(alike.users - 1 for alike in relaxed)])

    @property
    def pickers(self) -> tuple[str, ...]:
        """The queries that pick from relaxed joins, without the rows of templates."""
        return tuple(self._picked)

    @property
    def names(self) -> tuple[str, ...]:
        """The queries with a join that others could share."""
        return tuple(self._of)

    def shareable_joins(self, name: str) -> Iterator[tuple[Key, Block]]:
        """Yields the joins of a query that others could share, each by its form, with its block."""
        return ((one.alike.form.key, one.block) for one in self._of.get(name, ()))


def _count_block(one: RegisteredBlock) -> RegisteredBlock:
    """Counts a block from now on."""
    alike, wants = one.alike, one.block.wants
    alike.form.forms += not alike.block_count
    alike.block_count += 1
    alike.wants[wants] += 1
    if alike.by_leaf is not None:
        alike.by_leaf.wants[wants.select_windows(alike.places)] += 1
    return one


def _decrement(counts: Counter[BlockDemand], wants: BlockDemand) -> None:
    counts[wants] -= 1
    if not counts[wants]:
        del counts[wants]
