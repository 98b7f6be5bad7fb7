"""``levada shell``: a session with the streams and queries of the command line, on the terminal or
over standard input.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from rich.console import Console

from levada.cli.app.app_file import App
from levada.cli.shell.complete import candidates
from levada.cli.shell.session import Session
from levada.cli.shell.shell import COMMANDS, Interactive
from levada.cli.shell.statements import is_whole

# The input of the shell: a terminal, edited with prompt_toolkit and with a history, or lines of a
# file or pipe.
#
# The history is ``levada/history`` in ``XDG_STATE_HOME``, by default ``~/.local/state``. If it
# cannot be written, the history ends with the shell.


PROMPT, MORE = "levada> ", "   ...> "


class Words(Completer):
    """The completions of a session, for prompt_toolkit."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """Yields the completions of the word before the cursor."""
        here, words = candidates(document.text_before_cursor, self._session, COMMANDS)
        for word in words:
            yield Completion(word, start_position=-len(here))


def from_terminal(session: Session) -> Callable[[], str]:
    """Returns a reader of statements from the terminal, which raises ``KeyboardInterrupt`` for
    Ctrl-C and ``EOFError`` for Ctrl-D.
    """
    typed: PromptSession[str] = PromptSession(
        history=_history(),
        completer=Words(session),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(session),
        prompt_continuation=lambda width, line, wraps: MORE,
    )
    return lambda: typed.prompt(PROMPT)


def _keys(session: Session) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text, session.dialect):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _history() -> History:
    path = history_file(os.environ.get("XDG_STATE_HOME", ""), Path.home())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def history_file(state: str, home: Path) -> Path:
    """Returns the path of the history.

    >>> history_file("", Path("/home/ann")).as_posix()
    '/home/ann/.local/state/levada/history'
    """
    return (Path(state) if state else home / ".local" / "state") / "levada" / "history"


def from_lines(session: Session, lines: TextIO) -> Callable[[], str]:
    """Returns a reader of statements from a text, which raises ``EOFError`` at its end."""
    statements = statements_of(session, lines)

    def read() -> str:
        for text in statements:
            return text
        raise EOFError

    return read


def statements_of(session: Session, lines: Iterable[str]) -> Iterator[str]:
    """Yields the statements of these lines; the last one needs no end."""
    text = ""
    for line in lines:
        text += line
        if not text.strip():
            text = ""
        elif is_whole(text.removesuffix("\n"), session.dialect) or not line.strip():
            yield text
            text = ""
    if text.strip():
        yield text


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
