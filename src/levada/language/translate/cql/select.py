"""Translates a CQL Select block to algebra (Arasu, Babu, Widom 2006; docs/semantics.md).

    Select k, Sum(v) As s From A [Range 60 s], B [Now] Where A.k = B.k And A.v > 5 Group By k

    Project [k s]
      Group [k] [s = SUM(A.v)]
        Filter (> ?A.v 5)
          Join
            Scan window 0 [k -> k, v -> A.v]
            Scan window 1 [k -> k]

A CQL relation is a bag: only ``Select Distinct`` makes rows distinct. ``joins`` translates From and
Where, ``scope`` resolves names, ``expressions`` handles types and operators, and ``from_clause``
tables. Grouping sets are the Union of a Group for each. Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from levada.core.count_text import count_text
from levada.core.expressions import Aggregate, Expression, Function, Var
from levada.core.expressions import Call as Computed
from levada.errors import QueryError, Span, UnsupportedError
from levada.language.cql.ast import (
    Call,
    Column,
    Combination,
    Constant,
    Every,
    Item,
    LiteralType,
    Nested,
    OverClause,
    Select,
    Sort,
    Table,
    operands,
    show_expression,
    show_name,
    with_operands,
)
from levada.language.cql.ast import Expression as Syntax
from levada.language.translate.cql.expressions import (
    Translator,
    Typed,
    above_group,
    aggregates_in,
    at_most_one,
    is_aggregate,
)
from levada.language.translate.cql.functions import NO_VALUE, cast, is_null, number
from levada.language.translate.cql.joins import From
from levada.language.translate.cql.over_windows import (
    FRAMED,
    NUMBERS,
    Window,
    frame_rows,
    number_rows,
)
from levada.language.translate.cql.scope import EVENT_TIME, columns_in, output_names
from levada.plan.logical import nodes

Keys = tuple[tuple[Expression, bool], ...]
_INTEGER = LiteralType.INTEGER


class _Part(NamedTuple):
    """The rows of a grouping set, the values and the order over them, and the expressions of the
    block over them.
    """

    node: nodes.Node
    values: Sequence[Expression]
    keys: Keys
    means: Callable[[Expression], Expression]


class SelectBlock:
    """The translation of one Select block; ``pattern`` shows the order of its steps, ``types`` are
    those of the outputs.
    """

    def __init__(self, select: Select, source: From, text: str, order: Sequence[Sort] = ()) -> None:
        self.text = text
        self.source = source
        self.scope = source.scope
        self.items = self.scope.expand(select.items)
        self.select = self._with_names(select)
        self.outputs = output_names(self.scope, self.items)
        self.order = order
        sorts = [self._with_result_names(source.rewrite(sort.expression)) for sort in order]
        used = [s for sort, s in zip(order, sorts, strict=True)
                if self._output(sort.expression) is None]  # fmt: skip
        self.names = dict(
            source.name_variables(self.items, self.outputs, [*self._expressions(), *used])
        )
        self.copies = self._copies_of_keys()
        self.translator = Translator(
            self.scope,
            self._variable,
            bool(self.select.group),
            self._refuse_nested,
            self._translate_over,
            [],
        )
        self.numbers: dict[Call, str] = {}  # the variables of functions with Over

    def pattern(self) -> nodes.Node:
        """Returns the algebra of the block."""
        node = self.source.node(self.translator, counts_content=one_group(self.select))
        for copy, variable in self.copies:
            node = nodes.Extend(node, copy, Var(variable))
        typed = [self.translator.value(item.expression) for item in self.items]
        self.types = [_kind(value) for value in typed]
        values = [value.expression for value in typed]
        having = (
            None if self.select.having is None else self.translator.condition(self.select.having)
        )
        keys = self._order(self.order, values)
        grouped = [*values, *(key for key, _ in keys), *self._over_values()]
        if self.select.group or having is not None or any(map(aggregates_in, grouped)):
            names = () if self.select.sets else self._grouped_variables()
            single = self.source.single_values(names)
            values = [at_most_one(value, single) for value in values]
            keys = tuple((at_most_one(key, single), down) for key, down in keys)
            having = None if having is None else at_most_one(having, single)
            parts = self._group_sets(node, values, having, keys)
        else:
            parts = [_Part(node, values, keys, _itself)]
        several = len(parts) > 1
        nodes_ = [self._shown(*part, cut=several) for part in parts]
        whole = nodes_[0]
        for other in nodes_[1:]:
            whole = nodes.Union(whole, other)
        if several and keys:
            whole = nodes.OrderBy(whole, self._by_outputs(self.order))
        return nodes.Distinct(whole) if self.select.distinct and not keys else whole

    def _shown(
        self,
        node: nodes.Node,
        values: Sequence[Expression],
        keys: Keys,
        means: Callable[[Expression], Expression],
        *,
        cut: bool,
    ) -> nodes.Node:
        """Returns the rows of one Group, or of the block, with their result columns; ``means``: the
        expression over these rows.
        """
        for call, variable in self.numbers.items():
            node = self._with_over(node, call, variable, means)
        for output, value in zip(self.outputs, values, strict=True):
            if value != Var(output):
                node = nodes.Extend(node, output, value)
        if keys and not cut:
            if self.select.distinct:
                node = nodes.Distinct(nodes.Project(node, tuple(self.outputs)))
            node = nodes.OrderBy(node, keys)
        return nodes.Project(node, tuple(self.outputs))

    def _translate_over(self, call: Call) -> Typed:
        """Translates a function with Over: a variable that the rows get above Group By."""
        name, over = call.function.lower(), call.over or OverClause()
        if name not in (*NUMBERS, *FRAMED) or call.distinct or call.where is not None:
            known = ", ".join(word.capitalize() for word in (*NUMBERS, *FRAMED))
            message = f"{call.function} (..) Over (..) is not there yet in CQL."
            hint = f"Over takes {known}."
            raise UnsupportedError(message, span=call.span, text=self.text, hint=hint)
        ordered = name in (*NUMBERS, "lag", "lead", "first_value")
        if ordered and not over.order:
            message = f"{call.function} needs an order."
            hint = "Write Over (Partition By k Order By v Desc)."
            raise QueryError(message, span=call.span, text=self.text, hint=hint)
        self._check_frame(call, over, ordered=ordered)
        argument = self._over_argument(call)
        variable = Var(self.numbers.setdefault(call, f".n{len(self.numbers)}"))
        if name in NUMBERS or name == "count":
            zero = Computed(Function.COALESCE, (variable, number(0)))
            return Typed(variable if name in NUMBERS else zero, _INTEGER)
        assert argument is not None, "it has an argument"
        if name == "avg":
            return Typed(cast("double", variable), LiteralType.DOUBLE)
        return Typed(variable, argument.type)

    def _check_frame(self, call: Call, over: OverClause, *, ordered: bool) -> None:
        if over.frame is None:
            return
        word, low, high = over.frame
        message = ""
        if ordered:
            message = f"{call.function} has no frame."
        elif low is not None and high is not None and low > high:
            message = "This frame ends before it begins."
        elif word == "Range" and (low or high) and len(over.order) != 1:
            message = "A frame of an interval needs one expression in Order By, such as ts."
        if message:
            raise QueryError(message, span=call.span, text=self.text)

    def _over_argument(self, call: Call) -> Typed | None:
        """Returns the argument of an aggregate with Over; None: it has none."""
        name, arguments = call.function.lower(), call.arguments
        most = 0 if name in NUMBERS else 2 if name in ("lag", "lead") else 1
        least = 0 if name in NUMBERS or (name == "count" and arguments is None) else 1
        if arguments is None and name != "count":
            arguments = ()
        if not least <= len(arguments or ()) <= most:
            message = f"{call.function} takes {count_text(least, 'argument')} here."
            raise QueryError(message, span=call.span, text=self.text)
        if not arguments:
            return None
        argument = self.translator.value(arguments[0])
        numeric = argument.type in (_INTEGER, LiteralType.DOUBLE)
        if name in ("sum", "avg") and not numeric:
            message = f"{call.function} needs numbers, this is of the type {argument.type}."
            raise QueryError(message, span=call.span, text=self.text)
        return argument

    def _with_over(
        self,
        node: nodes.Node,
        call: Call,
        variable: str,
        means: Callable[[Expression], Expression],
    ) -> nodes.Node:
        """Returns rows with the value of a function with Over."""
        name, over = call.function.lower(), call.over or OverClause()
        partition = tuple(means(self.translator.value(k).expression) for k in over.partition)
        keys: list[tuple[Expression, bool]] = []
        for sort in over.order:
            keys += with_nulls(means(self.translator.value(sort.expression).expression), sort)
        frame = self._rows_before(call) if name in ("lag", "lead") else over.frame
        window = Window(partition, tuple(keys), frame, name == "first_value")
        if name in NUMBERS:
            return number_rows(node, variable, name, window)
        argument = self._over_argument(call)
        value = None if argument is None else means(argument.expression)
        return frame_rows(node, variable, (FRAMED[name], value), window)

    def _rows_before(self, call: Call) -> tuple[str, int, int]:
        """Returns the frame of Lag or Lead: the one row so many rows before or after."""
        arguments = (call.arguments or ())[1:]
        if arguments and not (isinstance(arguments[0], Constant) and arguments[0].type is _INTEGER):
            message = f"{call.function} goes a whole number of rows."
            raise QueryError(message, span=call.span, text=self.text)
        rows = int(arguments[0].text) if arguments and isinstance(arguments[0], Constant) else 1
        rows = rows if call.function.lower() == "lead" else -rows
        return "Rows", rows, rows

    def _over_values(self) -> list[Expression]:
        """Returns the values that functions with Over read."""
        parts = [part for call in self.numbers for part in operands(call)]
        return [self.translator.value(part).expression for part in parts]

    # -- names --

    def _variable(self, column: Column) -> str:
        return self.names[self.scope.resolve(column)]

    def _expressions(self) -> list[Syntax]:
        """Returns the expressions of the block above From and Where."""
        having = [] if self.select.having is None else [self.select.having]
        return [*(item.expression for item in self.items), *self.select.group, *having]

    def _with_names(self, select: Select) -> Select:
        """Returns the block in which positions and names of the result, in Group By and Having, are
        what they mean. A column of From comes first.
        """
        self.items = [
            replace(item, expression=self._with_event_times(self.source.rewrite(item.expression)))
            for item in self.items
        ]
        sets = tuple(tuple(map(self._group_key, each)) for each in select.sets)
        having = None
        if select.having is not None:
            having = self._with_event_times(
                self._with_result_names(self.source.rewrite(select.having))
            )
        return replace(select, group=tuple(map(self._group_key, select.group)), sets=sets,
                       having=having)  # fmt: skip

    def _group_key(self, key: Syntax) -> Syntax:
        if isinstance(key, Constant) and key.type is LiteralType.INTEGER:
            return self._item(key).expression
        return self._with_result_names(self.source.rewrite(key))

    def _item(self, position: Constant) -> Item:
        place = int(position.text)
        if not 1 <= place <= len(self.items):
            columns = count_text(len(self.items), "column")
            message = f"The result has {columns}, no column {place}."
            raise QueryError(message, span=position.span, text=self.text)
        return self.items[place - 1]

    def _with_result_names(self, node: Syntax) -> Syntax:
        """Returns an expression in which names that only the result has are their expressions."""
        if isinstance(node, Column):
            if node.table is not None or self.scope.knows(node):
                return node
            return next((i.expression for i in self.items if i.alias == node.name), node)
        return with_operands(node, self._with_result_names)

    def _grouped_variables(self) -> list[str]:
        """Returns the variables that Group By names."""
        return [self._variable(key) for key in self.select.group if isinstance(key, Column)]

    def _refuse_nested(self, node: Nested) -> Typed:
        message = "A query cannot stand in On of a Left, Right or Full Join."
        hint = "Put the side that it restricts into a query in brackets, with the condition in it."
        raise QueryError(message, span=node.span, text=self.text, hint=hint)

    # -- order --

    def _order(self, order: Sequence[Sort], values: Sequence[Expression]) -> Keys:
        """Returns the conditions of Order By as expressions over the rows of the block."""
        keys: list[tuple[Expression, bool]] = []
        for sort in order:
            keys += with_nulls(self._order_key(sort.expression, values), sort)
        return tuple(keys)

    def _order_key(self, node: Syntax, values: Sequence[Expression]) -> Expression:
        place = self._output(node)
        if place is not None:
            return Var(self.outputs[place]) if self.select.distinct else values[place]
        if self.select.distinct or self.select.sets:
            where = "Select Distinct" if self.select.distinct else "Grouping Sets"
            message = f"Order By after {where} has columns of the result only."
            raise QueryError(message, span=node.span, text=self.text)
        return self.translator.value(self._with_result_names(self.source.rewrite(node))).expression

    def _output(self, node: Syntax) -> int | None:
        """Returns the number of the result column that an expression of Order By names, if any."""
        if isinstance(node, Constant) and node.type is LiteralType.INTEGER:
            return self.items.index(self._item(node))
        if isinstance(node, Column) and node.table is None and node.name in self.outputs:
            return self.outputs.index(node.name)
        return None

    def _by_outputs(self, order: Sequence[Sort]) -> Keys:
        keys: list[tuple[Expression, bool]] = []
        for sort in order:
            place = self._output(sort.expression)
            assert place is not None, "grouping sets are ordered by columns of the result"
            keys += with_nulls(Var(self.outputs[place]), sort)
        return tuple(keys)

    # -- groups --

    def _copies_of_keys(self) -> list[tuple[str, str]]:
        """Gives columns of grouping sets that a join makes one variable each one of its own, since
        a set may have one of them alone. Returns the new variables with the old ones.
        """
        copies: list[tuple[str, str]] = []
        taken: dict[str, object] = {}
        for key in self.select.group if self.select.sets else ():
            if isinstance(key, Column):
                ref = self.scope.resolve(key)
                variable = self.names[ref]
                if taken.setdefault(variable, ref) != ref:
                    self.names[ref] = f".copy{len(copies)}"
                    copies.append((self.names[ref], variable))
        return copies

    def _group_sets(
        self, node: nodes.Node, values: list[Expression], having: Expression | None, order: Keys
    ) -> list[_Part]:
        """Translates Group By over ``node``, Having above it, and select list and order in terms of
        the group, once for each grouping set.
        """
        if any(isinstance(item, Every) for item in self.select.items):
            raise QueryError(
                "* cannot stand in a query that groups.", span=self.items[0].span, text=self.text
            )
        keys: dict[Expression, str] = {}
        by_syntax: dict[Syntax, Expression] = {}
        for syntax in self.select.group:
            key = self.translator.value(syntax, "Group By").expression
            by_syntax[syntax] = key
            keys.setdefault(key, key.name if isinstance(key, Var) else f".g{len(keys)}")
        for key, name in keys.items():
            if key != Var(name):
                node = nodes.Extend(node, name, key)
        aggregates = self._aggregates(values, having, order)
        shown = tuple((name, a) for a, name in aggregates.items())
        parts: list[_Part] = []
        for chosen in self.select.sets or (self.select.group,):
            here = {by_syntax[syntax] for syntax in chosen}
            names = tuple(name for key, name in keys.items() if key in here)
            group: nodes.Node = nodes.Group(self._with_places(node, names), names, shown)
            means: dict[Expression, Expression] = {Var(n): Var(n) for n in self.numbers.values()}
            means |= {k: Var(n) if k in here else NO_VALUE for k, n in keys.items()}
            if having is not None:
                group = nodes.Filter(
                    group, self._lift(having, means, aggregates, self._having_span())
                )
            lifted = [
                self._lift(value, means, aggregates, item.span)
                for value, item in zip(values, self.items, strict=True)
            ]
            lift = partial(self._lift, keys=means, aggregates=aggregates, span=None)
            sorts = tuple((self._lift(key, means, aggregates, None), down) for key, down in order)
            parts.append(_Part(group, lifted, sorts, lift))
        return parts

    def _with_places(self, node: nodes.Node, names: tuple[str, ...]) -> nodes.Node:
        """Returns rows with the places that First, Last and Median need in their group."""
        for place in self.translator.places:
            apart = f"{place.variable}.apart"
            node = nodes.Extend(node, apart, place.apart)
            keys = ((place.key, place.descending),)
            node = nodes.Number(node, place.variable, place.function, (*names, apart), keys)
        return node

    def _with_event_times(self, node: Syntax) -> Syntax:
        """Returns an expression in which First and Last have the event time of their argument."""
        node = with_operands(node, self._with_event_times)
        if not isinstance(node, Call) or not is_aggregate(node):
            return node
        if node.function.capitalize() not in ("First", "Last") or len(node.arguments or ()) != 1:
            return node
        column = next(iter(columns_in((node.arguments or ())[0])), None)
        table = 0 if column is None else self.scope.resolve(column).table
        if EVENT_TIME not in self.scope.columns(table):
            message = f"{node.function} goes by event time, and this table has no column ts."
            hint = "Select ts in the query in brackets, too."
            raise QueryError(message, span=node.span, text=self.text, hint=hint)
        time = Column(self.scope.aliases[table], EVENT_TIME, node.span)
        return replace(node, arguments=(*(node.arguments or ()), time))

    def _aggregates(
        self, values: list[Expression], having: Expression | None, order: Keys
    ) -> dict[Aggregate, str]:
        """Names each aggregate once, by the output column that equals it, or ``.a0``,
        ``.a1`` ...
        """
        names: dict[Aggregate, str] = {}
        for value, output in zip(values, self.outputs, strict=True):
            if isinstance(value, Aggregate):
                names.setdefault(value, output)
        others = [] if having is None else [having]
        for value in [*values, *others, *(key for key, _ in order), *self._over_values()]:
            for aggregate in aggregates_in(value):
                names.setdefault(aggregate, f".a{len(names)}")
        return names

    def _having_span(self) -> Span | None:
        return None if self.select.having is None else self.select.having.span

    def _lift(
        self,
        value: Expression,
        keys: Mapping[Expression, Expression],
        aggregates: dict[Aggregate, str],
        span: Span | None,
    ) -> Expression:
        try:
            return above_group(value, keys, aggregates)
        except KeyError as error:
            ref = next(ref for ref, name in self.names.items() if name == error.args[0])
            if ref.table >= self.scope.visible:
                message = "A query in this expression needs columns that Group By lacks."
                hint = "Add them to Group By, or put the query that groups into brackets."
                raise QueryError(message, span=span, text=self.text, hint=hint) from None
            alias = self.scope.aliases[ref.table]
            column = f"{show_name(alias)}.{show_name(ref.name)}"
            message = f"The column {column} is neither in Group By nor inside an aggregate."
            grouped = ", ".join([*map(show_expression, self.select.group), column])
            hint = f"Say Group By {grouped}, or an aggregate such as Max({column})."
            raise QueryError(message, span=span, text=self.text, hint=hint) from None


def with_nulls(key: Expression, sort: Sort) -> list[tuple[Expression, bool]]:
    """Returns the conditions of one key of Order By: NULL is the least value unless the text says
    otherwise.
    """
    if sort.nulls_last is None or sort.nulls_last is sort.descending:
        return [(key, sort.descending)]
    return [(is_null(key), not sort.nulls_last), (key, sort.descending)]


def _itself(expression: Expression) -> Expression:
    return expression


def _kind(value: Typed) -> LiteralType:
    return LiteralType.STRING if value.type is LiteralType.NULL else value.type


def one_group(body: Select | Combination | Table) -> bool:
    """Whether a query, or a side of its Union or Except, aggregates without Group By."""
    match body:
        case Combination(_, left, right):
            return one_group(left) or one_group(right)
        case Table(query=query):  # a side with an output of its own is read by its reports only
            return query is not None and query.output is None and one_group(query.body)
        case Select():
            items = (item.expression for item in body.items if isinstance(item, Item))
            if body.sets:
                return () in body.sets
            return not body.group and (body.having is not None or any(map(_aggregates, items)))


def _aggregates(expression: Syntax) -> bool:
    return is_aggregate(expression) or any(map(_aggregates, operands(expression)))
