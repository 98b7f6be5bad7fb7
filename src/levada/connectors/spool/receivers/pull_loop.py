"""Runs HTTP requests with an unending answer: a thread requests, listens to the end, and requests
again, after pauses that double until something arrives.
"""

from __future__ import annotations

import base64
import re
import ssl
import threading
from typing import Protocol

from levada.connectors.config.feed_config import FeedConfig
from levada.connectors.spool.feed_spool import FeedSpool
from levada.connectors.spool.message_log import Message
from levada.core.distribution import install_command
from levada.errors import SourceError

FIRST_RETRY_PAUSE, MAX_RETRY_PAUSE = 0.5, 30.0  # s between two attempts
OPENING, ENDING = 10.0, 2.0  # s
LARGEST = 64 << 20  # bytes of a message
CLOSED = "the connection was closed"
_TOKEN = re.compile(r"[\x21-\x7e]+")


class RefusedError(Exception):
    """The other side refuses the connection, and would again."""


class Connection(Protocol):
    """Listens to one kind of feed."""

    def listen(self) -> None:
        """Listens until the connection ends. Raises ``RefusedError`` and errors of the library."""

    def close(self) -> None:
        """Ends the connection from another thread."""


class Puller:
    """The thread of one feed."""

    def __init__(self, line: FeedSpool, connection: Connection) -> None:
        self._line, self._connection = line, connection
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="levada pull", daemon=True)

    def start(self) -> None:
        """Starts to request."""
        self._thread.start()

    def acknowledge(self, messages: list[Message]) -> None:
        """Does nothing: the next request begins after the last of these messages."""

    def stop(self) -> None:
        """Stops requesting."""
        self._stopped.set()
        self._connection.close()
        self._thread.join(ENDING)

    def _run(self) -> None:
        pause = FIRST_RETRY_PAUSE
        while not self._stopped.is_set():
            why, refused = CLOSED, False
            began = self._line.heard
            try:
                self._connection.listen()
            except RefusedError as error:
                why, refused = str(error), True
            except SourceError as error:  # no password: it may appear later
                why, refused = error.message, True
            except Exception as error:  # any error of the library leads to a retry
                why = str(error) or type(error).__name__
            if self._stopped.is_set():
                return
            if self._line.heard > began:
                pause = FIRST_RETRY_PAUSE
            self._line.down(why, refused=refused)
            self._stopped.wait(pause)
            pause = min(2 * pause, MAX_RETRY_PAUSE)


def authorization(feed: FeedConfig) -> dict[str, str]:
    """Returns the authorization header. Raises ``SourceError``."""
    if not feed.password:
        return {}
    secret = feed.secret
    if feed.user:
        both = base64.b64encode(f"{feed.user}:{secret}".encode()).decode()
        return {"Authorization": f"Basic {both}"}
    if not _TOKEN.fullmatch(secret):  # libraries would print it
        raise SourceError("The password is no token: it has blanks, or characters beyond ASCII.")
    return {"Authorization": f"Bearer {secret}"}


def tls_of(feed: FeedConfig) -> ssl.SSLContext:
    """Returns the TLS settings: trusted certificates, and the client's own. Raises
    ``SourceError``.
    """
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
    """Returns the error of a missing package."""
    return SourceError(
        f"These streams need the package {package}.", hint=f"Say {install_command('pull')}."
    )
