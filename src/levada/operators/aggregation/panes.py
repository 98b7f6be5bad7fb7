"""GROUP BY by panes, where rows have event times (docs/architecture.md#a-triples-way); that of
report rows is ``of_reports``.

A *pane* is all rows of a group that count in the same [s, e): for windows on close there are as
many as slices of the gcd of range and step. New rows are folded into one partial aggregate per
(member, group, pane); at a report the panes that count are added up. So the work of an epoch is its
rows, and that of a report its panes, whatever the window holds; where memory is bounded they are
added up range by range of the groups. Without GROUP BY there is a row at
every report at which some window holds something, also where nothing matched.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core import column_names as col
from levada.core import query_limits
from levada.core.array_types import Bools, Ints
from levada.core.expression_budget import Account
from levada.core.expressions import AggregateFunction
from levada.core.frame import Column as Array
from levada.core.frame import Frame, concat
from levada.core.rdf_terms import Kind, Literal
from levada.kernels.keyed.bucket_layout import combine_instants
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation import aggregate_functions, bignum_sums
from levada.operators.aggregation.partitioned_aggregation import Part, in_ranges
from levada.operators.aggregation.slicing.partial_aggregates import group_columns, lookup
from levada.operators.aggregation.slicing.slice_state import SliceState, Sums, is_cut
from levada.operators.expressions.lexical_forms import patch
from levada.operators.expressions.term_values import Column
from levada.operators.operator_context import Home, Inputs, OperatorContext
from levada.operators.reporting import report_buffer
from levada.operators.reporting.due_reports import Calendar
from levada.operators.rows.route_rows import key_of, renumber, value, with_report
from levada.operators.rows.term_columns import column, slot
from levada.operators.windowing.window_intervals import exact_interval
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import slot_columns
from levada.plan.execution.steps import Aggregate


def panes(node: PlanNode[s.Panes], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Adds new rows and received partials to panes. At the due reports, returns the groups'
    values.
    """
    step, state, pool, (frame,) = node.step, env.state, env.pool, inputs
    calendar = env.calendar(node, step.kinds)
    key = f"{node.id}.live"
    apart, folded = SliceState(node, env, calendar), env.partials.get(node.id, ())
    slices = apart.remember([partial for partial in folded if is_cut(partial)])
    new = [partial for partial in folded if not is_cut(partial)]
    if frame is not None:
        new += [f for f in (fold(node, frame, pool, 1.0),) if f is not None and f.n]
    parts = report_buffer.recall(state, key) if calendar.any_due else []
    if new:
        whole = concat(new)
        parts.append(whole)
        later_rows = report_buffer.rows_after(whole, calendar.high)
        terms = bignum_sums.own_terms(later_rows, step.aggregates, pool)
        report_buffer.remember(state, key, later_rows, terms)
    out: Frame | None = None
    if calendar.any_due:
        calendar.check_few(parts, enumerated=step.enumerated)
        if not step.enumerated:
            parts = [some for part in parts if (some := calendar.keep_counting_rows(part)).n]
        sums = apart.sums(slices)
        if slices and not parts:
            outputs = [_of_slices(node, each, pool) for each in sums]
            out = concat(outputs) if outputs else None
        else:
            parts += [each.copy_to_reports(each.parts) for each in sums]
            out = _by_ranges(node, parts, calendar, env)
    report_buffer.forget(state, key, calendar.last_made)
    apart.forget()
    return out


def _of_slices(node: PlanNode[s.Panes], sums: Sums, pool: TermLookup) -> Frame:
    """The groups' values at the reports of windows that are put together from slices: one finished
    for all windows in which the same slices count.
    """
    none = np.zeros(sums.parts.n, np.int64)
    return sums.copy_to_reports(finish_groups(node, node.step, sums.parts.with_(r=none), pool))


