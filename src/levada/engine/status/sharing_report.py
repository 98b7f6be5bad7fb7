"""The shared work of a checkpoint's queries with its measurements, for ``explain --shared``.

    queries      how many of their operators they share, and with how many others
    operators    of several queries: rows for each element of the streams and CPU, as measured; the
                 savings against separate operators; for a relaxed join a lower bound, less its
                 vain pairs (below 0: it costs)
    relaxed      input rows, joined pairs, wanted pairs, picked rows (``unprofitable_joins``)
    kept once    static data, and the joins that read one copy (``explain_arrangements``)
    regions      sites of queries, their candidates, and sites that the mask forbids
    orders       considered orders of joins with their added costs, the choice, and migrations
    apart, log   decisions as queries came and went (``decision_log``)

It shows the last epochs, and does not touch the running engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from levada.checkpoint.checkpoint_folder import catalog_of, newest_manifest
from levada.core.checkpoint_files import facts_of
from levada.core.count_text import count_text
from levada.core.frozen import frozen
from levada.core.shorten_outline import SHOWN_NAMES, name_list, shorten_outline
from levada.engine.status.sharing_status import RelaxedStatus, relaxed_joins
from levada.errors import CheckpointError
from levada.plan.migration.migration import show_switches
from levada.plan.sharing.decision_log import ConsideredOrder, Site, show_orders
from levada.plan.sharing.explain_arrangements import (
    SharedRows,
    list_arrangements,
    show_arrangements,
)
from levada.plan.sharing.explain_sharing import QueryShare, count_shares, show_shares
from levada.plan.sharing.unprofitable_joins import wasted_work_ratio
from levada.plan.topology.print_topology import describe
from levada.plan.topology.topology import Topology
from levada.runtime.cost_model import decision_log_file


@frozen
class Operator:
    """An operator of several queries. ``members``: its members; ``unshared_members``: how many
    there would be without sharing. ``rows_per_element`` for each element of the streams and
    ``cpu_us_per_element`` of CPU, as measured (None: not measured, or too cheap).
    ``saved_rows_per_element`` and ``saved_cpu_us_per_element``: the savings.
    """

    operator: str
    members: int
    unshared_members: int
    queries: tuple[str, ...]
    rows_per_element: float | None = None
    cpu_us_per_element: float | None = None
    saved_rows_per_element: float | None = None
    saved_cpu_us_per_element: float | None = None


@frozen
class SharingReport:
    """The shared work of a checkpoint's queries after an epoch."""

    epoch: int
    queries: int
    operators: int
    unshared_operators: int
    shares: dict[str, QueryShare]
    shared_operators: tuple[Operator, ...]
    relaxed_joins: tuple[RelaxedStatus, ...]
    regions: dict[str, Site]
    separate_joins: dict[str, str]
    log: tuple[tuple[int, str], ...]
    orders: dict[str, list[ConsideredOrder]] = field(default_factory=dict)
    migrations: dict[str, int] = field(default_factory=dict)
    arrangements: tuple[SharedRows, ...] = ()


def read_sharing_report(root: Path) -> SharingReport:
    """Reads the report of a checkpoint. Raises ``CheckpointError``."""
    facts, last = facts_of(root), newest_manifest(root)
    if last is None:
        raise CheckpointError(f"The checkpoint {root} has had no epoch yet.")
    topology, _ = catalog_of(root, facts, last.plan)
    parts = {} if last.epoch_costs is None else last.epoch_costs.work_parts
    kept = decision_log_file.read(root)
    nodes = describe(topology)
    return SharingReport(
        last.epoch,
        len(topology.queries),
        sum(len(node.members) for node in nodes),
        sum(len(member.queries) for node in nodes for member in node.members),
        count_shares(member.queries for node in nodes for member in node.members),
        tuple(_shared_operators(topology, parts, last.relaxed_joins)),
        tuple(relaxed_joins(last.relaxed_joins)),
        kept.sites,
        kept.separate_joins,
        tuple(kept.log),
        kept.orders,
        {name: switch.behind for name, switch in topology.switches.items()},
        tuple(list_arrangements(topology)),
    )


