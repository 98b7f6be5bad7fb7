"""A continuous query as a structure. Terms are N-Triples texts, variables begin with ``?``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

RDF_STREAMS = ("http://e/s", "http://e/u")


@dataclass(frozen=True)
class Window:
    """A window on a stream. ``kind``: range, step, now, all, triples, elements, session, past,
    paststep; of tuples also rows and by.
    """

    stream: str
    kind: str
    a: int = 0  # the range, or the gap of a session
    b: int = 0  # the step
    e: int = 0  # the end in the past
    n: int = 0  # how many
    m: int = 0  # after each m-th
    key: str = ""  # of Partition By


@dataclass(frozen=True)
class Call:
    """An operator or function."""

    op: str
    args: tuple[Expression, ...] = ()


Expression: TypeAlias = Call | str


@dataclass(frozen=True)
class Triple:
    """A triple pattern."""

    s: str
    p: str
    o: str


@dataclass(frozen=True)
class In:
    """A group that reads a window (``w``) or a static graph (``<http://e/g>``)."""

    graph: str
    parts: Group


@dataclass(frozen=True)
class Optional:
    parts: Group


@dataclass(frozen=True)
class Minus:
    parts: Group


@dataclass(frozen=True)
class Union:
    left: Group
    right: Group


@dataclass(frozen=True)
class Exists:
    parts: Group
    negated: bool


@dataclass(frozen=True)
class Filter:
    condition: Expression


@dataclass(frozen=True)
class Bind:
    value: Expression
    name: str


@dataclass(frozen=True)
class Values:
    name: str
    terms: tuple[str, ...]


@dataclass(frozen=True)
class Sub:
    """A sub-select."""

    select: Select


Part: TypeAlias = Triple | In | Optional | Minus | Union | Exists | Filter | Bind | Values | Sub
Group: TypeAlias = tuple[Part, ...]


@dataclass(frozen=True)
class Item:
    """What SELECT shows: a variable, or an expression with a name."""

    name: str
    value: Expression | None = None


@dataclass(frozen=True)
class Select:
    items: tuple[Item, ...]
    parts: Group
    distinct: bool = False
    group: tuple[str, ...] = ()
    having: Expression | None = None
    order: tuple[tuple[str, bool], ...] = ()  # a variable, and whether downwards
    limit: int | None = None

    @property
    def aggregated(self) -> bool:
        return bool(self.group) or any(aggregates(i.value) for i in self.items)


@dataclass(frozen=True)
class Row:
    """The row of a table, whose query it is: the text with columns, as a query, and their terms."""

    table: str
    of: Query
    terms: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Query:
    """``form``: select, construct, ask. ``policy``: close, change, or a period in ms. ``row``: of
    the table with which it comes.
    """

    name: str
    windows: tuple[tuple[str, Window], ...]
    select: Select
    form: str = "select"
    template: tuple[Triple, ...] = ()
    dialect: str = "rspql"
    output: str = "RSTREAM"
    policy: str | int = "close"
    nonempty: bool = False
    empty: bool = False
    t0: int | None = None
    bounds: str = "[)"
    until: int | None = None
    row: Row | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(w.stream for _, w in self.windows))


@dataclass(frozen=True)
class Element:
    """What a stream says at an instant: triples, or the values of a row."""

    ts: int
    said: tuple[str, ...] | tuple[object, ...] = field(default=())


AGGREGATES = ("count", "countd", "sum", "avg", "min", "max")


def aggregates(value: Expression | None) -> bool:
    """Whether an expression has an aggregate in it."""
    return isinstance(value, Call) and (
        value.op in AGGREGATES or any(aggregates(a) for a in value.args)
    )
