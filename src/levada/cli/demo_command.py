"""``levada demo``: a year of real flights and weather as RDF streams, three queries, and a board of
what they say.

Reads as what a user sees: the data are found, written as N-Triples into a folder, the app file in
it is run to the end of the streams with the board as its sink, and the summary says how it went.
All of it goes to standard error.
"""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from levada.cli.app.app_file import STDOUT, App, load_app
from levada.cli.demo.board import Board
from levada.cli.demo.nycflights import data_folder, read_tables
from levada.cli.demo.write_demo import APP, Written, discard, empty_folder, fill
from levada.cli.progress import PlainLines
from levada.cli.run import RunApp
from levada.core.atomic_file import sink_error
from levada.core.frozen import frozen
from levada.engine.status.summary import Progress, Summary


@frozen
class Wish:
    """What is asked: a folder to ``keep`` (None: a temporary one), ``master`` (None: embedded)."""

    keep: Path | None = None
    master: str | None = None


def demo(wish: Wish, console: Console | None = None) -> Summary:
    """Runs the demo to its end. Raises ``UsageError`` if data are missing or ``keep`` is used."""
    tables_at = data_folder()
    # here: it takes a second to import, and a wrong use is to be told at once
    from levada.cli.app.run_app import run_app

    return demo_with(run_app, wish, tables_at, console or Console(stderr=True))


def demo_with(run_app: RunApp, wish: Wish, tables_at: Path, console: Console) -> Summary:
    """Runs the demo with this engine and the tables of this folder."""
    _print(
        console,
        "[bold]Levada[/bold] · a year of flights and weather in New York, 2013, as RDF streams",
    )
    with _folder(wish.keep) as folder:
        written = _write(folder, tables_at, console)
        app = load_app(folder / APP)
        summary = _run(run_app, app, Board(written.elements, written.until), wish, console)
    console.print(summary)
    _print(console, _next(wish.keep))
    return summary


def _write(folder: Path, tables_at: Path, console: Console) -> Written:
    """The data into the folder: all of them, or none."""
    began = time.monotonic()
    with console.status("[dim]Writing the year as RDF[/dim]"):
        try:
            written = fill(folder, read_tables(tables_at))
        except BaseException:
            discard(folder)
            raise
    _print(console, _inventory(written, time.monotonic() - began))
    return written


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """The folder to fill: the user's, or one that goes away."""
    if keep is not None:
        yield empty_folder(keep)
        return
    try:
        temporary = tempfile.TemporaryDirectory(prefix="levada-demo-")
    except OSError as error:
        raise sink_error(error, tempfile.gettempdir()) from error
    with temporary as name:
        yield Path(name)


def _run(run_app: RunApp, app: App, board: Board, wish: Wish, console: Console) -> Summary:
    """The app to its end, with its results on the board only."""
    options = replace(app.options, out=STDOUT, master=wish.master)
    display = Live(board, console=console, refresh_per_second=8) if console.is_terminal else None
    show = PlainLines(console, time.monotonic)

    def tell(progress: Progress) -> None:
        board.progress = progress
        if display is None and progress.epochs:
            show(progress)

    if display is not None:
        display.start()
    else:
        _print(console, "Spark is starting")
    try:
        return run_app(
            replace(app, options=options),
            once=True,
            keep_open=False,
            overwrite=False,
            master=wish.master,
            progress=tell,
            on_results=board,
        )
    finally:
        if display is not None:
            display.stop()
        elif board.progress.epochs:
            console.print(board)


def _inventory(written: Written, seconds: float) -> str:
    return (
        f"{written.elements:,} elements of {written.streamed:,} triples on two streams, "
        f"{written.static:,} static triples ({written.size / 1e6:,.0f} MB of N-Triples), "
        f"written in {seconds:.1f} s"
    )


def _next(keep: Path | None) -> str:
    """What a user may do now."""
    if keep is None:
        return "\nTo play with the data and the queries: [bold]levada demo --keep DIR[/bold]"
    app = shlex.quote(str(keep / APP))
    return (
        f"\nData, queries and app file are in {keep}. "
        "Look into storms.rq, change it, and run it all again:\n"
        f"[bold]levada run --app {app} --once --overwrite[/bold]"
    )


def _print(console: Console, text: str) -> None:
    console.print(Text.from_markup(text), soft_wrap=True)
