"""Encodes errors of tasks as JSON, with which a failed task reports its exception to the driver.

A document names a kind of a closed list and has its texts and numbers. Nothing of it is imported,
evaluated or unpickled. It travels as a record that the task marks as an error
(``runtime.spark.blob_transport``), so text that a message quotes is never read as an error.
"""

from __future__ import annotations

import json
import traceback

from levada import errors
from levada.errors import EngineError, LevadaError
from levada.runtime.spark.blob_transport import BlobLostError

MAX_NOTE = 16_384
"""Characters of a traceback that travel: its end, which has the cause."""

_FIELDS: dict[type[Exception], tuple[str, ...]] = {
    LevadaError: (),
    errors.UsageError: (),
    errors.QueryError: (),
    errors.UnsupportedError: (),
    errors.QueryFailureError: (),
    errors.SourceError: ("stream",),
    errors.MissingError: (),
    errors.FileFault: ("other",),
    errors.AwayError: ("stream",),
    errors.LostError: ("stream",),
    errors.PromiseError: ("stream",),
    errors.SinkError: (),
    errors.TargetAwayError: (),
    errors.RefusedValueError: (),
    errors.TargetTakenError: (),
    errors.UnfitResultError: (),
    errors.CheckpointError: (),
    errors.DamagedError: (),
    errors.OvertakenError: (),
    errors.UnmatchedError: (),
    errors.JavaError: (),
    EngineError: (),
    errors.LostTaskError: (),
    BlobLostError: (),
    errors.ExcessError: ("node", "member", "limit"),
    errors.EvaluationError: ("node", "place"),
    errors.UserFunctionError: ("node", "place"),
    errors.ManyReportsError: ("until", "width", "end"),
    errors.OverMemoryError: ("held", "middle", "width", "end"),
}
"""Errors of Levada that keep their kind, with the fields that travel beside message and hint."""
_BUILTIN = (
    AssertionError,
    LookupError,
    ArithmeticError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
_KINDS: dict[str, type[Exception]] = {kind.__name__: kind for kind in (*_FIELDS, *_BUILTIN)}


def encode_error(error: Exception) -> bytes:
    """Encodes an error: the nearest listed kind, texts, fields and the traceback as a note.

    >>> decode_error(encode_error(errors.SourceError("No file.", hint="Make it.")))
    SourceError('No file.')
    """
    kind = next((k for k in type(error).__mro__ if _KINDS.get(k.__name__) is k), EngineError)
    trace = "".join(traceback.format_exception(error)).rstrip()
    notes = [*getattr(error, "__notes__", ()), trace[-MAX_NOTE:]]
    document: dict[str, object] = {"kind": kind.__name__, "notes": notes}
    if isinstance(error, LevadaError):
        fields = {name: getattr(error, name) for name in _FIELDS[kind]}
        document |= {"args": [error.message], "fields": {"hint": error.hint, **fields}}
    elif isinstance(error, OSError):
        document["args"] = [error.errno, error.strerror or str(error), error.filename]
    else:
        text = str(error) if kind is type(error) else f"{type(error).__name__}: {error}"
        document["args"] = [f"A task failed with {text}" if kind is EngineError else text]
    return json.dumps(document, default=str).encode("ascii")


def decode_error(data: bytes) -> Exception:
    """Decodes the error of a document; returns an ``EngineError`` if it is not one."""
    try:
        document = json.loads(data)
        kind = _KINDS[document["kind"]]
        error = kind(*document["args"])
        for name, value in document.get("fields", {}).items():
            if name in ("hint", *_FIELDS.get(kind, ())):
                setattr(error, name, value)
        for note in document["notes"]:
            error.add_note(note)
    except (ValueError, LookupError, TypeError, AttributeError) as fault:
        return EngineError(f"A task failed, and its error cannot be read: {fault}.")
    return error
