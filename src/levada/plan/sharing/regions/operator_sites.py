"""The choice of the region of a query's operators, which limits sharing (STREAMREUSE, regions and
locality mask; placement of an operator by the data that it sends).

    candidates   the query's own region, and reachable regions whose operators have parts of it
    price        rows from another region times its distance: of streams that no query brings there
                 yet, and of the query's results on their way to its own region
    choice       the cheapest; ties go to the query's own region, then to the one with more parts of
                 it. Without measurements: the one with the most parts

All operators of a query are in one region, its *site*. Operators of two sites are never shared. The
operators at a site are identified by signature (``Installer.signature``), so only equal operators
are examined. A price is for rows that were counted in one run: results of queries with the same
operators, against the elements of their streams since they were added.

The choice does not change results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from levada.core.frozen import frozen
from levada.plan.binding.installer import Installer
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.sharing.regions.regions import Reach, Regions
from levada.plan.sharing.share_relaxed_joins import WHOLE, blocks

MAX_EXAMINED_QUERIES = 16
"""The maximum number of queries whose measurements are examined."""


@frozen
class Candidate:
    """A considered site: the number of ``parts`` of the query there, and the price (None:
    unmeasured).
    """

    site: str
    parts: int
    price: float | None


@frozen
class Chosen:
    """The choice for a query: its ``region`` option, its ``site``, and the candidates.

    ``masked``: the number of its parts in unreachable regions.
    """

    region: str
    site: str
    candidates: tuple[Candidate, ...] = ()
    masked: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Standing:
    site: str
    marks: tuple[int, ...]
    streams: tuple[str, ...]
    began: Mapping[str, int]  # elements of its streams when it was added


@dataclass(slots=True)
class Sites:
    """The sites of the queries of a topology.

    ``of_stream``: the regions of streams. ``elements``: of streams, as in the last manifest.
    ``had``: the recent solutions of a query; None: unknown.
    """

    regions: Regions = field(default_factory=Regions)
    of_stream: Mapping[str, str] = field(default_factory=dict)
    chosen: dict[str, Chosen] = field(default_factory=dict)
    elements: Mapping[str, int] = field(default_factory=dict)
    had: Callable[[str], int | None] = lambda name: None
    _there: dict[int, dict[str, Counter[str]]] = field(default_factory=dict)
    _of: dict[str, _Standing] = field(default_factory=dict)
    _coming: Counter[tuple[str, str]] = field(default_factory=Counter)  # streams, by site

    @property
    def has_regions(self) -> bool:
        """Whether there are regions."""
        return bool(self.regions.names) or any(self.of_stream.values())

    def choose(self, name: str, said: str, marks: Sequence[int], streams: Sequence[str]) -> str:
        """Returns the site of an added query; ``marks``: hashes of its parts."""
        reach = Reach.parse(said)
        parts = Counter(site for mark in marks for site in self._there.get(mark, ()))
        candidates = [
            Candidate(site, parts[site], self._price(site, reach.home, marks, streams))
            for site in dict.fromkeys([reach.home, *parts])
            if reach.has(site)
        ]
        best = min(candidates, key=lambda one: _order(one, reach.home, candidates))
        masked = {site: count for site, count in sorted(parts.items()) if not reach.has(site)}
        self.chosen[name] = Chosen(said, best.site, tuple(candidates), masked)
        self._record_site(name, best.site, marks, streams)
        return best.site

    def _record_site(
        self, name: str, site: str, marks: Sequence[int], streams: Sequence[str]
    ) -> None:
        began = {stream: self.elements.get(stream, 0) for stream in streams}
        self._of[name] = _Standing(site, tuple(marks), tuple(streams), began)
        for mark in marks:
            self._there.setdefault(mark, {}).setdefault(site, Counter())[name] += 1
        self._coming.update((site, stream) for stream in streams)

    def forget(self, name: str) -> None:
        """Removes a query."""
        self.chosen.pop(name, None)
        standing = self._of.pop(name, None)
        if standing is None:
            return
        for mark in dict.fromkeys(standing.marks):
            users = self._there[mark][standing.site]
            del users[name]
            if not users:
                del self._there[mark][standing.site]
                if not self._there[mark]:
                    del self._there[mark]
        self._coming -= Counter((standing.site, stream) for stream in standing.streams)

    def _price(
        self, site: str, home: str, marks: Sequence[int], streams: Sequence[str]
    ) -> float | None:
        """Returns the cost of a query at a site, in rows times delays; None: unknown."""
        measured = self._measure_similar(marks)
        if measured is None:
            return None
        out, elements = measured
        new = [stream for stream in streams if not self._coming[site, stream]]
        brought = sum(
            elements[stream] * self.regions.delay(self.of_stream.get(stream, ""), site)
            for stream in new
        )
        return brought + out * self.regions.delay(site, home)

    def _measure_similar(self, marks: Sequence[int]) -> tuple[float, Mapping[str, int]] | None:
        """Returns the results of a query that has the largest part of another one, at any site.

        It also returns the elements of its streams since it was added.
        """
        for mark in marks:  # the hash of the whole query is first
            for users in self._there.get(mark, {}).values():
                for name in islice(users, MAX_EXAMINED_QUERIES):
                    user = self._of[name]
                    since = {s: self.elements.get(s, 0) - user.began[s] for s in user.streams}
                    had = self.had(name)
                    if had is not None and all(since.values()):
                        return had, Counter(since)
        return None


def _order(one: Candidate, home: str, others: Sequence[Candidate]) -> tuple[float, ...]:
    if any(other.price is None for other in others):
        return (-one.parts, one.site != home)
    assert one.price is not None, "all are known"
    return (one.price, one.site != home, -one.parts)


def marks_of(installer: Installer, root: Op, *, alike: bool) -> list[int]:
    """Returns hashes that identify the parts of a query, the whole first.

    ``alike``: also its joins without the parts that can be relaxed. The last operator has the
    query's name, and leaves are read by all, so both are left out.
    """
    marks: list[int] = []
    waiting, seen = list(root.inputs), set[int]()
    while waiting:
        op = waiting.pop(0)
        if id(op) in seen or not op.inputs:
            continue
        seen.add(id(op))
        if not isinstance(op.spec, p.Rename):
            marks.append(hash(installer.signature(op)))
        if not isinstance(op.spec, WHOLE):
            waiting += op.inputs
    if alike:
        windows = installer.timing.member_of_rows
        marks += [hash(installer.signature(block.relaxed)) for block in blocks(root, windows)]
    return list(dict.fromkeys(marks))
