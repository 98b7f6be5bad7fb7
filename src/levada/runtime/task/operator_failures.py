"""Turns failures of the engine's own code on a query into errors that name the operator.

The driver suspends the queries of that operator (``engine.query_isolation``). Errors that Levada
raises on purpose, and those of the system, stay unchanged.
"""

from __future__ import annotations

import traceback
from typing import NoReturn

from levada.errors import EvaluationError, LevadaError, UserFunctionError

MAX_TEXT = 300
"""Characters of a failure's text that are reported."""


def as_failure(error: BaseException, node: int = -1) -> EvaluationError | None:
    """Returns the failure of an operator (-1: unknown); None if the error stays unchanged."""
    panic = type(error).__name__ == "PanicException"  # of Polars: not an ``Exception``
    if isinstance(error, LevadaError | OSError) or not (panic or isinstance(error, Exception)):
        return None
    text = " ".join(str(error).split())
    text = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}.."
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return EvaluationError(message, node=node, place=place_of(error))


def raise_failure(error: BaseException, node: int = -1) -> NoReturn:
    """Raises the failure of an operator in place of an error, or the error itself.

    >>> try:
    ...     [].pop()
    ... except IndexError as error:
    ...     raise_failure(error, 3)
    Traceback (most recent call last):
        ...
    levada.errors.EvaluationError: IndexError: pop from empty list
    """
    failure = as_failure(error, node)
    if isinstance(error, UserFunctionError) and error.node < 0:
        error.node = node
    if failure is None:
        raise error
    raise failure from error


def place_of(error: BaseException) -> str:
    """Returns the line of Levada at which an error was raised; "" if it was raised elsewhere."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        _, levada, path = frame.filename.rpartition("/levada/")
        if levada:
            return f"levada/{path}:{frame.lineno}"
    return ""
