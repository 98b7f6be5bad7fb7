"""The preparation of added queries before they are installed: their operators in each query's own
join order, then in the order that adds the least cost to running and added queries
(``plan/sharing/join_orders``). A query is lowered again only if its order changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from levada.core.frozen import frozen
from levada.plan.binding.installer import Installer
from levada.plan.execution.plan import QuerySettings
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import Conjunction, Orders, Tree, order_of
from levada.plan.lowering.print_physical import show_part
from levada.plan.physical.operators import Op
from levada.plan.sharing.join_orders.choose_order import Chosen
from levada.plan.sharing.join_orders.running_subjoins import NewQuery, RunningSubjoins


@frozen
class Newcomer:
    """A query to be installed: its last operator, the orders of its joins, and a function that
    lowers it with other orders.
    """

    name: str
    installer: Installer
    root: Op
    orders: Orders
    ordered: Callable[[Orders], Op]

    @property
    def order_request(self) -> NewQuery:
        """The request for a join order."""
        return NewQuery(self.name, self.installer, self.orders.conjunctions)


def settings_of(
    query: Query, start: int, empty_reports: bool, made: int, until: int
) -> QuerySettings:
    """Returns the settings of a query beside its operators; ``made``: the version of its plan."""
    streams = tuple(dict.fromkeys(w.stream for w in query.windows))
    return QuerySettings(
        query.form, query.output, query.variables, query.template, streams, start, empty_reports,
        query.windows, query.reports.clock, made, until,
    )  # fmt: skip


def with_orders(manner: QuerySettings, orders: Orders) -> QuerySettings:
    """Returns the settings of a query with these join orders."""
    return replace(manner, order=order_of(orders.units)) if orders.units else manner


@frozen
class Order:
    """A considered join order of a query: its text, the cost that it adds (ns for each element of
    the streams), and whether it was chosen.
    """

    order: str
    cost: float
    chosen: bool


def order_queries(
    newcomers: Sequence[Newcomer], known: RunningSubjoins
) -> tuple[list[Newcomer], dict[str, tuple[Order, ...]]]:
    """Returns the queries, each with its join order, and the considered orders."""
    chosen = known.choose([one.order_request for one in newcomers])
    ordered: list[Newcomer] = []
    considered: dict[str, tuple[Order, ...]] = {}
    for one in newcomers:
        choices = chosen.get(one.name, {})
        if choices:
            considered[one.name] = tuple(_considered_orders(one.orders.conjunctions, choices))
        units = {number: each.units for number, each in choices.items() if each.units}
        if units:
            orders = Orders(units)
            root = one.ordered(orders)
            ordered.append(replace(one, root=root, orders=orders))
        else:
            ordered.append(one)
    return ordered, considered


def _considered_orders(
    conjunctions: Sequence[Conjunction], chosen: Mapping[int, Chosen]
) -> list[Order]:
    orders = []
    for number, one in chosen.items():
        conjunction = conjunctions[number]
        if one.tree != conjunction.tree:
            orders.append(Order(show_order(conjunction, one.tree), one.cost, bool(one.units)))
        orders.append(
            Order(show_order(conjunction, conjunction.tree), one.current_cost, not one.units)
        )
    return orders


def show_order(conjunction: Conjunction, tree: Tree) -> str:
    """Returns an order as a text.

    ((?x :p ?y, ?y :q ?z), ?z :r ?u)
    """
    if isinstance(tree, int):
        return show_part(conjunction.parts[tree])
    return f"({', '.join(show_order(conjunction, side) for side in tree)})"
