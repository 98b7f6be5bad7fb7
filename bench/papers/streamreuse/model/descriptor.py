"""What an operator computes: sources, equal attributes, conditions, columns, windows, grouping.

Attributes are ``SOURCE.NAME``. A source is a stream, or ``STREAM#2`` where a query reads it twice.
Descriptors have one form (``descriptor``): sources in order, equalities closed into classes, of
each class one attribute stands for all in conditions and columns. So neither the order of a text
nor ``a = b`` for ``b = a`` keeps equal operators apart.

*Base conditions* of the paper (section 3): the same sources, the same classes, and a grouping by
attributes of the other's. *Usable*: a query's rows follow from an operator's by filters of
conditions, columns and times alone (``usable``). ``part`` is what an operator wants of a join of
some of its sources, ``leaf`` of one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from operator import is_

from bench.papers.streamreuse.model.conditions import Clause, Where, where
from bench.papers.streamreuse.model.value_intervals import Spans
from bench.papers.streamreuse.model.windows import ALWAYS, Instants, Windows
from levada.core.frozen import frozen

Class = frozenset[str]
Aggregate = tuple[str, str]
"""A function and its attribute: ``("SUM", "READINGS.COUNT")``."""
REGROUPED = {"SUM", "COUNT", "MIN", "MAX", "AVG"}
"""What can be put together from finer groups; DISTINCT aggregates and GROUP_CONCAT cannot."""
ALL = Where()
NONE = Spans(())
PIECES = 16
"""A bound of more pieces is made one that is coarser."""
KEPT = 65_536
"""Parts that are remembered: a planner asks for the same ones again and again."""


@frozen
class Descriptor:
    """An operator's definition. ``group`` is None where rows are not aggregated."""

    sources: tuple[str, ...]
    joins: frozenset[Class]
    where: Where
    columns: frozenset[str]
    windows: Windows
    group: frozenset[str] | None = None
    aggregates: frozenset[Aggregate] = frozenset()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        told = self.sources, self.joins, self.where, self.columns, self.windows
        object.__setattr__(self, "_hash", hash((*told, self.group, self.aggregates)))

    def __hash__(self) -> int:
        return self._hash  # descriptors are looked up far more often than made

    @property
    def base(self) -> tuple[tuple[str, ...], frozenset[Class]]:
        """What must be the same for any reuse."""
        return self.sources, self.joins

    def representative(self, attribute: str) -> str:
        """The attribute that stands for all that are equal to this one."""
        return _representative(self.joins, attribute)


def descriptor(
    ranges: Mapping[str, int],
    equal: Iterable[tuple[str, str]] = (),
    conditions: Where = ALL,
    columns: Iterable[str] = (),
    *,
    instants: Instants = ALWAYS,
    group: Iterable[str] | None = None,
    aggregates: Iterable[Aggregate] = (),
) -> Descriptor:
    """An operator over sources with their ranges in ms.

    >>> d = descriptor({"B": 5, "A": 5}, [("A.k", "B.k")], columns=["A.k"])
    >>> d.sources, sorted(d.columns)
    (('A', 'B'), ['B.k'])
    """
    joins = classes(equal)
    sources = tuple(sorted(ranges))
    rename = {a: _representative(joins, a) for c in joins for a in c}
    return Descriptor(
        sources,
        joins,
        renamed(conditions, rename),
        frozenset(rename.get(a, a) for a in columns),
        Windows(tuple(ranges[s] for s in sources), instants),
        None if group is None else frozenset(rename.get(a, a) for a in group),
        frozenset((function, rename.get(a, a)) for function, a in aggregates),
    )


def classes(equal: Iterable[tuple[str, str]]) -> frozenset[Class]:
    """The transitive closure of equalities."""
    found: list[set[str]] = []
    for pair in equal:
        touching = [c for c in found if c & set(pair)]
        found = [c for c in found if not c & set(pair)] + [set(pair).union(*touching)]
    return frozenset(frozenset(c) for c in found if len(c) > 1)