def _by_ranges(
    node: PlanNode[s.Panes], parts: list[Frame], calendar: Calendar, env: OperatorContext
) -> Frame | None:
    """The groups' values at the due reports of all that counts there."""
    step, pool, home = node.step, env.pool, env.home(node)
    some = [Part(part) for part in parts if part.n]
    apart = in_ranges(some, range(len(step.keys)), env.state.theta)
    range_rows = (
        (rows for _, rows in apart) if some else iter([[]])
    )  # without GROUP BY nothing is a row
    outputs = (_at_reports(node, step, rows, calendar, pool, home=home) for rows in range_rows)
    there = [frame for frame in outputs if frame is not None]
    return concat(there) if there else None


def fold(node: PlanNode[s.Panes], frame: Frame, pool: TermLookup, most: float) -> Frame | None:
    """Folds rows with event times into one partial for each (member, group, s, e). Returns None if
    the partials are more than ``most`` of the rows.

    Panes are the same wherever rows are folded: also before an exchange, and before the watermark
    has reached the rows, because a row that is ahead of the watermark counts at no due report.
    """
    step = node.step
    rows, codes, first = _in_panes(node, frame)
    if len(first) > most * frame.n:
        return None
    columns = group_columns(rows, step.keys, first)
    sums = aggregate_functions.fold(rows, codes, len(first), step.aggregates, lookup(pool))
    return Frame(
        {**columns, col.BEGIN: rows[col.BEGIN][first], col.END: rows[col.END][first], **sums},
        len(first),
    )


def is_folded(frame: Frame) -> bool:
    """Whether these are partials, and not rows that are to be folded."""
    return col.BEGIN in frame


def at_once(node: PlanNode[s.Panes], frame: Frame, pool: TermLookup) -> Frame | None:
    """Rows as partials, however many these are; partials as they are."""
    return frame if is_folded(frame) else fold(node, frame, pool, 1.0)


def mark_one_group(node: PlanNode[s.Panes], frame: Frame) -> Bools:
    """Whether, for each partial that ``fold`` makes of these rows, all of its rows are in the
    partial's key group.
    """
    rows, codes, first = _in_panes(node, frame)
    place = rows[col.PLACE]
    alone = np.ones(len(first), np.bool_)
    alone[codes[place != place[first][codes]]] = False
    return alone


def _in_panes(node: PlanNode[s.Panes], frame: Frame) -> tuple[Frame, Ints, npt.NDArray[np.int64]]:
    """The rows that count at some time, the partial of each, and the first row of each partial."""
    step = node.step
    rows = report_buffer.rows_by_interval(
        frame, *exact_interval(frame, node.input_layouts[0], node.windows, step.rows)
    )
    codes, first = group(
        *combine_instants(*key_of(rows, step.keys), rows[col.BEGIN], rows[col.END])
    )
    return rows, codes, first


def _at_reports(
    node: PlanNode,
    step: s.Panes,
    parts: list[Frame],
    calendar: Calendar,
    pool: TermLookup,
    *,
    home: Home,
) -> Frame | None:
    """Panes that count at each due report, added up per group."""
    plain = parts and not step.enumerated and all(is_folded(part) for part in parts)
    merged = _aggregate_sliding(step, concat(parts), calendar, pool) if plain else None
    if merged is not None:
        return finish_groups(node, step, merged, pool) if merged.n else None
    expanded = []
    for part in parts:
        if not is_folded(part):  # slices, by their reports
            expanded.append(part)
            continue
        at, r = calendar.pairs(part["op"], part[col.BEGIN], part[col.END], step.enumerated)
        if len(at):
            columns = part.drop(col.BEGIN, col.END)
            expanded.append(columns.take(at).with_(r=r))
    merged = merge(step, concat(expanded), pool) if expanded else None
    if not step.keys and step.enumerated:
        merged = add_empty_groups(step, merged, calendar, home, pool)
    return finish_groups(node, step, merged, pool) if merged is not None and merged.n else None


def _aggregate_sliding(
    step: s.Panes, rows: Frame, calendar: Calendar, pool: TermLookup
) -> Frame | None:
    """The same where one window says the reports, and every group's panes are in order of time;
    else None.
    """
    codes, first = group(*key_of(rows, range(len(step.keys))))
    slid = calendar.slide(codes, len(first), rows["op"], rows[col.BEGIN], rows[col.END])
    if slid is None:
        return None
    columns = group_columns(rows, range(len(step.keys)), slid.first)
    merged = aggregate_functions.merge(
        rows, slid.code, len(slid.first), step.aggregates, lookup(pool), chosen=slid.row
    )
    return Frame({**columns, "r": slid.report, **merged}, len(slid.first))


