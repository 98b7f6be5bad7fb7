"""Reads passwords by reference: ``env:NAME`` or ``file:PATH``. A password is looked up when a
connection is made, so no configuration, checkpoint, status or dead letter can contain one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from levada.errors import SourceError, UsageError

_KINDS = ("env", "file")


def password_place(value: Any) -> str:
    """Returns the reference to a password; a file by its whole path. Raises ``UsageError`` without
    the given value in it.

    >>> password_place("env:KAFKA_PASSWORD")
    'env:KAFKA_PASSWORD'
    """
    kind, colon, place = str(value).partition(":")
    if kind not in _KINDS or not colon or not place:
        raise UsageError(
            "a password does not stand here, where others would read it.",
            hint="Say password=env:VARIABLE or password=file:PATH.",
        )
    return str(value) if kind == "env" else f"file:{os.path.abspath(os.path.expanduser(place))}"


def password_at(place: str) -> str:
    """Returns the password, looked up now. Raises ``SourceError`` without the password in it."""
    kind, _, name = place.partition(":")
    if kind == "env":
        if name not in os.environ:
            raise SourceError(f"The environment has no variable {name} with the password.")
        return os.environ[name]
    try:
        return Path(name).expanduser().read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"The file {name} with the password cannot be read: {type(error).__name__}."
        ) from None


def without_secrets(url: str) -> str:
    """Returns an address as messages show it, without its user and its query, which may be secret.

    >>> without_secrets("ws://anna:word@host/path?token=word")
    'ws://...@host/path?...'
    """
    return re.sub(r"(//[^?]*\?).*", r"\1...", re.sub(r"//[^/]*@", "//...@", url))
