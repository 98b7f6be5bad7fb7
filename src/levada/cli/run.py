"""``levada run``: checks the options that only a run has, calls the engine, and prints a
summary.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from levada.checkpoint.object_store.store_url import Address, folder_of
from levada.cli.app.app_file import STDOUT, App
from levada.cli.progress import After, Waiting, choose
from levada.connectors.serialization.result_formats import Format
from levada.core.durable_files import sink_error, write_atomic
from levada.core.event_time import parse_duration
from levada.core.frozen import frozen
from levada.engine.status.summary import Summary
from levada.errors import UnmatchedError, UsageError

if TYPE_CHECKING:
    from levada.connectors.serialization.serialize import Batch
    from levada.connectors.sinks import Sink

RunApp = Callable[..., Summary]
Times = Literal["iso", "ms"]
LEASE, MIN_LEASE_MS = "10s", 3000  # the least is in ms


@frozen
class Mode:
    """The options of a run that are not part of the application.

    ``once``: reads the available data, then ends. The windows stay open at that end if there is a
    checkpoint, or with ``keep_open``; ``close`` ends the streams for good.
    ``progress`` None: the terminal decides. ``watch``: shows results as a live table. ``times``:
    the form of report times; None: as in files, ISO in the live table. ``keep``: how long results
    stay for other processes ("": until files have them). ``published``: results also go to standard
    output or files. ``standby``: waits until the engine at work is silent for a ``lease``.
    ``endless``: runs on without streams, since clients may add some. ``accept_changes``: changed
    options of streams may change the meaning of open windows. ``strict``: a column or a pattern
    that has matched nothing is an error at the end.
    """

    once: bool = False
    keep_open: bool = False
    overwrite: bool = False
    progress: bool | None = None
    watch: bool = False
    times: Times | None = None
    keep: str = ""
    published: bool = True
    standby: bool = False
    lease: str | None = None
    endless: bool = False
    accept_changes: bool = False
    strict: bool = False
    close: bool = False

    @property
    def silence(self) -> float:
        """Returns the lease in seconds, 0 without ``standby``. Raises ``UsageError``."""
        if not self.standby:
            return 0.0
        if (lease := parse_duration(self.lease or LEASE)) < MIN_LEASE_MS:
            message = f"A lease of {self.lease} is too short: a pulse comes each second."
            raise UsageError(f"--lease: {message}", hint="Say 3s or more.")
        return lease / 1000


def check_run(app: App, mode: Mode) -> None:
    """Checks the conditions that only a run has. Raises ``UsageError``."""
    if mode.keep_open and not mode.once:
        raise UsageError(
            "--keep-open is for --once.", hint="Without --once the windows stay open anyway."
        )
    if mode.keep_open and mode.close:
        raise UsageError(
            "--close closes all windows, and --keep-open leaves them open.", hint="Leave one out."
        )
    _check_standby(app.options.checkpoint, mode)
    if not app.queries:
        _check_added(app.options.checkpoint)
    if mode.keep and app.options.checkpoint is None:
        message = "--keep is for a checkpoint that survives."
        raise UsageError(message, hint="Say --checkpoint DIR, too.")
    delivers = app.options.letters_to is not None or any(query.to for query in app.queries)
    if app.options.checkpoint is None and delivers:
        message = "An output goes on where it was, which takes a checkpoint that survives."
        raise UsageError(message, hint="Say --checkpoint DIR, too.")
    if app.options.summary is not None and Path(app.options.summary).is_dir():
        raise UsageError(
            f"The summary cannot be written to {app.options.summary}: it is a folder.",
            hint="Name a file.",
        )
    if app.options.out == STDOUT and sys.stdout is None:  # closed with `>&-`
        raise UsageError("There is no standard output for results.", hint="Say --out DIR.")
    _check_shown(app, mode)


def _check_standby(checkpoint: str | None, mode: Mode) -> None:
    if mode.lease is not None and not mode.standby:
        raise UsageError("--lease is for --standby.", hint="Say --standby, too, or leave it out.")
    if mode.silence and checkpoint is None:
        message = "A standby takes over a checkpoint, and there is none."
        raise UsageError(message, hint="Say --checkpoint DIR, too.")
    if mode.silence and checkpoint is not None and Address.parse(checkpoint) is not None:
        raise UsageError(
            f"A standby watches a folder, and {checkpoint} is on an object store.",
            hint="Start it without --standby when the other has ended: it goes on from there.",
        )


def _check_added(checkpoint: str | None) -> None:
    """Checks that `levada add` has added queries to the checkpoint, for a run without query files.
    Raises ``UsageError``.
    """
    hint = "Give query files, or an app file with --app."
    if checkpoint is None:
        raise UsageError("There is no query.", hint=hint)
    # imported here: a run with queries does not need it
    from levada.checkpoint.request_files import read_ledger

    if not read_ledger(folder_of(checkpoint)).added_queries:
        message = f"There is no query, and none was added to the checkpoint {checkpoint}."
        raise UsageError(message, hint=hint)


def _check_shown(app: App, mode: Mode) -> None:
    """Checks the options that format results for people. Raises ``UsageError``."""
    if mode.times is not None and app.options.out != STDOUT:
        raise UsageError("--times is for standard output.", hint="Leave it, or --out, out.")
    if not mode.watch:
        app.check_output()
        return
    if app.options.shape == "state":
        raise UsageError("--watch shows results, and --as state writes them.", hint="Leave one.")
    if app.options.out != STDOUT:
        message = "--watch shows results on the terminal, and --out writes them to a folder."
        raise UsageError(message, hint="Leave one of the two out.")
    if not sys.stdout.isatty():
        hint = "Leave --watch out: results are lines then."
        raise UsageError("--watch needs a terminal as standard output.", hint=hint)


def run(app: App, mode: Mode) -> Summary:
    """Runs an application to its end and returns its summary. Raises ``UsageError``."""
    check_run(app, mode)
    if mode.once and not mode.close and app.options.checkpoint is not None:
        mode = replace(mode, keep_open=True)
    console = Console(stderr=True)
    waiting = Waiting(console) if mode.progress is not False and not mode.watch else None
    try:
        # imported here: it takes a second, and a usage error is reported before
        from levada.cli.app.run_app import run_app

        if mode.watch:
            summary = _watch(run_app, app, mode, console)
        else:
            summary = run_with(run_app, app, mode, console, waiting)
    finally:
        if waiting is not None:
            waiting.clear()
    if mode.strict:
        _check_matches(summary)
    return summary


def _check_matches(summary: Summary) -> None:
    """Raises ``UnmatchedError`` if a column or a pattern has matched nothing."""
    if unmatched := list(summary.unmatched):
        more = f" ({len(unmatched) - 1} more)" if len(unmatched) > 1 else ""
        hint = "Correct the name, or run without --strict."
        raise UnmatchedError(f"{unmatched[0]}{more}", hint=hint)


def run_with(
    run_app: RunApp,
    app: App,
    mode: Mode,
    console: Console | None = None,
    waiting: Waiting | None = None,
) -> Summary:
    """Runs an application with this engine, shows its progress and prints the summary. ``waiting``:
    the line that is already shown.
    """
    # imported here: it loads the kernels
    from levada.connectors.sinks.stdout_sink import StdoutSink, shows_iso

    console = console or Console(stderr=True)
    delivered = bool(app.queries) and all(query.to for query in app.queries)
    published = mode.published and not (delivered and app.options.out == STDOUT)
    to_stdout = app.options.out == STDOUT and published
    shared = to_stdout and sys.stdout.isatty()
    make = partial(choose, console, mode.progress, time.monotonic, shared=shared, ends=mode.once)
    show = make() if waiting is None else After(console, waiting, make)
    form, stdout = Format(app.options.format), None
    if to_stdout:
        stdout = StdoutSink(form, sys.stdout.buffer, iso=shows_iso(mode.times, form))
    try:
        summary = run_app(
            app,
            once=mode.once,
            keep_open=mode.keep_open,
            overwrite=mode.overwrite,
            master=app.options.master,
            progress=show,
            on_results=stdout
            if stdout is None or waiting is None
            else Cleared(stdout, waiting.clear),
            keep=mode.keep,
            published=published,
            standby=mode.silence,
            endless=mode.endless,
            accept_changes=mode.accept_changes,
        )
    finally:
        if show is not None:
            show.close()
    _print_summary(app, summary, console)
    return summary


def _watch(run_app: RunApp, app: App, mode: Mode, console: Console) -> Summary:
    """Runs an application with its results in a live table, which remains at the end."""
    from levada.cli.tables.table_cells import prefixes_of
    from levada.cli.tables.watch_results import Watching

    prefixes = {query.name: prefixes_of(query.text) for query in app.queries}
    watching = Watching(Console(highlight=False), prefixes, mode.times or "iso")
    try:
        summary = run_app(
            app,
            once=mode.once,
            keep_open=mode.keep_open,
            overwrite=mode.overwrite,
            master=app.options.master,
            progress=watching,
            on_results=watching,
            keep=mode.keep,
            standby=mode.silence,
            accept_changes=mode.accept_changes,
        )
    finally:
        watching.close()
    _print_summary(app, summary, console)
    return summary


def _print_summary(app: App, summary: Summary, console: Console) -> None:
    """Prints the summary of a run, and writes it to the file of ``--summary``."""
    if app.options.summary is not None:
        write_summary(Path(app.options.summary), summary.to_json().encode() + b"\n")
    console.print(summary, soft_wrap=not console.is_terminal)  # a line of a log is not wrapped


class Cleared:
    """A sink that calls ``clear`` before each batch, to remove a line from the terminal."""

    def __init__(self, sink: Sink, clear: Callable[[], None]) -> None:
        self._sink, self._clear = sink, clear

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Clears the terminal and publishes a batch through the sink."""
        self._clear()
        return self._sink.publish(query, variables, epoch, batch)


def write_summary(path: Path, data: bytes) -> None:
    """Writes a file atomically. A pipe, a device or an open file (/dev/stderr) is written to, not
    replaced. Raises ``SinkError``.
    """
    opened = str(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    if not opened and (path.is_file() or not path.exists()):
        write_atomic(path.resolve(), data)
        return
    try:
        with path.open("ab") as file:
            file.write(data)
    except OSError as error:
        raise sink_error(error, path) from error