def merge(step: s.Panes | s.RGroup, rows: Frame, pool: TermLookup) -> Frame:
    """The groups at each report, from partials that know their report."""
    k, h = with_report(key_of(rows, range(len(step.keys))), rows)
    codes, first = group(k, h)
    columns = group_columns(rows, range(len(step.keys)), first)
    merged = aggregate_functions.merge(rows, codes, len(first), step.aggregates, lookup(pool))
    return Frame({**columns, "r": rows["r"][first], **merged}, len(first))


def add_empty_groups(
    step: s.Panes | s.RGroup,
    merged: Frame | None,
    calendar: Calendar,
    home: Home,
    pool: TermLookup,
) -> Frame | None:
    """Adds the empty group for the reports of members at home here that have no row."""
    op, r = calendar.nonempty_reports()
    mine = home.here[op]
    op, r = op[mine], r[mine]
    if merged is not None:
        both = (np.concatenate([merged[name], added]) for name, added in (("op", op), ("r", r)))
        codes, _ = group(*(column.astype(np.uint64) for column in both))
        there = np.zeros(len(codes), np.bool_)
        there[codes[: merged.n]] = True
        lacking = ~there[codes[merged.n :]]
        op, r = op[lacking], r[lacking]
    if not len(op):
        return merged
    blank = _blank(step.aggregates, op, r, pool, merged).with_(**{col.PLACE: home.group[op]})
    return blank if merged is None else concat([merged, blank.select(merged.columns)])


def _blank(
    specs: Sequence[s.Aggregate],
    op: Ints,
    r: npt.NDArray[np.int64],
    pool: TermLookup,
    like: Frame | None,
) -> Frame:
    """Partials of groups without rows."""
    n = len(op)
    none = np.empty(0, np.int32)
    slots = {f"{name}{a.slot}": c for a in specs if a.slot >= 0 for name, c in _no_slot().items()}
    rows = Frame({"op": none, **slots}, 0)
    sums: dict[str, Array] = {}
    for j, spec in enumerate(specs):
        terms = aggregate_functions.Lookup(lambda f, _: np.empty(f.n, np.int64), pool)
        sums.update(fold_one(rows, none, n, j, spec=spec, terms=terms))
    if like is not None:
        sums = {c: v for c, v in sums.items() if c in like}
    return Frame({"op": op, "r": r, **sums}, n)


def _no_slot() -> dict[str, Array]:
    return {
        "x": np.empty(0, np.uint64), "y": np.empty(0, np.uint64), "k": np.empty(0, np.uint8),
        "d": np.empty(0, np.float64), "m": np.empty(0, np.int64), "c": np.empty(0, np.uint8),
    }  # fmt: skip


def finish_groups(
    node: PlanNode, step: s.Panes | s.RGroup | s.Running, merged: Frame, pool: TermLookup
) -> Frame:
    """Returns the output slots: keys, then aggregates, without unused slots."""
    columns = dict(merged.select(("op", col.PLACE, "r")).columns)
    for i, at in enumerate(step.kept):
        facets = node.layout.slots[i]
        if at < len(step.keys):
            columns.update(renumber(merged, at, i, facets))
            continue
        j = at - len(step.keys)
        spec = step.aggregates[j]
        values, hard = aggregate_functions.finish(merged, j, spec, pool, tuples=step.tuples)
        names = slot_columns(i, facets)
        if all(n[0] in values for n in names):
            columns.update({n: values[n[0]] for n in names})
        else:
            columns.update(
                slot(_compute(values, hard, merged.n), i, facets, pool, tuples=step.tuples)
            )
    return Frame(columns, merged.n)


