"""What is asked for over HTTP and then goes on: a thread that asks, listens to the end, and asks
again, after pauses that double until something has come.
"""

from __future__ import annotations

import base64
import re
import ssl
import threading
from typing import Protocol

from levada.connectors.config.feed_config import FeedConfig
from levada.connectors.spool.feed_spool import Line
from levada.connectors.spool.message_log import Message
from levada.errors import SourceError

FIRST, MOST = 0.5, 30.0  # s between two tries
OPENING, ENDING = 10.0, 2.0  # s
LARGEST = 64 << 20  # bytes of a message
CLOSED = "the connection was closed"
_TOKEN = re.compile(r"[\x21-\x7e]+")


class RefusedError(Exception):
    """The other side will not have us, as things are."""


class Connection(Protocol):
    """How one kind is listened to."""

    def listen(self) -> None:
        """Until the connection ends. Raises ``RefusedError`` and what the library raises."""

    def close(self) -> None:
        """Ends the connection from another thread."""


class Puller:
    """The thread of one feed."""

    def __init__(self, line: Line, connection: Connection) -> None:
        self._line, self._connection = line, connection
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="levada pull", daemon=True)

    def start(self) -> None:
        """Asks from now on."""
        self._thread.start()

    def acknowledge(self, messages: list[Message]) -> None:
        """Nobody is told: what is asked for next is behind the last of them."""

    def stop(self) -> None:
        """Asks no more."""
        self._stopped.set()
        self._connection.close()
        self._thread.join(ENDING)

    def _run(self) -> None:
        pause = FIRST
        while not self._stopped.is_set():
            why, refused = CLOSED, False
            began = self._line.heard
            try:
                self._connection.listen()
            except RefusedError as error:
                why, refused = str(error), True
            except SourceError as error:  # no password: it may be there later
                why, refused = error.message, True
            except Exception as error:  # whatever the library raises: it is asked for again
                why = str(error) or type(error).__name__
            if self._stopped.is_set():
                return
            if self._line.heard > began:
                pause = FIRST
            self._line.down(why, refused=refused)
            self._stopped.wait(pause)
            pause = min(2 * pause, MOST)


def authorization(feed: FeedConfig) -> dict[str, str]:
    """The header that says who one is. Raises ``SourceError``."""
    if not feed.password:
        return {}
    secret = feed.secret
    if feed.user:
        both = base64.b64encode(f"{feed.user}:{secret}".encode()).decode()
        return {"Authorization": f"Basic {both}"}
    if not _TOKEN.fullmatch(secret):  # libraries would say it
        raise SourceError("The password is no token: it has blanks, or characters beyond ASCII.")
    return {"Authorization": f"Bearer {secret}"}


def tls_of(feed: FeedConfig) -> ssl.SSLContext:
    """Whom one trusts, and who one is. Raises ``SourceError``."""
    try:
        context = ssl.create_default_context(cafile=feed.ca or None)
        if feed.cert:
            context.load_cert_chain(feed.cert, feed.key)
    except OSError as error:
        raise SourceError(
            f"The files for TLS cannot be used: {error.strerror or error}."
        ) from error
    return context


def missing(package: str) -> SourceError:
    """That a package is not there."""
    return SourceError(
        f"These streams need the package {package}.", hint="Say pip install 'levada[pull]'."
    )
