"""``levada shell``: a session with the streams and queries of the command line, on the terminal or
over standard input.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from rich.console import Console

from levada.cli.app.app_file import App
from levada.cli.shell.session import Session
from levada.cli.shell.shell import Interactive
from levada.cli.shell.terminal import from_lines, from_terminal

_ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
_FIRST = f"<http://e/a> <http://e/p> {_ONE} 1000 .\n<http://e/b> <http://e/p> {_ONE} 2000 .\n"
_QUERY = """PREFIX : <http://e/> SELECT ?s (COUNT(*) AS ?n)
FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?s :p ?v FILTER(?v > 0) } } GROUP BY ?s"""


def shell(app: App, dialect: str | None) -> int:
    """Runs the shell to its end. Returns the exit code: 1 if a statement of a file failed."""
    session = Session(app, dialect)
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not on_terminal:
        console = Console(file=sys.stdout, highlight=False)
        interactive = Interactive(session, console, from_lines(session, sys.stdin))
        interactive.run()
        return int(interactive.failed)
    console = Console(highlight=False)
    console.print("Levada: a query ends with ; or an empty line. \\? tells more, \\q ends.")
    warming = threading.Thread(target=warm, name="levada warm", daemon=True)
    warming.start()
    Interactive(session, console, from_terminal(session)).run()
    warming.join(1)
    return 0


def warm() -> None:
    """Runs a small query while the user types the first one, to load the kernels."""
    from levada.engine.python.query_once import query

    time.sleep(0.2)  # after the prompt
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.nt")
        path.write_text(_FIRST)
        query(_QUERY, {"s": str(path)})
