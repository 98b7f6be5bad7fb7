"""``levada demo``: a year of real flights and weather as RDF streams, three queries, and a board of
their results.

The command finds the data and writes them as N-Triples into a folder. It runs the app file of that
folder to the end of the streams. The board is the sink. A summary follows. All output goes to
standard error.
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
from levada.core.durable_files import sink_error
from levada.core.frozen import frozen
from levada.engine.status.summary import Progress, Summary


@frozen
class Wish:
    """The options of the demo: a folder to ``keep`` (None: a temporary one) and Spark's ``master``
    (None: the embedded engine).
    """

    keep: Path | None = None
    master: str | None = None


def demo(wish: Wish, console: Console | None = None) -> Summary:
    """Runs the demo to its end and returns its summary. Raises ``UsageError`` if the data are not
    installed or the folder ``keep`` is not empty.
    """
    tables_at = data_folder()
    # imported here: it takes a second, and a usage error is reported before
    from levada.cli.app.run_app import run_app

    return demo_with(run_app, wish, tables_at, console or Console(stderr=True))


def demo_with(run_app: RunApp, wish: Wish, tables_at: Path, console: Console) -> Summary:
    """Runs the demo with this engine and the tables of this folder, and returns its summary."""
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
    """Writes all data into the folder. A failure leaves nothing behind."""
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
    """Yields the folder to fill: the user's, or a temporary one that is deleted at the end."""
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
    """Runs the app to its end, with results on the board only."""
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
    """Returns a hint how to continue after the demo."""
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
