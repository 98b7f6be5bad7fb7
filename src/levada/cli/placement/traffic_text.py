"""The traffic between tasks and the bottleneck of a run, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.engine.placement.traffic_report import FlowsStatus, Load, Pair

MAX_TABLE_LINES = 20
"""The most lines of a table. A last line sums up the rest, which ``--json`` has in full."""
UNCOUNTED = "What tasks send to each other was not counted: run with --slice 1d, or --place learn."


def lines(sent: FlowsStatus | None) -> Iterator[str]:
    """Yields the traffic in sentences and tables."""
    if sent is None:
        yield UNCOUNTED
        return
    if sent.bottleneck is not None:
        yield sent.bottleneck.sentence
    if len(sent.executors) > 1:
        yield _busiest(sent.executors)
    if sent.pairs:
        yield f"Between places, in the slice {sent.slice}:"
        rows = [
            _pair(pair) for pair in sorted(sent.pairs, key=lambda p: -p.bytes)[:MAX_TABLE_LINES]
        ]
        yield from align([("from", "to", "rows", "bytes", "of all rows", "predicted"), *rows], 2)
        yield from _describe_rest(
            len(sent.pairs), sum(p.share for p in sent.pairs[MAX_TABLE_LINES:]), "rows"
        )
    if sent.edges:
        yield f"Between tasks, in the slice {sent.slice}:"
        cells = [
            (e.source, e.target, f"{e.rows:,}", f"{e.bytes:,}", f"{e.blobs:,}", f"{e.share:.1%}")
            for e in sent.edges[:MAX_TABLE_LINES]
        ]
        yield from align([("from", "to", "rows", "bytes", "blobs", "of all bytes"), *cells], 2)
        yield from _describe_rest(
            len(sent.edges), sum(e.share for e in sent.edges[MAX_TABLE_LINES:]), "bytes"
        )
    if sent.tasks:
        loads = sorted(sent.tasks, key=lambda load: -load.cpu_seconds)[:MAX_TABLE_LINES]
        heads = ("task", "CPU s", "times the mean", "rows", "of its stage's")
        yield from align([heads, *map(_load, loads)])


def align(rows: Sequence[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """Aligns rows in columns, of which the first ``texts`` are texts.

    >>> list(align([("a", "n"), ("bb", "10")]))
    ['a    n', 'bb  10']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        left = map(str.ljust, row[:texts], widths)
        yield "  ".join([*left, *map(str.rjust, row[texts:], widths[texts:])])


def _pair(pair: Pair) -> tuple[str, ...]:
    predicted = "-" if pair.predicted < 0 else f"{pair.predicted:.1%}"
    many = f"{pair.rows:,}", f"{pair.bytes:,}", f"{pair.share:.1%}"
    return pair.source, pair.target, *many, predicted


def _load(load: Load) -> tuple[str, ...]:
    return (
        load.name, f"{load.cpu_seconds:,.2f}", f"{load.load_ratio:.1f}", f"{load.rows:,}",
        f"{load.row_share:.1%}",
    )  # fmt: skip


def _busiest(places: Sequence[Load]) -> str:
    """Describes the place with the most CPU time.

    >>> _busiest([Load("executor 0", 1.5, 1.5), Load("executor 1", 0.5, 0.5)])
    'The busiest place is executor 0: 1.50 s of CPU time, 1.5 times the mean of 2.'
    """
    most = max(places, key=lambda load: load.cpu_seconds)
    ratio = f"{most.load_ratio:.1f} times the mean of {len(places)}"
    load_text = f"{most.cpu_seconds:,.2f} s of CPU time, {ratio}"
    return f"The busiest place is {most.name}: {load_text}."


def _describe_rest(many: int, share: float, unit: str) -> Iterator[str]:
    if many > MAX_TABLE_LINES:
        more = many - MAX_TABLE_LINES
        yield f"and {more:,} more, with {share:.1%} of the {unit}: --json has them."