def _shared_operators(
    topology: Topology, parts: Mapping[str, list[float]], met: Mapping[str, list[int]]
) -> Iterator[Operator]:
    for number, node in zip(topology.graph.order(), describe(topology), strict=True):
        apart = sum(len(member.queries) for member in node.members)
        if apart == len(node.members):
            continue
        name = f"{type(topology.graph.nodes[number].shape.step).__name__} {number}"
        queries = tuple(dict.fromkeys(q for member in node.members for q in member.queries))
        measured = parts.get(str(number))
        if measured is None:
            yield Operator(name, len(node.members), apart, queries)
        else:
            _, ns, rows, *_ = measured
            us, more = ns * rows / 1000, apart / len(node.members) - 1
            pair_counts = [counts for at, counts in met.items() if int(at.split()[0]) == number]
            if pair_counts:  # separate queries would join fewer pairs than all of them together
                more = (
                    1
                    / max(
                        wasted_work_ratio([sum(each) for each in zip(*pair_counts, strict=True)]),
                        0.01,
                    )
                    - 1
                )
            yield Operator(
                name, len(node.members), apart, queries, rows, us, rows * more, us * more
            )


def show_run(report: SharingReport, *, whole: bool = True) -> str:
    """Returns the report as text. Not ``whole``: in 20 lines."""
    queries = count_text(report.queries, "query", "queries")
    operators = count_text(report.operators, "operator")
    head = f"{queries} after epoch {report.epoch:,}: {operators}"
    lines = [
        f"{head} in place of {report.unshared_operators:,}{_saved_text(report)}",
        *_lines(report),
    ]
    return "\n".join(lines if whole else shorten_outline(lines))


def _saved_text(report: SharingReport) -> str:
    """Returns what the shared operators save for each element of the streams, as measured."""
    measured = [one for one in report.shared_operators if one.saved_cpu_us_per_element is not None]
    if not measured:
        return ""
    us = sum(one.saved_cpu_us_per_element or 0 for one in measured)
    rows = sum(one.saved_rows_per_element or 0 for one in measured)
    return f"; sharing saves {us:,.2f} us of CPU and {rows:,.2f} rows an element"


def _lines(report: SharingReport) -> Iterator[str]:
    yield from show_shares(report.shares, SHOWN_NAMES)
    yield from ("shared",) if report.shared_operators else ()
    for one in report.shared_operators:
        operator = f"{one.operator}: {one.members} for {one.unshared_members}{_measured_text(one)}"
        yield f"  {operator}: {name_list(one.queries)}"
    yield from ("relaxed, of late",) if report.relaxed_joins else ()
    for join in report.relaxed_joins:
        yield (
            f"  {join.join}: {count_text(join.input_rows, 'row')} given, "
            f"{count_text(join.joined_pairs, 'pair')} made, {join.needed_pairs:,} wanted, "
            f"{count_text(join.picked_rows, 'row')} for queries; "
            f"{join.work_ratio:.2f} of the work apart"
        )
    yield from show_arrangements(report.arrangements)
    yield from ("regions",) if report.regions else ()
    for query, site in report.regions.items():
        yield f"  {query}{_region_text(site)}: stands in {site.site or 'all'}"
        for each in site.candidates:
            price = each["price"]
            cost = "not measured" if price is None else f"{price:,.0f} rows times delay"
            yield f"    {each['site'] or 'all'}: has {each['parts']} of its parts; {cost}"
        for name, count in site.masked.items():
            yield f"    {name}: has {count} of its parts, and is out of reach"
    yield from ("joins of their own",) if report.separate_joins else ()
    for query, why in report.separate_joins.items():
        yield f"  {query}: {why}"
    yield from show_orders(report.orders)
    yield from show_switches(report.migrations)
    yield from ("log",) if report.log else ()
    for version, what in report.log:
        yield f"  plan {version}: {what}"


def _measured_text(one: Operator) -> str:
    if one.rows_per_element is None:
        return ""
    return (
        f"; {one.rows_per_element:,.2f} rows and {one.cpu_us_per_element:,.2f} us an element, "
        f"saves {one.saved_rows_per_element:,.2f} rows and {one.saved_cpu_us_per_element:,.2f} us"
    )


def _region_text(site: Site) -> str:
    return f" ({site.region})" if site.region else ""
