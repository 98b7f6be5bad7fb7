"""Translates the tables of a CQL query: streams in windows, relations, views, queries in brackets;
Union and Except.

Every query is a *level* with windows of its own. A query in brackets or a view is read in one of
two ways:

    a plain relation of selections and joins alone         becomes part of the level that reads it,
                                                           windows included
    any other, and every stream                            is ``SubQuery``: a level of its own under
                                                           a window of the reader

All are read in the second way if it matters when the tables themselves are non-empty or change.
This is the case for one group without keys, whose row exists while one of its level's own tables is
non-empty (also of the other side of a Union or Except). It is the case for Rstream, which reports
when one of them changes, unless each of its rows lasts an instant, and for a policy of non-empty or
empty reports.

A view is expanded where it is used, so it has its streams from the reader's start on. A view that
is registered as a stream and is a plain relation is its Istream, as in STREAM. Union and Except
combine columns by position, with the names of the left side and the wider types. A relation has no
window and no event time. Cost: linear in the text with its views expanded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from itertools import count

from levada.core.count_text import count_text
from levada.core.event_time import Window, WindowKind
from levada.core.expressions import Expression, Var
from levada.core.frozen import frozen
from levada.core.names import column_iri, table_graph
from levada.core.query_model import Output, StreamWindow, TriplePattern
from levada.core.rdf_terms import Iri
from levada.core.user_functions import UserOperator, declared_for_cql
from levada.errors import QueryError, Span, UnknownNameError, UnsupportedError, near
from levada.language.cql.ast import (
    Call,
    Column,
    Combination,
    Constant,
    Item,
    Joined,
    LiteralType,
    Operation,
    Operator,
    OperatorCall,
    Schema,
    Script,
    ScriptQuery,
    Select,
    Sort,
    Statement,
    Table,
    View,
    WindowSpec,
    WindowWord,
    operands,
    show_name,
    with_operands,
)
from levada.language.cql.ast import Expression as Syntax
from levada.language.translate.cql.expressions import PLACED, is_aggregate
from levada.language.translate.cql.functions import cast
from levada.language.translate.cql.joins import From, Leaf, Named, Reader, Rows, has_query
from levada.language.translate.cql.scope import EVENT_TIME, Columns, Scope, suggest_column
from levada.language.translate.cql.select import SelectBlock, one_group, with_nulls
from levada.language.translate.cql.window_columns import END, columns_of, window_of, window_rows
from levada.plan.logical import nodes
from levada.plan.logical.properties import Analysis
from levada.plan.logical.query_options import QueryOptions
from levada.plan.logical.traversal import children

# Matches columns by position: those of a view with the names of its schema, those of both sides of
# a Union or Except with the names of the left side.
#
# An Integer beside a Float becomes a Float; other types must be equal. Cost: linear in the columns.


Typed = tuple[tuple[str, LiteralType], ...]
"""Columns: their names and types, in order."""

_NUMBERS = {LiteralType.INTEGER, LiteralType.DOUBLE}
_WORDS = {"ORDERBY": "Order By", "SLICE": "Limit", "NUMBER": "Over, First, Last or Median"}
TYPE = Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_NO_WINDOW = WindowSpec(WindowWord.NONE)
MOST_WINDOWS = 1000
"""Tables of a query with its views expanded."""


def wider_types(
    left: Sequence[LiteralType], right: Sequence[LiteralType]
) -> list[LiteralType] | None:
    """Returns the types that hold the values of both sides, column by column.

    None: some column has no such type, or one side has more columns.

    >>> wider_types([LiteralType.INTEGER], [LiteralType.DOUBLE])
    [<LiteralType.DOUBLE: 'double'>]
    """
    if len(left) != len(right):
        return None
    pairs = list(zip(left, right, strict=True))
    if any(a != b and {a, b} != _NUMBERS for a, b in pairs):
        return None
    return [a if a == b else LiteralType.DOUBLE for a, b in pairs]


def widen_columns(node: nodes.Node, columns: Typed, wanted: Typed) -> nodes.Node:
    """Returns the columns of a node under the names of ``wanted``, with its types."""
    pairs = enumerate(zip(columns, wanted, strict=True))
    casts = {i: kind for i, ((_, column_type), (_, kind)) in pairs if column_type != kind}
    return rename(node, [name for name, _ in columns], [name for name, _ in wanted], casts)


def rename(
    node: nodes.Node,
    names: list[str],
    wanted: list[str],
    casts: Mapping[int, LiteralType] | None = None,
) -> nodes.Node:
    """Returns the columns ``names`` of a node, in this order, renamed to ``wanted``.

    ``casts``: columns that are cast to these types.
    """
    if names == wanted and not casts:
        return nodes.Project(node, tuple(names))
    between = [f".c{i}" for i in range(len(names))]
    for i, (name, new) in enumerate(zip(names, between, strict=True)):
        value: Expression = Var(name)
        if casts and i in casts:
            value = cast(casts[i].value, value)
        node = nodes.Extend(node, new, value)
    node = nodes.Project(node, tuple(between))
    for new, name in zip(between, wanted, strict=True):
        node = nodes.Extend(node, name, Var(new))
    return nodes.Project(node, tuple(wanted))


class Reading(StrEnum):
    """How a level reads queries in From that are relations.

    CHANGES: those that only select and join are part of it, all others are levels of their own.
    APART: all are. WHOLE: all are part of it, since it compares whole reports.
    """

    CHANGES = "changes"
    APART = "apart"
    WHOLE = "whole"


@frozen
class Level:
    """A query: its rows (``node`` binds its columns), the windows that it reads, its output."""

    node: nodes.Node
    columns: Typed
    windows: tuple[int, ...]
    output: Output

    @property
    def is_relation(self) -> bool:
        """Whether it is a relation; otherwise it is a stream."""
        return self.output is Output.RELATION


class Levels:
    """The levels of one query; ``windows`` are those of all of them."""

    def __init__(
        self,
        text: str,
        streams: Mapping[str, Mapping[str, str]],
        relations: Collection[str],
        script: Script,
        options: QueryOptions,
        *,
        tables: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.text = text
        self.streams = {
            n: {c: LiteralType(t) for c, t in columns.items()} for n, columns in streams.items()
        }
        self.relations = relations
        self.tables = tables
        self.views = script.views
        self.options = options
        self.windows: list[StreamWindow] = []
        self._rows = count(1)
        self._table_columns: dict[tuple[Table, int], Columns] = {}
        self.rdf: Collection[str] = ()  # the names of RDF streams, for messages
        for declared in script.declared:
            self._check_declared(declared.schema)

    def outermost(self, asked: ScriptQuery) -> Level:
        """Returns the requested query, under the report policy of the options.

        A query over window functions alone reports each window once.
        """
        query = asked.query
        if query.output is None and _reads_calls(query):
            query = replace(query, output="Rstream")
        apart = self.options.nonempty or self.options.empty_reports
        level = self.statement(query, asked.views, Reading.APART if apart else Reading.CHANGES)
        return level if level.windows else replace(level, output=Output.RSTREAM)

    def statement(
        self, statement: Statement, visible: int, reading: Reading = Reading.CHANGES
    ) -> Level:
        """Translates a query that can use the first ``visible`` views.

        ``reading``: how its reader reads it.
        """
        if _needs_whole(statement):
            reading = Reading.WHOLE
        elif reading is Reading.CHANGES:
            lasting = statement.output == "Rstream" and not _for_an_instant(statement.body)
            reading = Reading.APART if lasting or one_group(statement.body) else reading
        node, columns, level_windows = self._body(statement, visible, reading)
        if statement.limit is not None or statement.offset:
            node = nodes.Slice(node, statement.offset, statement.limit)
        level = Level(
            node,
            columns,
            tuple(sorted(level_windows)),
            Output[(statement.output or "relation").upper()],
        )
        if not level.windows and statement.output is not None:
            message = f"{statement.output} needs a stream, and this query reads tables alone."
            hint = f"Leave {statement.output} out: Levada answers again when a table changes."
            raise QueryError(message, span=statement.span, text=self.text, hint=hint)
        self._check_level(level, statement.span)
        return level

    def check_report(self) -> None:
        """Checks that with ``report=close`` some window has closes."""
        if self.options.report == "close" and not any(
            on.window.kind.on_close for on in self.windows
        ):
            raise QueryError(
                "report=close needs a window with Slide.", span=Span(1, 1), text=self.text
            )

    # -- the two forms of a query --

    def _body(
        self, statement: Statement, visible: int, reading: Reading
    ) -> tuple[nodes.Node, Typed, set[int]]:
        if isinstance(statement.body, Select):
            return self._select(statement.body, visible, reading, statement.order)
        node, columns, level_windows = self._combination(statement.body, visible, reading)
        if statement.order:
            node = nodes.OrderBy(node, self._order(statement.order, columns))
        return node, columns, level_windows

    def _order(self, order: Sequence[Sort], columns: Typed) -> tuple[tuple[Expression, bool], ...]:
        """Returns Order By above a Union or its like: by its columns, by name or position."""
        names = [name for name, _ in columns]
        keys: list[tuple[Expression, bool]] = []
        for sort in order:
            match sort.expression:
                case Column(None, name) if name in names:
                    place = names.index(name)
                case Constant(LiteralType.INTEGER, number) if 1 <= int(number) <= len(names):
                    place = int(number) - 1
                case other:
                    message = "Order By after a Union, Except or Intersect has a column of it."
                    hint = f"Its columns are {', '.join(map(show_name, names))}."
                    raise QueryError(message, span=other.span, text=self.text, hint=hint)
            keys += with_nulls(Var(names[place]), sort)
        return tuple(keys)

    def _select(
        self, select: Select, visible: int, reading: Reading, order: Sequence[Sort]
    ) -> tuple[nodes.Node, Typed, set[int]]:
        if not self.options.empty_reports:
            select = _by_window(select)
        reader = Reader(
            partial(self._leaf, visible=visible, reading=reading),
            partial(self._columns, visible=visible, reading=reading),
            _same_level if reading is Reading.WHOLE else self._derive_level,
        )
        source = From(select, order, reader, self.text)
        block = SelectBlock(select, source, self.text, order)
        node = block.pattern()
        return node, tuple(zip(block.outputs, block.types, strict=True)), set(source.windows)

    def _derive_level(self, rows: Rows) -> Rows:
        """Returns rows as a level of its own, as a query in brackets is."""
        if not rows.windows:
            return rows
        windows = tuple(sorted(rows.windows))
        below = tuple(sorted({w for i in windows for w in (i, *self.windows[i].beneath)}))
        on = self.windows[windows[0]]
        at = self._add(StreamWindow(on.name, on.stream, self._window(_NO_WINDOW), below))
        named = tuple((name, name) for name in rows.variables)
        child = nodes.Project(rows.node, rows.variables)
        node = nodes.SubQuery(nodes.InWindow(at), child, windows, Output.RELATION, named)
        return Rows(node, rows.variables, frozenset((at,)))

    def _combination(
        self, body: Combination, visible: int, reading: Reading
    ) -> tuple[nodes.Node, Typed, set[int]]:
        left, columns, level_windows = self._operand(body.left, visible, reading)
        right, others, more = self._operand(body.right, visible, reading)
        both = wider_types([kind for _, kind in columns], [kind for _, kind in others])
        if both is None:
            types = [", ".join(kind for _, kind in side) for side in (columns, others)]
            message = f"{body.operator} of ({types[0]}) and ({types[1]}): the columns differ."
            raise QueryError(message, span=body.span, text=self.text)
        named = tuple((name, kind) for (name, _), kind in zip(columns, both, strict=True))
        left = left if columns == named else widen_columns(left, columns, named)
        right = widen_columns(right, others, named)
        match body.operator:
            case Operator.UNION:
                whole: nodes.Node = nodes.Union(left, right)
            case Operator.EXCEPT:
                left = nodes.Distinct(left) if body.distinct else left
                whole = nodes.Except(left, nodes.Distinct(right) if body.distinct else right)
            case Operator.INTERSECT:
                whole = nodes.Except(left, nodes.Except(left, right))
        is_set = body.distinct and body.operator is not Operator.EXCEPT
        return nodes.Distinct(whole) if is_set else whole, named, level_windows | more

    def _operand(
        self, operand: Table | Combination, visible: int, reading: Reading
    ) -> tuple[nodes.Node, Typed, set[int]]:
        if isinstance(operand, Combination):
            return self._combination(operand, visible, reading)
        query = operand.query
        if query is not None and query.output is None:
            level = self.statement(query, visible, reading)
            return level.node, level.columns, set(level.windows)
        leaf = self._leaf(operand, visible=visible, reading=reading)
        columns = tuple(leaf.columns.declared.items())
        return leaf.node(tuple((c, c) for c, _ in columns)), columns, set(leaf.windows)

    # -- tables --

    def _columns(self, table: Table, *, visible: int, reading: Reading) -> Columns:
        """Returns the columns of a table, without reading it."""
        place = (table, visible)
        if place not in self._table_columns:
            before = len(self.windows)
            self._table_columns[place] = self._leaf(table, visible=visible, reading=reading).columns
            del self.windows[before:]
        return self._table_columns[place]

    def _leaf(self, table: Table, *, visible: int, reading: Reading) -> Leaf:
        """Translates a table of From."""
        if table.query is not None:
            inner = reading if reading is Reading.WHOLE else Reading.CHANGES
            level = self.statement(table.query, visible, inner)
            return self._derived_table(table, level, reading)
        view = next((v for v in self.views[:visible] if v.schema.name == table.stream), None)
        if table.calls and (view is not None or table.stream in self.relations):
            kind = "a relation" if view is None else "a view"
            message = f"An operator reads a stream, and {table.stream} is {kind}."
            hint = "Name a stream with columns, and read the operator in the view."
            raise UnsupportedError(message, span=table.span, text=self.text, hint=hint)
        if view is not None:
            return self._derived_table(table, self._view(view), reading)
        if table.stream in self.tables:
            return self._static_table(table)
        if table.stream not in self.streams:
            views = (v.schema.name for v in self.views[:visible])
            known = [*self.streams, *self.tables, *views]
            raise self._unknown_stream(table.stream, table.span, known)
        if table.calls:
            return self._user_operators(table)
        if table.stream in self.relations:
            return self._derived_table(table, self._relation(table.stream), reading)
        if table.window.column:
            return self._window_call(table)
        columns = Columns(table.alias, self.streams[table.stream], True, table.span)
        partition = self._partition(table.window, columns)
        at = self._add(StreamWindow(table.alias, table.stream, self._window(table.window)))
        scan = nodes.InWindow(at)
        return Leaf(columns, lambda named: nodes.Scan(scan, named, partition), frozenset((at,)))

    def _window_call(self, table: Table) -> Leaf:
        """Translates a window function over a stream."""
        spec, schema = table.window, self.streams[table.stream]
        declared = {**schema, **dict.fromkeys(columns_of(spec), LiteralType.INTEGER)}
        if spec.column != EVENT_TIME:
            message = f"{spec.word} goes by event time, which is called {EVENT_TIME} here."
            hint = f"Write Descriptor({EVENT_TIME}); time= of the stream names its column."
            raise QueryError(message, span=spec.span, text=self.text, hint=hint)
        if spec.partition:
            message = "Session with Partition By is not there yet in CQL."
            hint = "Number the sessions of each key in a window: see Sessions of each key in docs."
            raise UnsupportedError(message, span=spec.span, text=self.text, hint=hint)
        t0, has_t0 = self.options.t0 or 0, self.options.t0 is not None
        at = self._add(StreamWindow(table.alias, table.stream, window_of(spec, t0, has_t0)))
        columns = Columns(table.alias, declared, True, table.span)
        return Leaf(columns, lambda named: window_rows(spec, at, named, t0), frozenset((at,)))

    def _user_operators(self, table: Table) -> Leaf:
        """Translates operators of the user over a stream."""
        columns = Columns(table.alias, self.streams[table.stream], True, table.span)
        operators = []
        for call in table.calls:
            made = declared_for_cql(call.name)
            assert isinstance(made, UserOperator), "the parser has found an operator"
            keys = tuple(dict.fromkeys(self._partition_column(key, columns) for key in call.keys))
            declared = self._operator_columns(call, made, keys, columns)
            columns = Columns(table.alias, declared, True, table.span)
            operators.append((made.iri, keys))
        partition = self._partition(table.window, columns)
        at = self._add(StreamWindow(table.alias, table.stream, self._window(table.window)))
        scan = partial(nodes.Scan, nodes.InWindow(at), operators=tuple(operators))
        return Leaf(columns, lambda named: scan(named, partition), frozenset((at,)))

    def _operator_columns(
        self, call: OperatorCall, made: UserOperator, keys: tuple[str, ...], read: Columns
    ) -> dict[str, LiteralType]:
        """Returns the columns of an operator. Raises ``QueryError`` if the input lacks some."""
        message = hint = ""
        for column, kind in made.takes.items():
            if (has := read.declared.get(column)) != kind.value:
                message = f"{call.name} takes {column} ({kind}); its table has "
                message += f"{column} ({has})." if has else f"no column {column}."
                hint = "Name and type the columns as the operator does, in the stream's schema."
        if both := {*made.returns} & {*keys}:
            message = f"{min(both)} is a key, and {call.name} returns it, too."
            hint = "Give the operator's column another name."
        if message:
            raise QueryError(message, span=call.span, text=self.text, hint=hint)
        types = {column: LiteralType(kind) for column, kind in made.returns.items()}
        return {**{key: read.declared[key] for key in keys}, **types}

    def _unknown_stream(self, name: str, span: Span, known: Collection[str]) -> UnknownNameError:
        """Returns the error of an unknown stream, with the near misses among ``known``."""
        if any(name in (stream, re.split(r"[/#]", stream)[-1]) for stream in self.rdf):
            message = f"The stream {name} holds RDF, which CQL does not read."
            hint = "Give it columns, such as schema=k:integer;v:double, or ask in SPARQL."
            return UnknownNameError(message, span=span, text=self.text, hint=hint)
        hint = f"No stream has columns: name it with a schema (--stream {name}=PATH,schema=auto)."
        if known:
            hint = near(name, map(show_name, known))
        message = f"There is no tuple stream {name}."
        return UnknownNameError(message, span=span, text=self.text, hint=hint)

    def _static_table(self, table: Table) -> Leaf:
        """Translates a table of static data: its rows are subjects of a graph."""
        spec = self._spec(table, True)
        assert spec.word is WindowWord.NONE
        declared = {c: LiteralType(t) for c, t in self.tables[table.stream].items()}
        row, graph = Var(f".{next(self._rows)}.row"), table_graph(table.stream)

        def rows(named: Named) -> nodes.Node:
            source = nodes.InGraph(graph)
            node: nodes.Node = nodes.Bgp(source, (TriplePattern(row, TYPE, Iri(graph)),))
            for column, variable in named:
                is_text = declared[column] is LiteralType.STRING
                value = Var(variable if is_text else f".{variable}")
                cell = TriplePattern(row, Iri(column_iri(graph, column)), value)
                node = nodes.LeftJoin(node, nodes.Bgp(source, (cell,)), None)
                if not is_text:  # joins compare values of tuples, not texts
                    node = nodes.Extend(node, variable, cast(declared[column].value, value))
            return nodes.Project(node, tuple(variable for _, variable in named))

        return Leaf(Columns(table.alias, declared, False, table.span), rows, frozenset())

    def _relation(self, name: str) -> Level:
        """Returns a relation as a level of its own: inserted rows that are not deleted."""
        columns = tuple(self.streams[name].items())
        at = self._add(StreamWindow(name, name, self._window(WindowSpec(WindowWord.UNBOUNDED))))
        scan = nodes.Scan(nodes.InWindow(at), tuple((c, c) for c, _ in columns), relation=True)
        names = tuple(c for c, _ in columns)
        return Level(nodes.Project(scan, names), columns, (at,), Output.RELATION)

    def _view(self, view: View) -> Level:
        """Returns a view under the columns of its schema."""
        level = self.statement(view.query, self.views.index(view))
        if view.schema.relation and not level.is_relation:
            message = (
                f"{view.schema.name} is registered as a relation, "
                f"but {level.output.capitalize()} gives a stream."
            )
            raise QueryError(message, span=view.schema.span, text=self.text)
        if not view.schema.relation and level.is_relation:
            level = replace(level, output=Output.ISTREAM)
        return replace(
            level, node=self._as_declared(level, view.schema), columns=view.schema.columns
        )

    def _as_declared(self, level: Level, schema: Schema) -> nodes.Node:
        """Returns the query's columns by position under the declared names.

        Integers become floats where these are declared.
        """
        if len(level.columns) != len(schema.columns):
            message = (
                f"{schema.name} has {count_text(len(schema.columns), 'column')}, "
                f"its query gives {len(level.columns)}."
            )
            raise QueryError(message, span=schema.span, text=self.text)
        for (_, column_type), (name, wanted) in zip(level.columns, schema.columns, strict=True):
            if wider_types([column_type], [wanted]) != [wanted]:
                message = (
                    f"The column {name} of {schema.name} is of the type {wanted}, "
                    f"its query gives {column_type}."
                )
                raise QueryError(message, span=schema.span, text=self.text)
        return widen_columns(level.node, level.columns, schema.columns)

    def _derived_table(self, table: Table, level: Level, reading: Reading) -> Leaf:
        """Returns a query in brackets or a view as a table."""
        columns = Columns(table.alias, dict(level.columns), False, table.span)
        spec = self._spec(table, level.is_relation)
        monotone = Analysis().properties_of(level.node).monotone
        inline = reading is Reading.WHOLE or (monotone and reading is Reading.CHANGES)
        if not level.windows or (level.is_relation and inline and not _is_held(level.node)):
            return Leaf(columns, partial(_inline_level, level), frozenset(level.windows))
        partition = self._partition(spec, columns)
        below = tuple(sorted({w for i in level.windows for w in (i, *self.windows[i].beneath)}))
        stream = self.windows[level.windows[0]].stream
        at = self._add(StreamWindow(table.alias, stream, self._window(spec), below))
        return Leaf(
            columns,
            lambda named: nodes.SubQuery(
                nodes.InWindow(at), level.node, level.windows, level.output, named, partition
            ),
            frozenset((at,)),
        )

    def _add(self, on: StreamWindow) -> int:
        if len(self.windows) >= MOST_WINDOWS:
            message = f"This query reads more than {MOST_WINDOWS:,} tables."
            hint = (
                "Views are expanded where they are used: let one query write a stream, and read it."
            )
            raise QueryError(message, text=self.text, hint=hint)
        self.windows.append(on)
        return len(self.windows) - 1

    # -- windows --

    def _spec(self, table: Table, relation: bool) -> WindowSpec:
        if relation and table.window.word is not WindowWord.NONE:
            message = f"{table.stream or table.alias} is a relation, which has no window."
            raise QueryError(message, span=table.window.span, text=self.text)
        return table.window

    def _partition(self, spec: WindowSpec, columns: Columns) -> tuple[str, ...]:
        """Returns the distinct columns of Partition By."""
        return tuple(
            dict.fromkeys(self._partition_column(column, columns) for column in spec.partition)
        )

    def _partition_column(self, column: Column, columns: Columns) -> str:
        column = Scope([columns], self.text).resolve_path(column)
        if column.table not in (None, columns.alias) or column.name not in columns.declared:
            hint = suggest_column(column.name, columns.declared)
            message = f"{columns.alias} has no column {column.name}."
            if column.table not in (None, columns.alias):
                message = (
                    f"Partition By {column.table}.{column.name} is not of "
                    f"the table {columns.alias}."
                )
            raise UnknownNameError(message, span=column.span, text=self.text, hint=hint)
        return column.name

    def _window(self, spec: WindowSpec) -> Window:
        """Returns the window of a specification (the table is in ``language/dialects/cql.py``)."""
        t0, has_t0 = self.options.t0 or 0, self.options.t0 is not None
        match spec.word:
            case WindowWord.UNBOUNDED | WindowWord.NONE:
                return Window(WindowKind.ALL, t0=t0, t0_given=has_t0)
            case WindowWord.NOW:
                return Window(WindowKind.NOW, t0=t0, t0_given=has_t0)
            case WindowWord.ROWS:
                return Window(WindowKind.COUNT, t0=t0, t0_given=has_t0, count=spec.rows)
            case WindowWord.RANGE if not spec.slide:
                return Window(WindowKind.RANGE, range=spec.range, t0=t0, t0_given=has_t0)
            case WindowWord.RANGE:
                closing = (
                    WindowKind.CLOSE_OPEN
                    if self.options.bounds == "[)"
                    else WindowKind.CLOSE_CLOSED
                )
                kind = WindowKind.CHANGE if self.options.report == "change" else closing
                return Window(kind, range=spec.range, step=spec.slide, t0=t0, t0_given=has_t0)
            case _:
                raise AssertionError("a window function has its own leaf")

    # -- what cannot be --

    def _check_level(self, level: Level, span: Span) -> None:
        """Checks that operators above a view or a query in brackets follow from its changes."""
        properties = Analysis().properties_of(level.node)
        if properties.free and level.windows:
            message = "Rows of a table alone would be results of this query whenever it reports."
            hint = "Join the table with a stream; a Right or Full Join, or a Union, reads streams."
            raise UnsupportedError(message, span=span, text=self.text, hint=hint)
        if properties.derived and not properties.over_tuples:
            message = "A table beside a view or a query in brackets is not there yet in CQL."
            hint = "Join the table with the streams themselves, within the brackets or the view. "
            hint += "Write a second query over tables in Or, Case or Select as a Left Join."
            raise UnsupportedError(message, span=span, text=self.text, hint=hint)
        if properties.derived and properties.not_by_changes:
            word = _WORDS.get(properties.not_by_changes, properties.not_by_changes)
            message = f"{word} over a view or a query in brackets is not there yet in CQL."
            hint = (
                "Read the streams themselves in windows, or queries without Istream and its like."
            )
            raise UnsupportedError(message, span=span, text=self.text, hint=hint)

    def _check_declared(self, schema: Schema) -> None:
        """Checks a declaration against the stream."""
        if schema.name not in self.streams:
            raise self._unknown_stream(schema.name, schema.span, self.streams)
        if (schema.name in self.relations) != schema.relation:
            word = "a relation" if schema.relation else "a stream"
            hint = "A relation is a stream with sign=COLUMN."
            raise QueryError(
                f"{schema.name} is not {word}.", span=schema.span, text=self.text, hint=hint
            )
        if (columns := self.streams[schema.name]) != dict(schema.columns):
            shown = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            raise QueryError(
                f"The stream {schema.name} has the columns {shown}.",
                span=schema.span,
                text=self.text,
            )


def _needs_whole(statement: Statement) -> bool:
    """Whether a query compares whole reports: Order By, Limit, Over, First, Last or Median."""
    if statement.order or statement.limit is not None or statement.offset:
        return True
    if not isinstance(statement.body, Select):
        return False
    items = [item.expression for item in statement.body.items if isinstance(item, Item)]
    having = statement.body.having
    return any(map(_has_over, items if having is None else [*items, having]))


def _same_level(rows: Rows) -> Rows:
    return rows


def _is_held(node: nodes.Node) -> bool:
    """Whether a relation from outside is read: its rows come and go by their signs."""
    return (isinstance(node, nodes.Scan) and node.relation) or any(map(_is_held, children(node)))


def _has_over(node: Syntax) -> bool:
    whole = isinstance(node, Call) and (node.over is not None or _is_placed(node))
    return whole or any(map(_has_over, operands(node)))


def _is_placed(node: Call) -> bool:
    return is_aggregate(node) and node.function.capitalize() in PLACED


def _by_window(select: Select) -> Select:
    """Returns a Select of one group over Cumulate as groups by window: without rows since its
    beginning there is no group. Where becomes Filter, so that rows without matches make a group;
    not above grouping sets, whose other groups need a match.
    """
    table, where = select.tables[0], select.where
    if len(select.tables) > 1 or not isinstance(table, Table) or table.query is not None:
        return select
    if table.window.word is not WindowWord.CUMULATE or not one_group(select):
        return select
    end = Column(table.alias, END)
    if select.sets:
        sets = tuple((*each, end) for each in select.sets)
        return replace(select, group=(*select.group, end), sets=sets)
    if where is not None and has_query(where):
        return select

    def add_filter(node: Syntax) -> Syntax:
        if not isinstance(node, Call) or not is_aggregate(node) or where is None:
            return with_operands(node, add_filter)
        both = where if node.where is None else Operation("and", (where, node.where))
        return replace(node, where=both)

    items = tuple(
        replace(item, expression=add_filter(item.expression)) if isinstance(item, Item) else item
        for item in select.items
    )
    having = None if select.having is None else add_filter(select.having)
    return replace(select, items=items, where=None, group=(end,), having=having)


def _reads_calls(part: Statement | Combination | Select | Table | Joined) -> bool:
    """Whether all tables of a query are window functions."""
    match part:
        case Statement(body=body):
            return _reads_calls(body)
        case Combination(_, left, right) | Joined(_, left, right):
            return _reads_calls(left) and _reads_calls(right)
        case Select(tables=tables):
            return all(map(_reads_calls, tables))
        case Table(query=None, window=window):
            return bool(window.column)
        case Table(query=query):
            return query is not None and query.output is None and _reads_calls(query)


def _for_an_instant(body: Select | Combination) -> bool:
    """Whether each row of a query contains a row of a window [Now], so it exists at one instant
    only.
    """
    if isinstance(body, Combination):
        return all(map(_operand_for_an_instant, (body.left, body.right)))
    tables = [table for table in body.tables if isinstance(table, Table)]
    return not one_group(body) and any(table.window.word is WindowWord.NOW for table in tables)


def _operand_for_an_instant(operand: Table | Combination) -> bool:
    if isinstance(operand, Combination):
        return _for_an_instant(operand)
    if operand.query is not None and operand.query.output is None:
        return _for_an_instant(operand.query.body)
    return operand.window.word is WindowWord.NOW


def _inline_level(level: Level, named: Named) -> nodes.Node:
    return rename(level.node, [column for column, _ in named], [variable for _, variable in named])
