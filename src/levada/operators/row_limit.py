"""The limits of an operator in an epoch, so that one query cannot take the memory of all.

An operator that would make more rows, or more in a report, raises ``ExcessError``, which names a
member. The driver suspends the queries that the operator serves and runs the epoch without them.
The limits depend on the data alone: if the epoch is run again, it exceeds them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from levada.core.array_types import Bools, Ints, Longs
from levada.core.expression_budget import ExpressionBudget
from levada.core.expressions import Var
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.core.member_columns import count_rows
from levada.core.query_limits import Limited, QueryLimits
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Blank
from levada.errors import ExcessError
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_dictionary import Terms
from levada.plan.execution.joins import is_arranged
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.execution.row_layout import Facet
from levada.plan.execution.shared_results import add_shared_rows


def most_rows(node: PlanNode, limits: QueryLimits) -> int:
    """How many rows an operator may make in an epoch: fewer where they are wide, since a product of
    many patterns takes all memory with rows that are not many.
    """
    if not limits.made:
        return limits.rows
    return min(limits.rows, limits.made // node.compute_once(_width))


def _width(node: PlanNode) -> int:
    return node.layout.width


def too_many(node: PlanNode, op: Ints, limits: QueryLimits) -> ExcessError:
    """The error of the member with most rows; ``op``: the members of the rows that are too many."""
    return most_of(node, np.bincount(op), limits)


def most_of(node: PlanNode, rows: Longs, limits: QueryLimits) -> ExcessError:
    """The same, by how many rows each member has."""
    wide = most_rows(node, limits) < limits.rows
    most = f"{limits.made:,} bytes of rows" if wide else f"{limits.rows:,} rows"
    message = f"An operator ({type(node.step).__name__}) would make more than {most} in one epoch."
    limit = "made" if wide else "rows"
    return ExcessError(message, node=node.id, member=int(rows.argmax()), limit=limit)


def check_reports(
    node: PlanNode,
    rows: Frame,
    terms: Terms,
    limits: Limited,
    *,
    plan: Plan,
    spent: ExpressionBudget,
    same: Frame | None = None,
) -> None:
    """Raises ``ExcessError`` for a query with more rows in one report of this partition than its
    limit, because its reader has to keep all of them, or with more text in all reports of an epoch
    than may be computed. ``terms``: the texts that the rows show; ``same``: the queries that have
    rows of others, too.

    Rows are looked at only if all together, each with the longest text, would be too much for the
    query with the lowest limits.
    """
    members = len(node.members)
    by_op = count_rows(rows["op"], members)
    every = by_op if same is None else _with_others(by_op, same, members)
    of = row_layout(node, every > 0, plan)
    most, free = of.max_row_bytes(node, terms), spent.most("texts") or _NONE
    lowest = [limits.lowest(word) or _NONE for word in ("solutions", "bytes")]
    fits = rows.n <= lowest[0] and rows.n * most <= lowest[1]
    if fits and int(every.sum()) * most <= free:
        return
    solutions, sizes = (_limits(node, limits, word) for word in ("solutions", "bytes"))
    rows = rows if same is None else add_shared_rows(rows, same, members)
    account = spent.account(rows["op"])
    codes, first = group(rows["op"].astype(np.uint64), rows["r"].view(np.uint64))
    op, amounts = rows["op"][first], np.bincount(codes)
    _check_most(amounts, solutions[op], "solutions", node, op)
    many = of.triples and rows.n * most > free
    if many or (amounts * most > sizes[op]).any():
        each = of.bytes(node, rows, terms)
        amounts = np.bincount(codes, each).astype(np.int64)
        _check_most(amounts, sizes[op], "bytes", node, op)
        if many:
            account.make(each)


def _with_others(by_op: Longs, same: Frame, members: int) -> Longs:
    """Returns the number of rows of each member, including rows of others and of cells."""
    others = np.bincount(same["op"], by_op[same["first"]], members)
    whole: Longs = by_op[:members] + others.astype(np.int64)
    return whole


def _limits(node: PlanNode, limits: Limited, word: str) -> Longs:
    """Returns a limit for each member's query; the greatest number means no limit. Queries with
    limits of their own cost a look-up each.
    """
    maxima = np.full(len(node.members), getattr(limits.all, word) or _NONE, np.int64)
    if limits.by_query:
        at = node.compute_once(_members)
        for query, of in limits.by_query.items():
            maxima[at.get(query, [])] = getattr(of, word) or _NONE
    return maxima


def _members(node: PlanNode) -> dict[str, list[int]]:
    """Returns the members of each query: two while the query migrates to other operators."""
    by_query: dict[str, list[int]] = {}
    for i, member in enumerate(node.members):
        if node.alive[i]:
            by_query.setdefault(member.query, []).append(i)
    return by_query


def _check_most(amounts: Longs, most: Longs, what: str, node: PlanNode, op: Ints) -> None:
    """Raises ``ExcessError`` for the greatest of ``amounts`` above its limit in ``most``.

    ``op``: the member whose report each amount is of.
    """
    excess = amounts > most
    if excess.any():
        worst = int(np.where(excess, amounts, 0).argmax())
        message = (
            f"One of its reports would have {amounts[worst]:,} {what}; "
            f"the limit is {most[worst]:,}."
        )
        raise ExcessError(message, node=node.id, member=int(op[worst]), limit=what)


_NONE = np.iinfo(np.int64).max


def attribute_to_query(
    error: ExcessError, node: PlanNode, frames: Sequence[Frame | None]
) -> ExcessError:
    """The error with its place in the plan: this node, and of its members the one with most rows,
    where the operator has not said.
    """
    if error.node < 0:
        ops = [
            frame["op"]
            for i, frame in enumerate(frames)
            if frame is not None and frame.n and not is_arranged(node.step, i)
        ]
        error.node = node.id
        if error.member < 0:
            error.member = int(np.bincount(np.concatenate(ops)).argmax()) if ops else 0
    return error


# The size of result rows in bytes as a reader receives them: their texts, or the triples of a
# CONSTRUCT's template.
#
# A template writes a solution as often as it has triples: forty triples over a product are forty
# products. Triples are counted before equal triples of a report are merged, since all of them exist
# until then. Each member has its own template, so a row costs a look-up for each of its texts; rows
# of few texts are not looked at (``Written.max_row_bytes``).


VALUE = 16
"""Bytes of a number or an instant, which is in columns and not in a text."""

BLANK = 34
"""Bytes of a blank node that a template makes."""

BETWEEN = len("  .\n") + 1
"""Bytes of a triple beside its terms."""


@frozen
class Written:
    """The row sizes of a node's members: ``fixed`` bytes, and the number of ``times`` that each
    slot is written; by member with rows. ``triples``: whether some member has a template.
    """

    fixed: Longs
    times: Longs
    triples: bool

    def max_row_bytes(self, node: PlanNode, terms: Terms) -> int:
        """The most bytes that a row can have with these texts."""
        longest = max(int(terms.lengths.max(initial=0)), VALUE)
        return int((self.fixed + self.times.sum(axis=1) * longest).max(initial=0))

    def bytes(self, node: PlanNode, rows: Frame, terms: Terms) -> Longs:
        """Returns the bytes of each row."""
        op, texts = rows["op"], _texts(node)
        lengths = np.append(terms.lengths, 0)  # the last one is of what has no text
        sizes: Longs = self.fixed[op]
        for i in range(len(node.layout.slots)):
            slot_sizes = lengths[terms.find(rows[f"x{i}"], rows[f"y{i}"])] if i in texts else VALUE
            sizes = sizes + slot_sizes * self.times[op, i]
        return sizes


def row_layout(node: PlanNode, there: Bools, plan: Plan) -> Written:
    """How the members write their rows that have some (``there``, by member)."""
    slots, members = len(node.layout.slots), len(node.members)
    fixed, times = np.zeros(members, np.int64), np.zeros((members, slots), np.int64)
    triples = False
    for member in there.nonzero()[0].tolist():
        manner = plan.queries[node.members.query_at(member)].manner
        fixed[member], times[member] = _of_template(manner.template, manner.variables, slots)
        triples = triples or bool(manner.template)
    return Written(fixed, times, triples)


def as_solutions(node: PlanNode) -> Written:
    """Returns sizes of rows as their texts, whatever the output form."""
    members = len(node.members)
    ones = np.ones((members, len(node.layout.slots)), np.int64)
    return Written(np.zeros(members, np.int64), ones, False)


@lru_cache(maxsize=4096)
def _of_template(
    template: Sequence[TriplePattern], variables: Sequence[str], slots: int
) -> tuple[int, Longs]:  # fmt: skip
    """Returns the bytes that a template writes for constants, and the number of uses of each
    variable.
    """
    if not template:
        return 0, np.ones(slots, np.int64)
    fixed, times = BETWEEN * len(template), np.zeros(slots, np.int64)
    of = {name: i for i, name in enumerate(variables[:slots])}
    for position in (position for triple in template for position in triple.positions):
        match position:
            case Var(name):
                times[of[name]] += 1
            case Blank():
                fixed += BLANK
            case _:
                fixed += len(str(position).encode())
    return fixed, times


def _texts(node: PlanNode) -> frozenset[int]:
    return frozenset(i for i, facets in enumerate(node.layout.slots) if Facet.TEXT in facets)
