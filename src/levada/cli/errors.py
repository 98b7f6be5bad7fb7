"""Errors and warnings for people: one message on standard error and an exit code. ``--debug`` adds
the stack trace.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress
from typing import TextIO

from levada.errors import LevadaError, shorten

FAILURE = 1


def message_of(error: BaseException) -> str:
    """Returns the message of an error, preceded by the name of the query that caused it.

    >>> from levada.errors import UsageError
    >>> message_of(UsageError("No."))
    'No.'
    """
    # a note of several lines is the stack trace of a task
    notes = "".join(f"{note}: " for note in getattr(error, "__notes__", ()) if "\n" not in note)
    if isinstance(error, LevadaError):
        return notes + str(error)
    kind = type(error).__name__
    return (
        f"{notes}Levada failed with {kind}: {shorten(str(error))}. "
        "This is a fault of Levada; --debug shows where."
    )


def report(error: BaseException, *, debug: bool, to: TextIO | None = None) -> int:
    """Prints an error and returns its exit code."""
    with suppress(OSError):
        if debug:
            traceback.print_exception(error, file=to or sys.stderr)
        else:
            _say(message_of(error), to or sys.stderr)
    return error.exit_code if isinstance(error, LevadaError) else FAILURE


def warn(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    """Prints a warning as a sentence on standard error, without its place in the code. A warning
    that cannot be written (a full disk) is dropped, so that the run continues.
    """
    with suppress(OSError):
        _say(str(message), sys.stderr)


def _say(sentence: str, to: TextIO | None) -> None:
    """Prints a line. Without standard error (``2>&-``) it prints nothing, since ``print`` would use
    standard output.
    """
    if to is not None:
        print(f"levada: {sentence}", file=to)
