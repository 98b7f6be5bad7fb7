"""Count windows: the last n rows of a stream, or of each key of it, as changes of its content
(docs/semantics.md#windows).

A *sequence* is the counted rows: all rows of a member, or the rows that agree in the key slots. Its
rows are ordered by (ts, canonical text). The content changes with each m-th occurrence only (m is
the step, mostly 1): with number b*m it becomes the numbers above b*m - n. So number q enters with
the first multiple of m that is not less than q, and leaves with the first that is not less than q +
n; if these are one, it never was there. Over triples the content is a set: an occurrence
*continues* an earlier one of its triple if that is still there when it enters; then neither does it
enter nor does the earlier one leave. Over tuples, a bag, every row does both. A row has ``lo`` of
its triple and ``hi`` of the instant of its change.

The state is the rows that can still be there or enter, by number (``state/numbered_rows``), and the
number of rows of each sequence; over triples the latest number of each, and the numbers that are
continued. Cost: the new rows and the rows that they push out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs, Places, Words
from levada.core.event_time import MAX, Times
from levada.core.frame import Frame, concat
from levada.core.frozen import frozen
from levada.core.row_ranges import ranges, starts_segment
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.constants import identities
from levada.operators.rows.route_rows import gather, key_of
from levada.operators.rows.term_columns import column
from levada.operators.state import counters
from levada.operators.state.numbered_rows import count, count_arrived, number
from levada.operators.state.ordered_buffer import OrderedBuffer
from levada.operators.state.state_parts import State
from levada.operators.windowing import report_count_bound
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

# The sequences of count windows: the rows of a member, or the rows that agree in some slots,
# ordered by (ts, canonical text of the whole row).
#
# Texts are compared only where rows of one sequence share an instant: the order across sequences
# decides nothing. Cost: a hash probe a row and a sort by counting.


@frozen
class Sequences:
    """Rows by sequence, each one's in order: the sequence ``of`` each row; of each sequence its key
    ``k, h``, where it begins (``starts``) and how many rows it has (``size``).
    """

    rows: Frame
    of: Ints
    k: Words
    h: Words
    starts: Longs
    size: Longs


def in_sequences(node: PlanNode, frame: Frame, pool: TermLookup, keys: Sequence[int]) -> Sequences:
    """Rows of all members as sequences by these slots of input 0."""
    k, h = key_of(frame, keys)
    codes, first = group(k, h)
    order = in_order(frame[col.least(0)], codes)
    rows, of = frame.take(order), codes[order]
    if len(tied := np.flatnonzero(_is_tied(of, rows[col.least(0)]))):
        slots = range(len(node.input_layouts[0].slots))
        rows = rows.take(_by_texts(rows, of, tied, slots, pool))
    size = np.bincount(of, minlength=len(first))
    return Sequences(rows, of, k[first], h[first], np.cumsum(size) - size, size)


def _is_tied(of: Ints, ts: Longs) -> Bools:
    """Whether the row before or behind is of the same sequence and time."""
    same = (of[1:] == of[:-1]) & (ts[1:] == ts[:-1])
    tied = np.zeros(len(of), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    return tied


def _by_texts(rows: Frame, of: Ints, tied: Longs, slots: range, pool: TermLookup) -> Longs:
    """The order in which tied rows are by their texts as well."""
    some = rows.take(tied)
    texts = [column(some, i, pool).texts().fill_null("") for i in slots]
    ranks = [t.rank("dense").to_numpy() for t in reversed(texts)]
    order = np.arange(rows.n)
    order[tied] = tied[in_order(*ranks, some[col.least(0)], of[tied])]
    return order


def count_window(
    node: PlanNode[s.CountWindow], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """New rows of streams -> changes of their count windows."""
    step, state, (frame,) = node.step, env.state, inputs
    if frame is None:
        return None
    key = f"{node.id}.last"
    sizes = _Sizes.from_node(node)
    fresh = in_sequences(node, occurrences(node, frame, step.bag), env.pool, step.keys)
    new = _New.number_rows(state, key, fresh)
    rows = fresh.rows.with_(**{col.NUMBER: new.q, col.SEQUENCE: new.sequence})
    there = sizes.enters(rows["op"], new.q) < sizes.leaves(rows["op"], new.q)
    rows = rows.where(there)
    before = np.zeros(rows.n, np.int64) if step.bag else _continue_(node, state, key, rows, sizes)
    rows = rows.with_(**{col.STOOD: (before > 0).astype(np.int8)})
    stored = _due_rows(state, key, rows, new, sizes)
    out = _changes(
        state, key, concat([*([] if stored is None else [stored]), rows]), before, new, sizes=sizes
    )
    count(state, f"{key}.count", new.k, new.h, new.top - new.base, place=new.place)
    _remember(node, state, key, rows, before, new=new)
    if not step.bag:
        _remember_latest(node, state, key, rows)
    return out if out.n else None


@frozen
class _Sizes:
    """The number of occurrences in each member's window, and the number after which the window
    changes.
    """

    count: Longs
    step: Longs

    @staticmethod
    def from_node(node: PlanNode) -> _Sizes:
        """Returns the sizes of the members' windows."""
        windows = [m.windows[0] for m in node.members]
        return _Sizes(
            *(np.array([getattr(w, name) for w in windows], np.int64) for name in ("count", "step"))
        )

    def enters(self, op: Ints, q: Longs) -> Longs:
        """The number with which occurrence q enters."""
        return self._round_up(op, q)

    def leaves(self, op: Ints, q: Longs) -> Longs:
        """The number with which it leaves."""
        return self._round_up(op, q + self.count[op])

    def greatest_departed(self, op: Ints, last_: Longs) -> Longs:
        """After number ``last_``: the greatest that is not there any more."""
        departed: Longs = last_ // self.step[op] * self.step[op] - self.count[op]
        return departed

    def _round_up(self, op: Ints, q: Longs) -> Longs:
        if (self.step == 1).all():
            return q
        m = self.step[op]
        up: Longs = -(-q // m) * m
        return up


@frozen
class _New:
    """An epoch's rows by sequence, each one's in order: the ``sequence``, number ``q`` and time
    ``lo`` of each row.

    For each sequence: its key ``k, h``, member ``op`` and group ``place``, its first row, at
    ``starts``, its last number before these rows, ``base``, and with them, ``top``.
    """

    sequence: Longs
    q: Longs
    lo: Longs
    k: Words
    h: Words
    op: Ints
    place: Places
    starts: Longs
    base: Longs
    top: Longs

    @staticmethod
    def number_rows(state: State, key: str, fresh: Sequences) -> _New:
        """Numbers the rows of sequences, after the previous ones."""
        k, h, starts = fresh.k, fresh.h, fresh.starts
        of = fresh.of.astype(np.int64)
        base = count_arrived(state, f"{key}.count", k, h)
        q = (base - starts)[of] + np.arange(1, len(of) + 1)
        op, place, ts = (fresh.rows[name] for name in ("op", col.PLACE, col.least(0)))
        return _New(of, q, ts, k, h, op[starts], place[starts], starts, base, base + fresh.size)

    def instants(self, sequences: Longs, number: Longs) -> tuple[Longs, Bools]:
        """The time of occurrence ``number`` of each sequence, and whether these rows have it."""
        new = (number > self.base[sequences]) & (number <= self.top[sequences])
        place = np.where(new, self.starts[sequences] + number - self.base[sequences] - 1, 0)
        return self.lo[place], new


def occurrences(node: PlanNode, frame: Frame, bag: bool) -> Frame:
    """Equal triples of one ts are one occurrence; rows of tuples all stay."""
    if bag:
        return frame
    k, h = key_of(frame, range(len(node.input_layouts[0].slots)))
    k, h = combine(k, h, frame[col.least(0)].view(np.uint64), np.zeros(frame.n, np.uint64))
    return frame.take(group(k, h)[1])


def _continue_(node: PlanNode, state: State, key: str, rows: Frame, sizes: _Sizes) -> Longs:
    """Returns the number of the occurrence that each of these continues, 0 for a new one. ``rows``
    are all occurrences that are ever there.
    """
    codes, first = group(*_triple(node, rows))
    latest = np.zeros(len(first), np.int64)
    matches = counters.find(state, f"{key}.latest", *_triple(node, rows.take(first)))
    if matches is not None:
        np.maximum.at(latest, matches[0], matches[1][col.NUMBER])
    order = in_order(codes)
    previous = np.empty(rows.n, np.int64)
    previous[order[1:]] = rows[col.NUMBER][order[:-1]]
    new = order[starts_segment(codes[order])]
    previous[new] = latest[codes[new]]
    still = sizes.leaves(rows["op"], previous) > sizes.enters(rows["op"], rows[col.NUMBER])
    return np.where((previous > 0) & still, previous, 0)


def _triple(node: PlanNode, rows: Frame) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    return key_of(rows, range(len(node.input_layouts[0].slots)))


def _due_rows(state: State, key: str, like: Frame, new: _New, sizes: _Sizes) -> Frame | None:
    """Returns the previous rows that enter or leave with new ones, looked up by their numbers."""
    m, size = sizes.step[new.op], sizes.count[new.op]
    low, high = new.base // m * m, new.top // m * m
    departed = np.maximum(low - size, 0)  # numbers that have left by number ``low``
    going = np.clip(high - size, departed, new.base)
    waiting = np.where(high > low, np.clip(low, going, new.base), new.base)
    begins, ends = np.concatenate([departed, waiting]), np.concatenate([going, new.base])
    counts = ends - begins
    of = np.repeat(np.tile(np.arange(len(m)), 2), counts)
    if not len(of):
        return None
    q = ranges(begins + 1, counts)
    matches = counters.find(state, f"{key}.rows", *number(new.k[of], new.h[of], q))
    if matches is None:
        return None
    return matches[1].with_(**{col.SEQUENCE: of[matches[0]]}).select(like.columns)


def _remember(
    node: PlanNode[s.CountWindow], state: State, key: str, rows: Frame, before: Longs, *, new: _New
) -> None:
    """Keeps the rows that can still be there or enter, and the numbers that are continued."""
    left = _living_of(node, state, key)
    of = rows[col.SEQUENCE]
    plain = Frame({n: c for n, c in rows.columns.items() if n != col.SEQUENCE}, rows.n)
    k, h = number(new.k[of], new.h[of], rows[col.NUMBER])
    counters.insert(state, f"{key}.rows", left(plain.with_(**{col.KEY: k, col.CHECK: h})), left)
    on = np.flatnonzero(before)
    if not len(on):
        return
    some = rows.select(("op", col.PLACE)).take(on).with_(**{col.NUMBER: before[on]})
    k, h = number(new.k[of[on]], new.h[of[on]], before[on])
    counters.insert(state, f"{key}.on", some.with_(**{col.KEY: k, col.CHECK: h}), left)


def _remember_latest(node: PlanNode[s.CountWindow], state: State, key: str, rows: Frame) -> None:
    """The latest number of each triple."""
    left = _living_of(node, state, key)

    def newest(many: Frame) -> Frame:
        """Returns the last row of each triple: parts are merged from the oldest on."""
        many = left(many)
        codes, first = group(many[col.KEY], many[col.CHECK])
        at = np.empty(len(first), np.int64)
        at[codes] = np.arange(many.n)
        return many.take(at)

    k, h = _triple(node, rows)
    plain = rows.select(("op", col.PLACE, col.NUMBER)).with_(**{col.KEY: k, col.CHECK: h})
    counters.insert(state, f"{key}.latest", newest(plain), newest)


def _living_of(node: PlanNode[s.CountWindow], state: State, key: str) -> Callable[[Frame], Frame]:
    """Returns a filter for rows with ``#q``: those that have not left by their sequences' last
    numbers, without rows of removed queries.
    """
    keys, sizes = node.step.keys, _Sizes.from_node(node)

    def living(rows: Frame) -> Frame:
        if not rows.n:
            return rows
        k, h = key_of(rows, keys)
        codes, first = group(k, h)
        last = count_arrived(state, f"{key}.count", k[first], h[first])
        since = sizes.greatest_departed(rows["op"][first], last)
        return rows.where(node.alive[rows["op"]] & (rows[col.NUMBER] > since[codes]))

    return living


def _changes(
    state: State, key: str, rows: Frame, before: Longs, new: _New, *, sizes: _Sizes
) -> Frame:
    """Returns +1 for entering rows, -1 for leaving rows, if the occurrence with which they do so is
    new; one row with an end if both are.

    ``before``: the numbers that the last of these rows, the new ones, continue.
    """
    op, q, of = rows["op"], rows[col.NUMBER], rows[col.SEQUENCE]
    begin, comes = new.instants(of, sizes.enters(op, q))
    end, goes = new.instants(of, sizes.leaves(op, q))
    entering = comes & (rows[col.STOOD] == 0)
    if len(on := np.flatnonzero(before)):
        goes &= ~np.isin(
            _combine_number(of, q), _combine_number(of[rows.n - len(before) :][on], before[on])
        )
    leaving = np.flatnonzero(goes)
    matches = counters.find(
        state, f"{key}.on", *number(new.k[of[leaving]], new.h[of[leaving]], q[leaving])
    )
    if matches is not None:
        leaving = np.delete(leaving, matches[0])
    until = np.full(rows.n, MAX, np.int64)
    until[leaving] = end[leaving]
    starting = np.flatnonzero(entering & (begin < until))
    plus = weighted_row(rows, starting, begin[starting], 1)
    going = leaving[~entering[leaving]]
    minus = weighted_row(rows, going, end[going], -1)
    return concat([plus.with_(u=until[starting]), minus.with_(u=np.full(minus.n, MAX, np.int64))])


def _combine_number(of: Longs, q: Longs) -> Longs:
    """Sequence and number as one integer."""
    both: Longs = (of << 40) | q
    return both


def weighted_row(rows: Frame, at: Longs, instant: Longs, weight: int) -> Frame:
    """These rows as changes at these instants."""
    plain = rows.visible().take(at)
    return plain.with_(hi0=instant.astype(np.int64), w=np.full(plain.n, weight, np.int8))


def select(node: PlanNode[s.Select], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """A triple pattern over rows s, p, o: the members' constants and repeated variables."""
    step, (frame,) = node.step, inputs
    if frame is None:
        return None
    constants = node.compute_once(identities, env.pool.seed)
    keep = np.ones(frame.n, bool)
    first: dict[int, int] = {}
    for position, slot in enumerate(step.positions):
        x, y = frame[col.x(position)], frame[col.y(position)]
        if slot < 0:
            constant = constants[frame["op"], position]
            keep &= (x == constant[:, 0]) & (y == constant[:, 1])
        elif slot in first:
            keep &= (x == frame[col.x(first[slot])]) & (y == frame[col.y(first[slot])])
        else:
            first[slot] = position
    rows = np.flatnonzero(keep)
    columns = {
        n: c[rows]
        for n, c in frame.columns.items()
        if n in ("op", "w", col.PLACE) or col.is_time(n)
    }
    for i, slot in enumerate(step.kept):
        columns.update(gather(frame, rows, first[slot], i, node.layout.slots[i]))
    return Frame(columns, len(rows))


# Narrows rows that are joined by their numbers to a query's own count window, as changes at
# instants: the last step of the join that queries with count windows of any length share
# (``windowing/report_count_bound``; CQELS Cloud, C33).
#
# A row enters the window of the last n elements when its triples are there, or when an earlier
# occurrence of one has left it, and leaves n elements after the first of its triples. The second
# input contains the instants of these numbers: one row for each instant of the stream, which all
# partitions have. Until then rows wait, those that will enter and those that will leave
# (``state/ordered_buffer``). A row that enters and leaves within one instant was never there. So
# the output equals that of a join over the query's own count window: rows of weight +1, with their
# end where that is known, and else ended by one of weight -1.
#
# Cost: by the rows that enter and leave; an instant costs a search, however many rows wait.


class NewNumbers(NamedTuple):
    """The numbers that are new, by instants: the last ``number`` at each time ``ts``, ascending."""

    number: Longs
    ts: Times

    @property
    def top(self) -> int:
        """The last number of all."""
        return int(self.number[-1])

    def instants_at(self, number: Longs) -> Times:
        """Returns the instants of these new numbers; MAX: the number has not been reached."""
        return np.append(self.ts, MAX)[np.searchsorted(self.number, number)]


def narrow(node: PlanNode[s.Narrow], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Turns rows with numbers, and the instants of numbers, into the rows of each member's window,
    as changes.
    """
    rows, instants = inputs
    if instants is None:
        assert rows is None or not rows.n, "rows come with the instants of their numbers"
        return None
    order = np.argsort(instants[col.greatest(report_count_bound.LAST)], kind="stable")
    new_numbers = NewNumbers(
        instants[col.greatest(report_count_bound.LAST)][order], instants[col.least(0)][order]
    )
    begin, end = _waiting_buffer(node, "begin", env), _waiting_buffer(node, "end", env)
    fresh = [] if rows is None else [_counting_rows(node, rows)]
    parts = [*begin.take_below(new_numbers.top + 1), *fresh]
    going = end.take_below(new_numbers.top + 1)
    outputs = [_end_rows(node, part, new_numbers) for part in going]
    if parts:
        both = concat(parts)
        coming = both.where(both[col.NUMBER] <= new_numbers.top)
        later = both.where(both[col.NUMBER] > new_numbers.top)
        outputs.append(_begin_rows(node, coming, new_numbers))
        begin.add(later)
        stays = coming.with_(**{col.NUMBER: coming[col.END]})
        stays = stays.where(stays[col.NUMBER] > new_numbers.top)
        end.add(stays)
    out = concat(outputs) if outputs else None
    return out if out is not None and out.n else None


def _waiting_buffer(node: PlanNode[s.Narrow], what: str, env: OperatorContext) -> OrderedBuffer:
    def living(rows: Frame) -> Frame:
        return rows.where(node.alive[rows["op"]])

    return OrderedBuffer(env.state, f"{node.id}.{what}", col.NUMBER, living)


def _counting_rows(node: PlanNode[s.Narrow], rows: Frame) -> Frame:
    """The rows that count for their member at some number: with the one at which they begin and the
    one at which they end.
    """
    start = node.windows.start.max(axis=0)
    s_, e = report_count_bound.exact_interval(rows, node.input_layouts[0], node.windows, start)
    counts = (rows[col.least(0)] >= start[rows["op"]]) & (s_ < e)
    names = [n for n in rows.columns if n == "op" or col.is_slot(n)]
    plain = rows.select((*names, col.PLACE, col.least(0)))
    return plain.with_(**{col.NUMBER: s_, col.END: e}).where(counts)


def _begin_rows(node: PlanNode[s.Narrow], rows: Frame, new_numbers: NewNumbers) -> Frame:
    """Returns rows that begin at reached numbers, unless they end at that instant."""
    begin, end = new_numbers.instants_at(rows[col.NUMBER]), new_numbers.instants_at(rows[col.END])
    return _change_rows(node, rows, begin, 1, end).where((begin < end) & node.alive[rows["op"]])


def _end_rows(node: PlanNode[s.Narrow], rows: Frame, new_numbers: NewNumbers) -> Frame:
    """Returns rows that end at reached numbers."""
    never = np.full(rows.n, MAX, np.int64)
    return _change_rows(node, rows, new_numbers.instants_at(rows[col.NUMBER]), -1, never).where(
        node.alive[rows["op"]]
    )


def _change_rows(node: PlanNode, rows: Frame, at: Times, weight: int, until: Times) -> Frame:
    """These rows as changes, in each of the query's windows, which are one."""
    weights = np.full(rows.n, weight, np.int8)
    times = {col.UNTIL: until}
    for j in range(len(node.layout.windows)):
        times |= {col.least(j): rows[col.least(0)], col.greatest(j): at}
    return rows.visible().with_(**times, w=weights)
