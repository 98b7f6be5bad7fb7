"""The client for the objects of a checkpoint on an object store, which turns each refusal into a
sentence.

    create    only if it is absent (a conditional put): commits
    put       under a drawn name: what commits name
    get       all of it, or a part
    names     of a folder, in order
    delete    many at once

A request without a complete answer, or with one that says "later", is repeated for a minute: all
requests are safe to repeat. obstore repeats some of these only.

obstore finds endpoint, region and credentials in the environment (``AWS_*``, a web identity, the
instance's role). Levada never reads them. A message contains only the code of the store's answer:
the text of an answer may repeat a key.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from levada.checkpoint.object_store.store_url import Address
from levada.core.distribution import install_command
from levada.core.pending_requests import mark_pending
from levada.errors import CheckpointError, DamagedError, UsageError

T = TypeVar("T")
_NO_BUCKET = "NoSuchBucket"
PATIENCE = 60  # s for which a request is tried again
FIRST_PATIENCE = 5  # s, as long as no request has had an answer: an address may be wrong
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # s
_LATER = {408, 409, 425, 429}
"""Statuses below 500 after which a request is repeated."""
_LATER_CODES = {
    "ConditionalRequestConflict", "InternalError", "OperationAborted", "RequestTimeout",
    "ServiceUnavailable", "SlowDown", "Throttling",
}  # fmt: skip
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_STATUS = re.compile(r"status code: (\d{3}|\d{3} [A-Za-z ]{1,40})|with status (\d{3})")


class AbsentError(DamagedError):
    """An object that does not exist."""


class Objects:
    """The objects below an address. Raises ``UsageError`` if obstore is not installed."""

    def __init__(self, address: Address) -> None:
        try:
            import obstore
            import obstore.store
        except ModuleNotFoundError as error:
            raise UsageError(
                f"The checkpoint {address} needs obstore, which is not installed.",
                hint=install_command("s3"),
            ) from error
        self.address = address
        plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
        self._do: Any = obstore
        self._errors: Any = obstore.exceptions
        self._failed = (obstore.exceptions.BaseError, OSError)
        self._final = (
            obstore.exceptions.NotFoundError,
            obstore.exceptions.NotSupportedError,
            obstore.exceptions.PermissionDeniedError,
            obstore.exceptions.UnauthenticatedError,
            FileNotFoundError,
            PermissionError,
        )
        self._answered = False
        try:
            self._store: Any = obstore.store.S3Store(
                address.bucket,
                prefix=address.prefix,
                client_options={"allow_http": plain},
                retry_config={"max_retries": 6, "retry_timeout": timedelta(seconds=PATIENCE)},
            )
        except self._failed as error:
            raise self._refusal(error, "opened") from None

    def create(self, name: str, data: bytes) -> bool:
        """Creates an object. Returns False if it exists. A repeated request may find the object
        that it has created itself, so check who owns it.
        """

        def put_new() -> bool:
            try:
                self._do.put(self._store, name, data, mode="create", use_multipart=False)
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
                self._check_exists(name)
                return False
            return True

        return self._call_until_answer(put_new, "written")

    def _check_exists(self, name: str) -> None:
        """Raises ``OSError`` if an object that allegedly exists does not: two requests for it
        collided (409), which obstore reports like one that comes too late (412).
        """
        try:
            self._do.head(self._store, name)
        except (self._errors.NotFoundError, FileNotFoundError):
            raise OSError("ConditionalRequestConflict") from None

    def put(self, name: str, data: bytes | Path) -> None:
        """Writes an object."""
        self._call_until_answer(lambda: self._do.put(self._store, name, data), "written")

    def get(self, name: str) -> bytes:
        """Reads a whole object. Raises ``AbsentError``."""
        content = self._call_until_answer(
            lambda: self._do.get(self._store, name).bytes(), "read", name
        )
        return bytes(content)

    def part(self, name: str, start: int, end: int) -> bytes:
        """Reads bytes of an object. Raises ``AbsentError``, and ``DamagedError`` if the object ends
        before them.
        """
        call = partial(self._do.get_range, self._store, name, start=start, end=end)
        return bytes(self._call_until_answer(call, "read", name))

    def names(self, folder: str, after: str = "") -> list[str]:
        """Returns the names of the objects in a folder, in order, after a given one."""

        def list_names() -> list[str]:
            chunks = self._do.list(self._store, folder, offset=after or None, chunk_size=1000)
            return sorted(meta["path"] for chunk in chunks for meta in chunk)

        return self._call_until_answer(list_names, "listed")

    def delete(self, names: Sequence[str]) -> None:
        """Deletes objects, whether they exist or not."""
        if names:
            self._call_until_answer(lambda: self._do.delete(self._store, list(names)), "cleared")

    def probe(self) -> None:
        """Raises ``CheckpointError`` for a store that creates objects which exist already: on it
        two drivers could commit the same epoch. Costs three small requests.
        """
        name = f"probe/{secrets.token_hex(8)}"
        # a create that is sent again finds what it has made itself
        first = self.create(name, b"1") or self.get(name) == b"1"
        if not first or self.create(name, b"2"):
            self.delete([name])
            raise self._unconditional()
        self.delete([name])

    def _unconditional(self) -> CheckpointError:
        return CheckpointError(
            f"The object store of {self.address} knows no conditional put (If-None-Match): on it "
            "two engines could commit the same epoch.",
            hint="Take one that does, such as S3, or a folder.",
        )

    def _call_until_answer(self, call: Callable[[], T], what: str, name: str = "") -> T:
        """Calls until there is an answer: for a minute, or for seconds if there was none yet."""
        patience = PATIENCE if self._answered else FIRST_PATIENCE
        end = time.monotonic() + patience
        with mark_pending(f"The object store of {self.address}"):
            return self._retry(call, what, name, end)

    def _retry(self, call: Callable[[], T], what: str, name: str, end: float) -> T:
        pause = FIRST_PAUSE
        while True:
            try:
                answer = call()
            except self._failed as error:  # nor its text in a traceback
                last = isinstance(error, self._final) or not _asks_again(str(error))
                if last or time.monotonic() + pause > end:
                    raise self._refusal(error, what, name) from None
            else:
                self._answered = True
                return answer
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _absent(self, error: BaseException, what: str, name: str) -> CheckpointError:
        if not name or _NO_BUCKET in str(error):
            return CheckpointError(
                f"The checkpoint {self.address} cannot be {what}: there is no bucket "
                f"{self.address.bucket}.",
                hint="Make it, or name another; Levada makes no buckets.",
            )
        return AbsentError(f"The checkpoint {self.address} lacks the object {name}.")

    def _refusal(self, error: BaseException, what: str, name: str = "") -> CheckpointError:
        """Returns the error of a failed request. It contains only the code of the answer."""
        errors = self._errors
        absent = isinstance(error, errors.NotFoundError | FileNotFoundError)
        if absent or _NO_BUCKET in str(error):
            return self._absent(error, what, name)
        if isinstance(error, errors.NotSupportedError) or "NotImplemented" in str(error):
            return self._unconditional()
        if name and "range" in str(error).lower():
            return DamagedError(f"The object {name} of the checkpoint {self.address} is cut short.")
        denied = errors.PermissionDeniedError | errors.UnauthenticatedError | PermissionError
        if isinstance(error, denied):
            return CheckpointError(
                f"The checkpoint {self.address} cannot be {what}: these credentials may not.",
                hint="Levada lists, reads, writes and deletes objects below the prefix.",
            )
        return CheckpointError(
            f"The checkpoint {self.address} cannot be {what}: {_reason(str(error))}.",
            hint="Start again when it answers: a run goes on after its last epoch, if it has had "
            "any.",
        )


def _asks_again(text: str) -> bool:
    """Whether a failed request may succeed later.

    >>> [_asks_again(t) for t in ("connection reset", "with status 503", "with status 400")]
    [True, True, False]
    """
    if match := _CODE.search(text):
        return match[1] in _LATER_CODES
    if match := _STATUS.search(text):
        status = int((match[1] or match[2])[:3])
        return status >= 500 or status in _LATER
    return True


def _reason(text: str) -> str:
    if match := _CODE.search(text):
        return f"the object store says {match[1]}"
    if match := _STATUS.search(text):
        return f"the object store answers with status {match[1] or match[2]}"
    return "the object store does not answer"
