"""Errors for people: one message on standard error, an exit code, and no stack trace unless
``--debug`` asks for it.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress
from typing import TextIO

from levada.errors import LevadaError, shorten

FAILURE = 1


def message_of(error: BaseException) -> str:
    """The message of an error; the query that it is about stands before it.

    >>> from levada.errors import UsageError
    >>> message_of(UsageError("No."))
    'No.'
    """
    # a note of several lines is a task's trace
    notes = "".join(f"{note}: " for note in getattr(error, "__notes__", ()) if "\n" not in note)
    if isinstance(error, LevadaError):
        return notes + str(error)
    kind = type(error).__name__
    return (
        f"{notes}Levada failed with {kind}: {shorten(str(error))}. "
        "This is a fault of Levada; --debug shows where."
    )


def report(error: BaseException, *, debug: bool, to: TextIO | None = None) -> int:
    """Prints an error and returns the exit code that it stands for."""
    with suppress(OSError):
        if debug:
            traceback.print_exception(error, file=to or sys.stderr)
        else:
            _say(message_of(error), to or sys.stderr)
    return error.exit_code if isinstance(error, LevadaError) else FAILURE


def warn(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    """A warning is a sentence on standard error; where it came up says nothing to a user. One that
    cannot be written (a log on a full disk) ends no run.
    """
    with suppress(OSError):
        _say(str(message), sys.stderr)


def _say(sentence: str, to: TextIO | None) -> None:
    """A line; without standard error (``2>&-``) nowhere, since ``print`` would take the other."""
    if to is not None:
        print(f"levada: {sentence}", file=to)
