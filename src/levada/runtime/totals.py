"""What manifests add up since the beginning: the results of each query, the matches of each pattern.

Of queries that are gone one number is left, and no pattern: so a manifest does not grow with queries that come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from levada.plan.patterns import MOST_COUNTED, patterns_read
from levada.plan.topology import Plan
from levada.runtime.context import Control
from levada.runtime.manifest import Manifest

Counts = dict[str, list[int]]


def totals(plan: Plan, last: Manifest, counts: Mapping[str, Sequence[int]]) -> tuple[Counts, int]:
    """[solutions, reports] of each query since it came, with this epoch's; the solutions of those that are gone."""
    there = plan.queries
    kept = {n: list(t) for n, t in last.totals.items() if n in there and there[n].since <= last.plan}
    gone = last.gone + sum(t[0] for n, t in last.totals.items() if n not in kept)
    for query, (n, _, _, reports) in counts.items():
        total = kept.setdefault(query, [0, 0])
        total[0], total[1] = total[0] + n, total[1] + reports
    return kept, gone


def hits(plan: Plan, last: Manifest, controls: Sequence[Control]) -> dict[str, dict[str, int]]:
    """The triples that have matched each pattern, with this epoch's."""
    total = {stream: Counter(hits) for stream, hits in last.hits.items()}
    for c in controls:
        if c.hits:
            total.setdefault(plan.streams[c.stream], Counter()).update(c.hits)
    read: set[tuple[str, str]] | None = None
    for stream, found in total.items():
        if len(found) > 2 * MOST_COUNTED:
            read = _read(plan) if read is None else read
            total[stream] = Counter({text: n for text, n in found.items() if (stream, text) in read})
    return {stream: dict(found) for stream, found in total.items()}


def _read(plan: Plan) -> set[tuple[str, str]]:
    return {read for query in plan.queries.values() for read in patterns_read(plan, query.node, query.member)}
