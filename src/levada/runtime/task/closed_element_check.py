"""Checks ``closed=element``: no subject is in two elements that one window could contain.

The intake sends the subjects of each element to their partition, with the place of the element. The
partition remembers them for as long as the longest window of the stream's queries, and joins them
with new ones. A subject that appears again within that time suspends the queries of the stream: the
intake may have read rows apart that should have been joined. After that time it may appear again,
since no window joins the two.

Cost: linear in the new elements, like one side of a join; the state is the elements of the longest
window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from levada.checkpoint.epoch_context import load_plan
from levada.connectors.ingest.parse.ntriples import Triples
from levada.core import column_names as col
from levada.core.array_types import Ints, Longs
from levada.core.event_time import MAX, MIN, WindowKind
from levada.core.frame import Frame, concat
from levada.core.row_ranges import starts_segment
from levada.errors import PromiseError
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_ids import identify
from levada.operators.operator_context import OperatorContext
from levada.operators.state import join_state

if TYPE_CHECKING:
    from levada.connectors.ingest.elements import Elements
    from levada.connectors.sources.splits import FileSplit
    from levada.kernels.terms.term_lookup import TermLookup


def subjects_of(
    reference: FileSplit, triples: Triples, elements: Elements, subjects: Ints, pool: TermLookup
) -> Frame:
    """Returns the subjects of the elements that count: slot 0, their time, and their place: the
    path (``file``) and the byte (``m0``).
    """
    rows = elements.keep.nonzero()[0]
    first = rows[_first_rows(subjects[rows])]
    path = pa.array([reference.path], pa.large_string())
    x, _ = identify(path, pool.seed)
    # 64 bits identify one of few files, and each subject stores them
    pool.name(x, x, path)
    return Frame(
        {
            "x0": triples.s.x[first],
            "y0": triples.s.y[first],
            "lo0": elements.ts[first],
            "m0": reference.start + triples.line[first].astype(np.int64),
            "file": np.repeat(x, len(first)),
        },
        len(first),
    )


def _first_rows(numbers: Ints) -> Longs:
    """Returns the first row of each number. Numbers ascend if an element is all lines of a
    subject.
    """
    if (numbers[1:] >= numbers[:-1]).all():
        return starts_segment(numbers).nonzero()[0]
    words = numbers.astype(np.uint64)
    return group(words, np.zeros_like(words))[1]


@lru_cache(maxsize=64)
def reach(plan: str, stream: str) -> int:
    """Returns the largest distance (ms, exclusive) of two elements of a stream in one window that
    is read by stars.
    """
    queries = load_plan(plan).queries.values()
    windows = (on.window for q in queries for on in q.windows if on.stream == stream)
    return max(
        (w.reach for w in windows if w.kind is not WindowKind.COUNT and not w.kind.by_session),
        default=0,
    )


def check(subjects: Mapping[int, Sequence[Frame]], plan: str, env: OperatorContext) -> int:
    """Joins the new subjects of each stream of a plan with the remembered ones. Returns how long
    the last one is remembered. Raises ``PromiseError``.
    """
    dead = MIN
    state, progress, streams = env.state, env.progress, load_plan(plan).streams
    for stream, frames in subjects.items():
        rows = concat(frames)
        within = reach(plan, streams[stream])
        ends = np.minimum(rows[col.least(0)] + within, MAX)
        places = rows.select((col.mantissa(0), "file", col.PLACE))
        new = join_state.build_run(
            join_state.with_run_columns(
                places, (rows[col.x(0)], rows[col.y(0)]), rows[col.least(0)], ends, None
            )
        )
        key = f"closed.{stream}"
        now, after = (max(int(w[stream]) - 1, MIN) for w in (progress.old, progress.new))
        for a, b in _first_meetings(new, join_state.live_runs(state, key, now)):
            raise _promise_error(env.pool, streams[stream], a, b)
        join_state.insert(state, key, new, within // 4, horizon=after)
        dead = max(dead, int(ends.max(initial=MIN)))
    return dead


def _first_meetings(
    new: join_state.Run, old: list[join_state.Run]
) -> Iterator[tuple[Frame, Frame]]:
    """Returns the first row of each run that matches a new one, and the new one; ``#s`` is the time
    of each.
    """
    columns = [new.rows[name] for name in (col.KEY, col.CHECK, col.BEGIN, col.END)]
    for run in [*old, new]:
        probes, places = run.find_pairs(columns[0], columns[1], columns[2], columns[3])
        if not len(probes):
            continue
        theirs = run.rows_at(places)
        two = (theirs != probes).nonzero()[0] if run is new else np.arange(len(probes))
        if len(two):
            one = two[:1]
            old_row = run.rows.take(theirs[one]).with_(**{col.BEGIN: run.stored.s[places[one]]})
            yield old_row, new.rows.take(probes[one].astype(np.int64))


def _promise_error(pool: TermLookup, stream: str, a: Frame, b: Frame) -> PromiseError:
    places = [
        (int(f[col.BEGIN][0]), int(f["m0"][0]), pool.texts(f["file"], f["file"])[0]) for f in (a, b)
    ]
    (_, at, one), (_, behind, other) = sorted(places)
    return PromiseError(
        f"The stream {stream} is not closed by element: the subject {_subject(one, at)} is "
        f"at byte {at} of {one} and again at byte {behind} of {other}, within one window.",
        stream=stream,
        hint="All triples of a subject must come in one element; without that, "
        "leave closed=element out.",
    )


def _subject(path: str, at: int) -> str:
    """Returns the subject of the line at a place; "" in files that are not lines."""
    try:
        with open(path, "rb") as file:
            file.seek(at)
            words = file.readline().split(maxsplit=1)
    except OSError:
        words = []
    return words[0].decode("utf-8", "replace") if words else "there"
