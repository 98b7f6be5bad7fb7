"""The budget of one task in an epoch: bytes of live rows, bytes of computed texts and CPU seconds
of expressions, charged to the operators.

An operator is charged for the columns that it puts out and for the texts that it computes, until
the last row that shows them is dropped. Texts are also counted before they are made, and seconds
between texts and between parts of rows. The charge of a query is the sum over its operators
(``Heaviest``). The sum over all operators is at least that, so queries are looked at only if the
sum exceeds the limit of one query, and again only after the sum has grown by the rest of the
heaviest query's limit. The limits of texts and seconds grow with the rows that have been read, so a
backlog, or much static data, suspends no query.

Cost: a weak reference for each column that an operator puts out. As long as all columns so far take
no more than the limit of one query, no query can exceed it, and nothing else is done: columns are
charged, and followed until they are dropped, from the point where it is possible
(``_charge_new_columns``). Frames of fewer than ``MIN_CHARGED_ROWS`` rows are not charged. Where an
operator has several members, its texts and seconds are counted by member.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import numpy.typing as npt

from levada.core import query_limits as limits
from levada.core.array_types import Bools, Doubles, Ints, Longs
from levada.core.frame import Frame
from levada.core.member_columns import count_rows
from levada.core.query_limits import ELEMENTS, QueryLimits
from levada.core.size_thresholds import register
from levada.errors import ExcessError

MIN_CHARGED_ROWS = register(f"{__name__}.MIN_CHARGED_ROWS", 256)
TICK = 0.01  # s
STEP = 1 / 16
"""Queries are examined again when the sum has grown by this share of a limit."""
MESSAGES = {
    "made": "It would hold more than {:,.0f} bytes of rows in one epoch.",
    "texts": "It would compute texts of more than {:,.0f} bytes in one epoch.",
    "cpu": "Its expressions would take more than {:g} s of CPU in one epoch.",
}
_Array = npt.NDArray[Any]


class Charge(NamedTuple):
    """An operator's ``amount``, divided among its members by ``rows``, the rows of each (None:
    equal parts).
    """

    node: int
    rows: Longs | Doubles | None
    amount: float


Heaviest = Callable[[Sequence[Charge], float], tuple[float, int, int]]
"""From charges and a limit: the amount of the query with most, and its last operator and member."""


class Part(NamedTuple):
    """A share of a column's bytes: the operator, the members of its rows, the number of bytes."""

    node: int
    op: _View | None
    size: int


class _View(NamedTuple):
    """A column as a part of the array that owns its memory, which it does not keep alive."""

    owner: ref[_Array]
    start: int
    like: tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]

    @staticmethod
    def from_column(column: _Array) -> _View:
        owner = column.base if type(column.base) is np.ndarray else column
        like = column.shape, column.dtype, column.strides
        return _View(ref(owner), _start(column, owner), like)

    @property
    def key(self) -> tuple[int, int]:
        """The same for equal views."""
        return id(self.owner()), self.start

    def __call__(self) -> _Array | None:
        """The column; None if its memory is gone, or is not in one piece."""
        owner = self.owner()
        if owner is None or not owner.flags.c_contiguous:
            return None
        shape, dtype, strides = self.like
        return np.ndarray(shape, dtype, owner.data, self.start, strides)


_ColumnPlace = tuple[ref[_Array], int, int]
"""A column that an operator has put out: the array that owns its memory, where in it the column
begins, and its bytes.
"""


class _Column(ref[_Array]):
    """A column that is charged to an operator."""

    __slots__ = ("key", "parts")
    key: tuple[int, int]
    parts: tuple[Part, ...]


@dataclass(slots=True)
class _Sum:
    """The charges of all operators ``now``, all that there ever were (``grown``), and the value of
    that at which queries are looked at.
    """

    now: float = 0.0
    grown: float = 0.0
    due: float = 0.0
    of: dict[int, float] = field(default_factory=dict)

    def add(self, amount: float, node: int = -1) -> None:
        self.now += amount
        self.grown += amount
        self.of[node] = self.of.get(node, 0.0) + amount


def _charge_all(charges: Sequence[Charge], most: float) -> tuple[float, int, int]:
    """Assigns all charges to one query, where there is no plan. Returns the sum, and the operator
    and member with the greatest charge.
    """
    worst = max(charges, key=lambda charge: charge.amount)
    member = -1 if worst.rows is None else int(worst.rows.argmax())
    return sum(charge.amount for charge in charges), worst.node, member


