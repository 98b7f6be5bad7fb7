"""A case: what streams say in each phase, static data that are replaced, queries that come and go,
and how an engine is to run it; and what each query is to report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oracle.cql import Relation, relation_reports
from oracle.queries import Query
from oracle.reports import Graphs, Report, reports
from oracle.solve import Three
from oracle.texts import name

PHASES = 3
NONE = -(1 << 60)
Said = tuple[int, object]
"""A triple or a row with its time."""


@dataclass(frozen=True)
class Coming:
    """A query, the phase before which it comes, and that before which it goes."""

    query: Query | Relation
    comes: int = 0
    goes: int = PHASES

    def there(self, phase: int) -> bool:
        return self.comes <= phase < self.goes or phase == self.goes == PHASES


@dataclass(frozen=True)
class Running:
    """How a phase is run. ``live``: by an engine that goes on; else by one over what there is, that
    stops after so many epochs, again and again, and dies in some. ``again``: on a new engine.
    ``together``: those that come do so at once.
    """

    mode: str = "exact"
    partitions: int | None = 2
    again: bool = False
    live: bool = True
    stops: int = 1000
    dies: tuple[tuple[int, bool], ...] = ()
    together: bool = True


@dataclass(frozen=True)
class Case:
    """``streams``: what each says in each phase, as it arrives. ``graphs``: the static data from
    each phase on. ``running``: of each phase and the end. ``lot``: which groups move. ``orders``:
    of joins by lot, and how many epochs pass between two looks for others.
    """

    seed: int
    streams: Mapping[str, Sequence[Sequence[Said]]]
    graphs: Sequence[Graphs]
    coming: tuple[Coming, ...]
    running: tuple[Running, ...]
    lateness: int = 0
    lot: int | None = None
    orders: tuple[int, int] | None = None
    epoch_rows: int = 1000
    options: Mapping[str, object] = field(default_factory=dict)

    def seen(self, stream: str, phases: int) -> int:
        """The largest time of what a stream has said in so many phases."""
        return max((ts for part in self.streams[stream][:phases] for ts, _ in part), default=NONE)

    def told(self, stream: str) -> list[Said]:
        """What a stream says and is not late, in the order of times and texts."""
        found = list[Said]()
        for phase, part in enumerate(self.streams[stream]):
            least = self.seen(stream, phase) - self.lateness
            found += [one for one in part if one[0] >= least]
        return sorted(found, key=lambda one: (one[0], str(one[1])))


class Right(NamedTuple):
    """The reports of a query, from where it counts, and those that are out for sure when it goes;
    ``sure`` is None where the page does not say from where it counts.
    """

    reports: Mapping[int, Report]
    least: int


def expected(case: Case) -> dict[str, Right | None]:
    """What each query reports; None: the page does not say."""
    found: dict[str, Right | None] = {}
    by_stream = {name(c.query): c for c in case.coming if isinstance(c.query, Query)}

    def of(coming: Coming) -> Right | None:
        if coming.query.name not in found:
            found[coming.query.name] = _right(case, coming, by_stream, of)
        return found[coming.query.name]

    for coming in case.coming:
        of(coming)
    return found


def _right(case: Case, coming: Coming, makers: Mapping[str, Coming], of: object) -> Right | None:
    """The right reports of a query, of which its makers' are known or asked for."""
    query = coming.query
    told: dict[str, list[Said]] = {}
    start, least = NONE, 1 << 60
    for stream in query.streams:
        if stream in case.streams:
            told[stream] = case.told(stream)
            start = max(start, case.seen(stream, coming.comes))
            least = min(least, case.seen(stream, coming.goes) - case.lateness)
            continue
        made = of(makers[stream])  # type: ignore[operator]
        if made is None:
            return None
        told[stream] = [(at, t) for at, r in made.reports.items() for t in r.made]
        last = _made_before(case, makers[stream], coming.comes, makers, made)
        if last is None:
            return None
        start, least = max(start, last), NONE
    own = {s: [one for one in said if one[0] > start] for s, said in told.items()}
    if isinstance(query, Relation):
        return Right(relation_reports(query, own), least)
    given = {s: list(dict.fromkeys(said)) for s, said in own.items()}
    return Right(reports(query, given, _static(case, coming)), least)  # type: ignore[arg-type]


def _made_before(
    case: Case, maker: Coming, phase: int, makers: Mapping[str, Coming], made: Right
) -> int | None:
    """The last report of a maker that had a result before a phase; None: who knows."""
    if phase <= maker.comes:
        return NONE
    reached = min(_reached(case, s, phase, makers) for s in maker.query.streams)
    if reached in made.reports:
        return None  # whether it is out already follows from the policy
    return max((at for at in made.reports if at < reached), default=NONE)


def _reached(case: Case, stream: str, phase: int, makers: Mapping[str, Coming]) -> int:
    """How far a stream is before a phase."""
    if stream in case.streams:
        seen = case.seen(stream, phase)
        return seen - case.lateness if seen > NONE else NONE
    return min(_reached(case, s, phase, makers) for s in makers[stream].query.streams)


def _static(case: Case, coming: Coming) -> object:
    """Static data by the instant of a report."""
    changes: list[tuple[int, Graphs]] = []
    for phase in range(coming.comes + 1, len(case.graphs)):
        since = max((case.seen(s, phase) for s in case.streams), default=NONE)
        changes.append((since, case.graphs[phase]))

    def at(report: int) -> Graphs:
        found = case.graphs[coming.comes]
        for since, graphs in changes:
            if report > since:
                found = graphs
        return found

    return at


def triple_text(said: object) -> str:
    """A triple as a line has it."""
    three: Three = said  # type: ignore[assignment]
    return " ".join(three)