def renamed(conditions: Where, rename: Mapping[str, str]) -> Where:
    """The same conditions on other attributes; those that become one must all hold."""
    box: dict[str, Spans] = {}
    for attribute, found in conditions.box:
        name = rename.get(attribute, attribute)
        box[name] = box[name] & found if name in box else found
    clauses = (_renamed(clause, rename) for clause in conditions.clauses)
    return where(box, clauses)


def _renamed(clause: Clause, rename: Mapping[str, str]) -> Clause:
    return frozenset((text, tuple(rename.get(a, a) for a in names)) for text, names in clause)


def source_of(attribute: str) -> str:
    """The source of an attribute."""
    return attribute.partition(".")[0]


def stream_of(source: str) -> str:
    """The stream of a source."""
    return source.partition("#")[0]


def usable(operator: Descriptor, wanted: Descriptor) -> bool:
    """Whether an operator as it is serves a query: exact reuse or containment."""
    if operator.sources != wanted.sources or operator.joins != wanted.joins:
        return False
    if not operator.windows.covers(wanted.windows) or not operator.where.covers(wanted.where):
        return False
    unseen = wanted.where.beyond(operator.where)
    if operator.group is None or wanted.group is None:
        same = operator.group is wanted.group
        return same and wanted.columns | unseen <= operator.columns
    return (
        wanted.group | unseen <= operator.group
        and operator.windows.ranges == wanted.windows.ranges
        and wanted.aggregates <= had(operator, regroup=operator.group != wanted.group)
    )


def had(operator: Descriptor, *, regroup: bool) -> frozenset[Aggregate]:
    """The aggregates that follow from an operator's: AVG from SUM and COUNT, and of coarser groups
    those that can be added up.
    """
    found = operator.aggregates
    sums = {a for f, a in found if f == "SUM"} & {a for f, a in found if f == "COUNT"}
    if regroup:
        found = frozenset((f, a) for f, a in found if f in REGROUPED and f != "AVG")
    return found | {("AVG", a) for a in sums}


@frozen
class Wanted:
    """What a bound must have if something below it contains a query. ``never``: no row satisfies
    the query's conditions, which any others contain.
    """

    box: dict[str, Spans]
    columns: frozenset[str]
    ranges: tuple[int, ...]
    instants: Instants
    never: bool


@frozen
class Bound:
    """At least as much as each of some definitions: of each attribute in their boxes, which are the
    same, of columns and windows.
    """

    attributes: tuple[str, ...]
    box: tuple[Spans, ...]
    columns: frozenset[str]
    ranges: tuple[int, ...]
    instants: Instants

    def __or__(self, other: Bound) -> Bound:
        """The wider one; this very one if it is wide enough."""
        box = tuple(map(_spans, self.box, other.box))
        ranges = tuple(map(max, self.ranges, other.ranges))
        instants = _instants(self.instants, other.instants)
        same = all(map(is_, box, self.box)) and instants is self.instants
        if same and ranges == self.ranges and other.columns <= self.columns:
            return self
        return Bound(self.attributes, box, self.columns | other.columns, ranges, instants)

    def may_contain(self, wanted: Wanted) -> bool:
        """Whether something below could contain it."""
        return (
            all(own >= w for own, w in zip(self.ranges, wanted.ranges, strict=True))
            and wanted.columns <= self.columns
            and (wanted.never or self._covers(wanted.box))
            and self.instants.covers(wanted.instants)
        )

    def _covers(self, box: Mapping[str, Spans]) -> bool:
        return all(
            name in box and own.covers(box[name])
            for name, own in zip(self.attributes, self.box, strict=True)
        )


def wanted_of(d: Descriptor) -> Wanted:
    """What contains a definition has at least this."""
    columns = d.columns if d.group is None else frozenset[str]()
    windows = d.windows
    return Wanted(dict(d.where.box), columns, windows.ranges, windows.instants, d.where.never)


def bound_of(d: Descriptor) -> Bound:
    """A definition's own bound."""
    never = d.where.never
    return Bound(
        d.where.attributes,
        tuple(NONE if never else found for _, found in d.where.box),
        d.columns if d.group is None else frozenset(),
        d.windows.ranges,
        d.windows.instants,
    )


def _spans(one: Spans, other: Spans) -> Spans:
    if one.covers(other):
        return one
    both = one | other
    return both if len(both.parts) <= PIECES else both.hull()


