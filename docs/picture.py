"""Draws docs/results.svg from a run of the demo: python docs/picture.py."""

import io
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from levada.cli.app.app_file import STDOUT, load_app
from levada.cli.app.run_app import run_app
from levada.cli.demo.board import Board
from levada.cli.demo.nycflights import data_folder, read_tables
from levada.cli.demo.write_demo import APP, fill

WIDTH = 92
CELL = 12.2  # how wide Rich draws a character


def main() -> None:
    """Runs the demo's queries over the year and draws its board and its summary as they are at the
    end.
    """
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as name:
        written = fill(Path(name), read_tables(data_folder()))
        app = load_app(Path(name) / APP)
        app = replace(app, options=replace(app.options, out=STDOUT))
        board = Board(written.elements, written.until)

        def tell(progress):
            board.progress = progress

        summary = run_app(
            app, once=True, keep_open=False, overwrite=False, progress=tell, on_results=board
        )
    console.print(board)
    console.print(summary)
    Path(__file__).with_name("results.svg").write_text(drawn(console))


def drawn(console):
    """The console as SVG, with fonts that are there, and leading blanks as distance: some renderers
    drop them.
    """
    svg = console.export_svg(title="levada demo", theme=MONOKAI, unique_id="demo")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace(
        "Fira Code", "DejaVu Sans Mono"
    )
    return re.sub(
        r' x="([\d.]+)"( [^>]*?)textLength="([\d.]+)"([^>]*)>((?:&#160;)+)(?=[^<&])', _moved, svg
    )


def _moved(match):
    x, between, length, after, blanks = match.groups()
    gap = blanks.count(";") * CELL
    return f' x="{float(x) + gap:.1f}"{between}textLength="{float(length) - gap:.1f}"{after}>'


if __name__ == "__main__":
    main()
