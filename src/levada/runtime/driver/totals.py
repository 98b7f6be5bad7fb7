"""What manifests add up, of an epoch and since the beginning: the results of each query, the
matches of each pattern.

Of queries that are gone one number is left, and no pattern: so a manifest does not grow with
queries that come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from levada.kernels.keyed.groups import group
from levada.model.frame import Frame
from levada.model.limits import Limited
from levada.plan.sealed.patterns import MOST_COUNTED, patterns_read
from levada.plan.sealed.plan import Plan
from levada.runtime.context import Control, Done
from levada.runtime.store.manifest import Manifest

Counts = dict[str, list[int]]
Opener = Callable[[str], tuple[Mapping[str, Frame], Any]]


def counts(plan: Plan, done: Sequence[Done], opener: Opener) -> Counts:
    """Of each query with results in an epoch [solutions, least report, greatest report, reports],
    from those of its tasks.

    A report that several tasks have rows of is one: where that can be, the reports themselves are
    looked up in the segments.
    """
    found: Counts = {}
    several: set[str] = set()
    for d in done:
        if not found:
            found.update(d.counts)
            continue
        for query, (n, low, high, reports) in d.counts.items():
            have = found.get(query)
            if have is None:
                found[query] = [n, low, high, reports]
                continue
            several.add(query)
            found[query] = [
                have[0] + n,
                min(have[1], low),
                max(have[2], high),
                max(have[3], reports),
            ]
    unsure = [q for q in several if found[q][1] < found[q][2]]
    if unsure:
        reported = distinct_reports(plan, unsure, [d.segment for d in done if d.segment], opener)
        for query, reports in reported.items():
            found[query][3] = reports
    return found


def distinct_reports(
    plan: Plan, queries: Sequence[str], segments: Sequence[str], opener: Opener
) -> dict[str, int]:
    """How many reports these queries have rows of."""
    by_node: dict[int, dict[int, str]] = {}
    for name in queries:
        by_node.setdefault(plan.queries[name].node, {})[plan.queries[name].member] = name
    opened = [opener(segment)[0] for segment in segments]
    reported: dict[str, int] = {}
    for node, names in by_node.items():
        parts = [frames[f"reports.{node}"] for frames in opened if f"reports.{node}" in frames]
        op, r = (np.concatenate([part[column] for part in parts]) for column in ("op", "r"))
        mine = np.isin(op, list(names))
        op, r = op[mine], r[mine]
        _, first = group(op.astype(np.uint64), np.ascontiguousarray(r).view(np.uint64))
        member, n = np.unique(op[first], return_counts=True)
        reported |= {names[m]: k for m, k in zip(member.tolist(), n.tolist(), strict=True)}
    return reported


def sizes(done: Sequence[Done]) -> dict[str, int]:
    """The bytes of each query's results in an epoch, where they are counted."""
    found = Counter[str]()
    for d in done:
        found.update(d.sizes)
    return dict(found)


def crowded(done: Sequence[Done], limits: Limited) -> dict[str, int]:
    """The queries that have more rows of state than they may have, and how many."""
    found = Counter[str]()
    for d in done:
        found.update(d.held)
    return {name: n for name, n in found.items() if 0 < limits.of(name).state < n}


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
            total[stream] = Counter(
                {text: n for text, n in found.items() if (stream, text) in read}
            )
    return {stream: dict(found) for stream, found in total.items()}


def _read(plan: Plan) -> set[tuple[str, str]]:
    return {
        read
        for query in plan.queries.values()
        for read in patterns_read(plan, query.node, query.member)
    }