def _compute(values: dict[str, Array], hard: dict[int, str], n: int) -> Column:
    """Returns a computed aggregate; values that do not fit in a mantissa come with their texts."""
    texts = None
    if hard:
        shown = [hard.get(i) for i in range(n)]
        texts = partial(pl.Series, values=shown, dtype=pl.String)
    named = Frame({f"{name}0": c for name, c in values.items()}, n)
    d, m, c = (value(named, name, 0) for name in "dmc")
    return Column(n, None, None, values["k"], d, m, c, texts)


def fold_one(
    rows: Frame,
    codes: Ints,
    g: int,
    j: int,
    *,
    spec: s.Aggregate,
    terms: aggregate_functions.Lookup,
) -> dict[str, Array]:
    """The columns of aggregate j."""
    if spec.function is AggregateFunction.GROUP_CONCAT:
        values = concatenate(rows, codes, g, spec, terms.pool)
        return {f"a{j}.{name}": c for name, c in values.items()}
    one = aggregate_functions.fold(rows, codes, g, (spec,), terms)
    return {f"a{j}.{name.removeprefix('a0.')}": c for name, c in one.items()}


# GROUP_CONCAT of report rows (SPARQL 1.1, 18.5.1.7): the strings of a group in order of their
# characters, a separator between.
#
# The specification leaves the order open; here it is that of the strings, so that it follows from
# the group alone. The result is a simple literal, also of strings with language tags (as in the W3C
# tests agg-groupconcat-4 to 6; pyoxigraph keeps a tag that all share); of no string it is "". The
# values must be string literals, as for CONCAT: a number, an IRI, an unbound value is an error, and
# the group's value is unbound (``GROUP_CONCAT(STR(?x))`` takes any literal or IRI). Parts are
# joined as they are written in canonical texts, escapes and all, so no string is decoded. Cost: a
# sort of the rows by group and string.


_STRING = r'(?s)^"(.*)"(?:@[^"]*)?$'  # between the quotes; no match for what is no string


def concatenate(
    rows: Frame, codes: npt.NDArray[np.int32], g: int, spec: Aggregate, pool: TermLookup
) -> dict[str, Array]:
    """The columns of the value of each of g groups (``codes``: each row's group), as
    ``aggregates.finish`` reads them.
    """
    assert spec.separator is not None, "a concatenation has a separator"
    texts = column(rows, spec.slot, pool).texts()
    parts = pl.DataFrame({"group": codes, "part": texts.str.extract(_STRING)}).sort("group", "part")
    between = str(Literal(spec.separator))[1:-1]
    parts = _check_lengths(parts, g, len(between.encode()), pool.spent.account())
    joined = parts.group_by("group", maintain_order=True).agg(
        pl.col("part").str.join(between, ignore_nulls=False)
    )
    whole = patch(pl.Series([""]).new_from_index(0, g), joined["group"].to_numpy(), joined["part"])
    return _literals(whole, pool)


def _check_lengths(parts: pl.DataFrame, g: int, between: int, account: Account) -> pl.DataFrame:
    """Returns the parts, null in the groups whose text would be too long. Raises
    ``ExcessError``.
    """
    group = parts["group"].to_numpy()
    sizes = parts["part"].str.len_bytes().fill_null(0).to_numpy().astype(np.int64) + between
    if (total := int(sizes.sum())) <= query_limits.LONGEST_TEXT:
        account.add(total)
        return parts
    too_long = account.make(np.bincount(group, weights=sizes, minlength=g).astype(np.int64))
    return parts.with_columns(part=parts["part"].set(pl.Series(too_long[group]), None))


def _literals(bodies: pl.Series, pool: TermLookup) -> dict[str, Array]:
    """Returns simple literals from the texts between their quotes; null is unbound."""
    x, y = pool.identify(pl.select(pl.lit('"') + pl.lit(bodies) + pl.lit('"')).to_series())
    kind = np.where(bodies.is_null().to_numpy(), np.uint8(Kind.UNBOUND), np.uint8(Kind.STRING))
    n = len(bodies)
    none: dict[str, Array] = {
        "d": np.zeros(n),
        "m": np.zeros(n, np.int64),
        "c": np.zeros(n, np.uint8),
    }
    return {"x": x, "y": y, "k": kind, **none, "err": np.zeros(n, np.int64)}