def _instants(one: Instants, other: Instants) -> Instants:
    if one.covers(other):
        return one
    both = one | other
    return both if len(both.parts) <= PIECES else ALWAYS


def below(grouped: Descriptor) -> Descriptor:
    """What a grouping reads: the same join, with the attributes that it needs."""
    assert grouped.group is not None, "only a grouping has something below"
    columns = grouped.group | {a for _, a in grouped.aggregates}
    return rows(replace(grouped, columns=columns, group=None, aggregates=frozenset()))


def rows(wanted: Descriptor) -> Descriptor:
    """What makes the rows of a query: of a single stream that is a leaf."""
    return part(wanted, wanted.sources) if len(wanted.sources) == 1 else wanted


def part(whole: Descriptor, sources: Collection[str]) -> Descriptor:
    """What ``whole`` wants of a join of some of its sources, whose streams get their plain names.

    Of a single source it is a *leaf*: rows as they come, without a window.
    """
    return _part(whole, frozenset(sources))


@lru_cache(maxsize=KEPT)
def _part(whole: Descriptor, sources: frozenset[str]) -> Descriptor:
    names = plain(sources)
    joins = frozenset(c for c in (_kept(c, names) for c in whole.joins) if len(c) > 1)
    rename = _renames(whole, names, joins)
    inner = [c for c in whole.where.clauses if _inside(c, names)]
    outer = {a for c in whole.where.clauses if not _inside(c, names) for _, ns in c for a in ns}
    crossing = {a for c in whole.joins if not _all(c, names) for a in c}
    wanted = {a for a in whole.columns | outer | crossing if source_of(a) in names or a in rename}
    box: dict[str, Spans] = {rename[a]: found for a, found in whole.where.box if a in rename}
    ranges = {
        names[s]: r for s, r in zip(whole.sources, whole.windows.ranges, strict=True) if s in names
    }
    ordered = tuple(sorted(ranges))
    leaf = len(ordered) == 1
    windows = Windows(
        (0,) if leaf else tuple(ranges[s] for s in ordered),
        ALWAYS if leaf else whole.windows.instants,
    )
    clauses = [_renamed(c, rename) for c in inner]
    columns = frozenset(rename[a] for a in wanted)
    return Descriptor(ordered, joins, where(box, clauses), columns, windows)


def plain(sources: Collection[str]) -> dict[str, str]:
    """Names for sources on their own: ``S#2`` becomes ``S`` where it is the only one of ``S``.

    >>> plain(["S#2", "T"])
    {'S#2': 'S', 'T': 'T'}
    """
    seen: dict[str, int] = {}
    names = {}
    for source in sorted(sources):
        stream = stream_of(source)
        seen[stream] = seen.get(stream, 0) + 1
        names[source] = stream if seen[stream] == 1 else f"{stream}#{seen[stream]}"
    return names


def _kept(found: Class, names: Mapping[str, str]) -> Class:
    return frozenset(_moved(a, names) for a in found if source_of(a) in names)


def _moved(attribute: str, names: Mapping[str, str]) -> str:
    source, _, name = attribute.partition(".")
    return f"{names[source]}.{name}"


def _renames(
    whole: Descriptor, names: Mapping[str, str], joins: frozenset[Class]
) -> dict[str, str]:
    """By attribute of ``whole`` the one that stands for it in the part; none if the part has none
    that is equal to it.
    """
    own = {a for a in _named(whole) if source_of(a) in names}
    rename = {a: _representative(joins, _moved(a, names)) for a in own}
    for found in whole.joins:
        kept = _kept(found, names)
        if kept:
            rename |= {a: _representative(joins, max(kept)) for a in found}
    return rename


def _named(whole: Descriptor) -> frozenset[str]:
    return whole.columns | whole.where.named()


def _inside(clause: Clause, names: Mapping[str, str]) -> bool:
    return all(source_of(a) in names for _, attributes in clause for a in attributes)


def _all(found: Class, names: Mapping[str, str]) -> bool:
    return all(source_of(a) in names for a in found)


def _representative(joins: frozenset[Class], attribute: str) -> str:
    return next((max(c) for c in joins if attribute in c), attribute)
