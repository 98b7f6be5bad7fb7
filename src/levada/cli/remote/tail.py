"""``levada tail``: the results of a running engine, in another terminal."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from levada.checkpoint.reader_leases import ReaderLease
from levada.checkpoint.request_files import engine_runs
from levada.cli.app.signals import stopped_by_signals
from levada.connectors.serialization.result_formats import Format, check_fits, check_stdout
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.core.count_text import count_text
from levada.core.names import display_name
from levada.engine.status.epoch_follower import Reader
from levada.errors import UsageError, near
from levada.plan.execution.plan import QueryPlan

LOOK = 0.05  # s between two looks for results
RUNS = 0.5  # s between two looks at whether the engine runs


class Tail:
    """A writer of the results of some queries, or of all (``names`` empty), to standard output."""

    def __init__(
        self, reader: Reader, names: Collection[str], form: Format, *, iso: bool = False
    ) -> None:
        self._reader, self._names, self._form = reader, frozenset(names), form
        self._sink = StdoutSink(form, sys.stdout.buffer, iso=iso)
        self._checked: set[str] = set()
        self._missed = 0

    def check(self) -> None:
        """Raises ``UsageError`` for an unknown query, or a format that standard output cannot
        take.
        """
        check_stdout(self._form, len(self._names) or 2)
        there = self._reader.queries()
        for name in sorted(self._names):
            if there is not None and name not in there:
                raise UsageError(f"There is no query {name}.", hint=near(name, there))

    def show(self) -> None:
        """Writes the results since the last call."""
        for epoch, results in self._reader.epochs():
            for query, batch in results:
                if not self._names or query.name in self._names:
                    self._check(query)
                    self._sink.publish(display_name(query.name), query.variables, epoch, batch)
        if self._reader.missed > self._missed:
            missed, self._missed = self._reader.missed - self._missed, self._reader.missed
            epochs = count_text(missed, "epoch is", "epochs are")
            _say(f"{epochs} not shown: their results were deleted before the reading.")

    def _check(self, query: QueryPlan) -> None:
        """Checks once that the format fits the query's results. Raises ``UsageError``."""
        if query.name not in self._checked:
            check_fits(self._form, query.name, query.form, query.output)
            self._checked.add(query.name)

    @property
    def all_ended(self) -> bool:
        """Returns whether all named queries have left, at their end or dropped."""
        there = self._reader.queries() if self._names else None
        return there is not None and self._names.isdisjoint(there)


def tail(
    checkpoint: Path,
    names: Collection[str],
    form: Format,
    *,
    from_start: bool,
    wait: bool,
    iso: bool = False,
) -> None:
    """Writes results until the engine or the queries end; with ``wait`` it continues without an
    engine until Ctrl-C. ``iso``: with times as texts.
    """
    with (
        stopped_by_signals(None) as stopped,
        closing(ReaderLease(checkpoint, _name(), time.monotonic)) as sign,
    ):
        printer = Tail(Reader(checkpoint, sign, from_start=from_start), names, form, iso=iso)
        printer.check()
        looked, runs = 0.0, True
        while not stopped.is_set():
            if time.monotonic() - looked >= RUNS:
                looked, runs = time.monotonic(), engine_runs(checkpoint)
                over = printer.all_ended
                printer.show()
                if over or not (runs or wait):
                    _say("The queries have left." if over else "No engine runs now.")
                    return
            else:
                printer.show()
            stopped.wait(LOOK)


def _name() -> str:
    return secrets.token_hex(8)


def _say(sentence: str) -> None:
    print(f"levada: {sentence}", file=sys.stderr, flush=True)
