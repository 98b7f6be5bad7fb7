"""``levada run``: checks what only a run needs, calls the engine, and tells how it went."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from levada.app.app_file import STDOUT, App
from levada.cli.progress import choose
from levada.emission.formats import Format
from levada.engine.summary import Summary
from levada.errors import UsageError
from levada.sinks.atomic import sink_error, write_atomic
from levada.sinks.stdout import StdoutSink

RunApp = Callable[..., Summary]


@dataclass(frozen=True, slots=True)
class Mode:
    """How to run: ``once`` reads what is there, ``keep_open`` leaves its windows open; ``progress``
    None: as the terminal is.
    """

    once: bool = False
    keep_open: bool = False
    overwrite: bool = False
    progress: bool | None = None


def check_run(app: App, mode: Mode) -> None:
    """What holds for a run only. Raises ``UsageError``."""
    if mode.keep_open and not mode.once:
        raise UsageError(
            "--keep-open is for --once.", hint="Without --once the windows stay open anyway."
        )
    if not app.queries:
        raise UsageError("There is no query.", hint="Give query files, or an app file with --app.")
    if app.options.summary is not None and Path(app.options.summary).is_dir():
        raise UsageError(
            f"The summary cannot be written to {app.options.summary}: it is a folder.",
            hint="Name a file.",
        )
    app.check_output()


def run(app: App, mode: Mode) -> Summary:
    """Runs an application to its end."""
    check_run(app, mode)
    # here: it takes a second to import, and a wrong use is to be told at once
    from levada.app.run import run_app

    return run_with(run_app, app, mode)


def run_with(run_app: RunApp, app: App, mode: Mode) -> Summary:
    """Runs an application with this engine, shows its progress, and tells at last how it went."""
    console = Console(stderr=True)
    to_stdout = app.options.out == STDOUT
    show = choose(console, mode.progress, time.monotonic, shared=to_stdout and sys.stdout.isatty())
    try:
        summary = run_app(
            app,
            once=mode.once,
            keep_open=mode.keep_open,
            overwrite=mode.overwrite,
            master=app.options.master,
            progress=show,
            on_results=StdoutSink(Format(app.options.format), sys.stdout.buffer)
            if to_stdout
            else None,
        )
    finally:
        if show is not None:
            show.close()
    if app.options.summary is not None:
        write_summary(Path(app.options.summary), summary.to_json().encode() + b"\n")
    console.print(summary, soft_wrap=not console.is_terminal)  # a line of a log stays a line
    return summary


def write_summary(path: Path, data: bytes) -> None:
    """A file is there whole or not at all; a pipe, a device or what is open already (/dev/stderr)
    is written to, not replaced.
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