class ExpressionBudget:
    """``limits``: of a query; texts and seconds for ``ELEMENTS`` of the ``rows`` that the task has
    read or received. ``turn``: the operator at work. ``heaviest``: finds the query with the
    greatest charge.

    >>> ExpressionBudget(QueryLimits(texts=1000, cpu=5), 250_000).most("texts")
    2500.0
    """

    def __init__(
        self,
        limits: QueryLimits | None = None,
        rows: int = 0,
        clock: Callable[[], float] = time.thread_time,
        heaviest: Heaviest = _charge_all,
    ) -> None:
        self.limits = QueryLimits() if limits is None else limits
        self.rows, self.clock, self.turn = rows, clock, -1
        self._heaviest = heaviest
        self._sums = {name: _Sum() for name in MESSAGES}
        self._shares: dict[tuple[str, int], Doubles] = {}  # of each member
        self.began = 0.0  # the time up to which seconds are charged
        self._columns: dict[tuple[int, int], _Column] = {}  # by owner and start
        # not charged yet: columns by operator and members, and the bytes of all
        self._uncharged: list[tuple[int, ref[_Array] | None, list[_ColumnPlace]]] = []
        self._uncharged_size = 0

    def most(self, name: str) -> float:
        """A limit (0: none)."""
        scale = 1.0 if name == "made" else max(self.rows / ELEMENTS, 1.0)
        return float(getattr(self.limits, name) * scale)

    def now(self, name: str) -> float:
        """The sum of all operators."""
        self._charge_new_columns()
        return self._sums[name].now

    def by_node(self, name: str) -> Mapping[int, float]:
        """All that operators have been charged."""
        if name == "made":
            self._charge_new_columns()
        return self._sums[name].of

    def account(self, op: Ints | None = None) -> Account:
        """Returns the account of the operator at work; ``op``: the members of its rows."""
        return Account(self, self.turn, op)

    def ask(self, node: int, size: int, op: Callable[[], Ints]) -> None:
        """Asks whether an operator may make columns of so many bytes for rows of the members
        ``op``. Raises ``ExcessError``.
        """
        if self._is_much("made", size):
            self._look("made", [Charge(node, np.bincount(op()), size)])

    def hold(self, node: int, frame: Frame) -> None:
        """Charges an operator for the columns of a frame that are not charged yet, until they are
        dropped. Raises ``ExcessError``.
        """
        if frame.n < MIN_CHARGED_ROWS or not self.limits.made:
            return
        # rows that are merged for several members have none
        op = ref(frame.columns["op"]) if "op" in frame.columns else None
        places = _column_places(frame)
        self._uncharged.append((node, op, places))
        self._uncharged_size += sum([size for _, _, size in places])
        if self._sums["made"].now + self._uncharged_size > self.limits.made:
            self._charge_new_columns()
            self.check("made")

    def _charge_new_columns(self) -> None:
        """Charges for the columns of frames that have not been charged yet, and are there still."""
        if not self._uncharged:
            return
        frames, self._uncharged, self._uncharged_size = self._uncharged, [], 0
        for node, members, columns in frames:
            op = None if members is None else members()
            view, total = None if op is None else _View.from_column(op), 0
            for owned, start, size in columns:
                owner = owned()
                if owner is not None and (id(owner), start) not in self._columns:
                    self._keep(owner, (Part(node, view, size),), start)
                    total += size
            self._sums["made"].add(total, node)

    def hold_texts(self, data: _Array, size: int, parts: Sequence[Part] = ()) -> None:
        """Charges the operator at work for a table of texts with ``size`` bytes until its ``data``
        are dropped. With ``parts``, charges the operators of the tables from which it is made.
        Raises ``ExcessError``.
        """
        if not self.limits.made:
            return
        self._keep(data, tuple(parts) or (Part(self.turn, None, size),))
        self._sums["made"].add(
            sum(part.size for part in self._columns[id(data), 0].parts), self.turn
        )
        self.check("made")

    def parts_of(self, data: _Array, size: int) -> list[Part]:
        """Returns the charges for a table of texts, scaled to the bytes that remain."""
        column = self._columns.get((id(data), 0))
        parts = () if column is None else column.parts
        total = sum(part.size for part in parts)
        return [part._replace(size=size * part.size // total) for part in parts if total]

    def _keep(self, owner: _Array, parts: tuple[Part, ...], start: int = 0) -> None:
        key = id(owner), start
        column = self._columns[key] = _Column(owner, self._drop)
        column.key, column.parts = key, parts

    def _drop(self, column: Any) -> None:
        del self._columns[column.key]
        self._sums["made"].now -= sum(part.size for part in column.parts)

    def add(self, name: str, node: int, amount: float, shares: Doubles | None = None) -> None:
        """Charges an operator for an amount, of which each member has a share (None: all have as
        much). Raises ``ExcessError`` if that is too much for a query.
        """
        if shares is not None and amount:
            old = self._shares.get((name, node))
            if old is not None:
                longer, shorter = (old, shares) if len(old) > len(shares) else (shares, old)
                shares = longer.copy()
                shares[: len(shorter)] += shorter
            self._shares[name, node] = shares
        budget_sum = self._sums[name]
        budget_sum.add(amount, node)
        if budget_sum.now > getattr(self.limits, name):  # the lowest limit of any query
            self.check(name)

    def check(self, name: str) -> None:
        """Raises ``ExcessError`` for a query that is charged more than it may have."""
        if self._is_much(name, 0.0):
            self._look(name, ())

    def _is_much(self, name: str, more: float) -> bool:
        most, budget_sum = self.most(name), self._sums[name]
        if name == "made" and most < budget_sum.now + self._uncharged_size + more:
            self._charge_new_columns()
        return 0 < most < budget_sum.now + more and budget_sum.grown + more >= budget_sum.due

    def _look(self, name: str, more: Sequence[Charge]) -> None:
        """Looks at each query, with ``more`` charges."""
        charges = [*(self._live_columns() if name == "made" else self._taken_charges(name)), *more]
        most, budget_sum = self.most(name), self._sums[name]
        amount, node, member = self._heaviest(charges, most)
        if amount > most:
            raise ExcessError(MESSAGES[name].format(most), node=node, member=member, limit=name)
        budget_sum.due = budget_sum.grown + max(most - amount, most * STEP)

    def _taken_charges(self, name: str) -> Iterator[Charge]:
        for node, amount in self._sums[name].of.items():
            yield Charge(node, self._shares.get((name, node)), amount)

    def _live_columns(self) -> Iterator[Charge]:
        """The live columns, once for all with the same members."""
        sizes: dict[tuple[int, int, int], list[Any]] = {}
        for column in tuple(self._columns.values()):
            for node, view, size in column.parts:
                op = None if view is None else view()
                key = (node, -1, 0) if op is None or view is None else (node, *view.key)
                sizes.setdefault(key, [op, 0])[1] += size
        for (node, _, _), (op, size) in sizes.items():
            rows = self._shares.get(("texts", node)) if op is None else np.bincount(op)
            yield Charge(node, rows, size)


def _column_places(frame: Frame) -> list[_ColumnPlace]:
    """Returns the columns of a frame. Several columns of one array are counted separately."""
    return [
        (ref(owner), 0, column.nbytes if column.nbytes < owner.nbytes else owner.nbytes)
        if owner.dtype == column.dtype
        else (ref(owner), _start(column, owner), column.nbytes)
        for column in frame.columns.values()
        for owner in (column.base if type(column.base) is np.ndarray else column,)
    ]


@dataclass(slots=True)
class Account:
    """The resource use of an operator, and the members of its rows (``op``; None: unknown)."""

    spent: ExpressionBudget
    node: int
    op: Ints | None
    _rows: Doubles | None = None  # of each member

    def select_rows(self, rows: Longs) -> Account:
        """The same at these rows alone."""
        if self.op is None or len(self.op) == len(rows):
            return self
        return Account(self.spent, self.node, self.op[rows])

    @property
    def texts(self) -> int:
        """The bytes of texts that the operator has computed."""
        return int(self.spent.by_node("texts").get(self.node, 0))

    def make(self, sizes: Longs) -> Bools:
        """Flags the texts that would be too long, from the bytes that each would have. Raises
        ``ExcessError`` if the others are too many.

        >>> ExpressionBudget(QueryLimits(texts=100)).account().make(np.array([40, 50])).tolist()
        [False, False]
        """
        too_long: Bools = sizes > limits.LONGEST_TEXT
        made = np.where(too_long, 0, sizes).astype(np.float64)
        by_row = self.op is not None and len(self.op) == len(sizes)
        self.add(int(made.sum()), made if by_row else None)
        return too_long

    def add(self, size: int, each: Doubles | None = None) -> None:
        """Adds bytes of texts, of ``each`` row. Raises ``ExcessError`` if they are too many."""
        self.spent.add("texts", self.node, size, self._shares(size, each))

    def _shares(self, amount: float, each: Doubles | None = None) -> Doubles | None:
        """Returns each member's share of an amount; ``each``: the amount of each row (None: equal
        amounts).
        """
        if self.op is None or not len(self.op) or not amount:
            return None
        if each is not None:
            return np.bincount(self.op, each).astype(np.float64, copy=False)
        if self._rows is None:
            self._rows = count_rows(self.op) / len(self.op)
        return self._rows * amount

    def start(self) -> None:
        """Begins to charge: ``look`` charges the time from now on."""
        self.spent.began = self.spent.clock()

    def look(self, least: float = TICK) -> None:
        """Charges the time since the last look or start, if it is so long. Raises ``ExcessError``
        if it was too much.
        """
        now = self.spent.clock()
        if (took := now - self.spent.began) > least:
            self.spent.began = now
            self.spent.add("cpu", self.node, took, self._shares(took))


def unlimited_account() -> Account:
    """Returns an account without limits, for evaluation outside operators."""
    return ExpressionBudget(QueryLimits(texts=0, cpu=0)).account()


def _start(column: _Array, owner: _Array) -> int:
    """Returns the offset of a column in the array that has its memory, in bytes."""
    at: int = column.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return at
