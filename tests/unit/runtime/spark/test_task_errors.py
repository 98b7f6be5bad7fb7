"""Errors of tasks as JSON: kinds, texts and fields arrive; nothing that they quote is run."""

import json
from pathlib import Path
from typing import Any

import pytest

from levada import errors
from levada.errors import EngineError, LevadaError
from levada.runtime.spark import spark_tasks
from levada.runtime.spark.blob_transport import (
    BlobLostError,
    BlobTransport,
    SenderFailedError,
    receive,
)
from levada.runtime.spark.task_errors import decode_error, encode_error
from support.hostile_texts import markers


def every_error() -> list[type[LevadaError]]:
    """All errors of the tree."""
    tree, pending = [], [LevadaError]
    while pending:
        tree.append(pending.pop())
        pending += [
            kind for kind in tree[-1].__subclasses__() if kind.__module__ == "levada.errors"
        ]
    return tree


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_error_of_levada_keeps_kind_message_and_hint(kind: type[LevadaError]) -> None:
    sent = kind("A stream is gone.")
    sent.hint = "Make it."
    error = decode_error(encode_error(sent))
    assert type(error) is (kind if kind not in POSITIONED else errors.QueryError)
    assert (error.message, error.hint) == ("A stream is gone.", "Make it.")


POSITIONED = (errors.QuerySyntaxError, errors.UnknownNameError)
"""Errors of texts, which are raised before there are tasks: they arrive as their base."""


@pytest.mark.parametrize(
    "error",
    [
        errors.ManyReportsError("Too many.", until=5, width=2, end=9),
        errors.OverMemoryError("Too much.", held=10, middle=None, width=3, end=4),
        BlobLostError("A file is gone."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_fields_of_an_error_arrive(error: Any) -> None:
    arrived = decode_error(encode_error(error))
    ours = {k: v for k, v in vars(error).items() if k != "__notes__"}
    assert (type(arrived), {k: v for k, v in vars(arrived).items() if k != "__notes__"}) == (
        type(error),
        ours,
    )


def test_excess_error_keeps_its_operator() -> None:
    error = decode_error(
        encode_error(errors.ExcessError("Too much.", node=3, member=1, limit="made"))
    )
    assert isinstance(error, errors.ExcessError)
    assert (error.node, error.member, error.limit) == (3, 1, "made")


def test_error_of_the_system_keeps_number_and_file() -> None:
    error = decode_error(encode_error(FileNotFoundError(2, "No such file or directory", "/a/b")))
    assert isinstance(error, FileNotFoundError)
    assert (error.errno, error.filename) == (2, "/a/b")


def test_error_of_another_library_is_named() -> None:
    class StrangeError(Exception):
        pass

    error = decode_error(encode_error(StrangeError("odd")))
    assert type(error) is EngineError
    assert str(error) == "A task failed with StrangeError: odd"
    assert str(
        decode_error(encode_error(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")))
    ).startswith("UnicodeDecodeError: ")


def test_traceback_is_a_note() -> None:
    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as raised:
        broken()
    assert "in broken" in decode_error(encode_error(raised.value)).__notes__[-1]


def test_markers_in_a_message_are_text(tmp_path: Path) -> None:
    for marker in markers(tmp_path / "ran"):
        for error in (
            errors.PromiseError(marker, hint=marker),
            OSError(5, marker, marker),
            ValueError(marker),
            RuntimeError(marker),
        ):
            error.add_note(marker)
            arrived = decode_error(encode_error(error))
            assert type(arrived) is type(error)
            shown = errors.escape_controls(marker) if isinstance(error, LevadaError) else marker
            assert shown in str(arrived) or isinstance(error, OSError)
            assert arrived.__notes__[0] == marker
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"kind": "eval", "args": []}',
        b'{"kind": "ExcessError"}',
        b'{"kind": 1}',
        b"\xff",
    ],
)
def test_damaged_document_is_an_engine_error(data: bytes) -> None:
    assert type(decode_error(data)) is EngineError


def test_kind_of_a_document_is_of_the_list() -> None:
    forged = {"kind": "SystemExit", "args": [0], "notes": [], "fields": {}}
    assert type(decode_error(json.dumps(forged).encode())) is EngineError
    inner = {
        "kind": "SourceError",
        "args": ["x"],
        "notes": [],
        "fields": {"__class__": "y", "exit_code": 0},
    }
    assert "exit_code" not in vars(decode_error(json.dumps(inner).encode()))


def fail(context: bytes, *arguments: Any) -> Any:
    raise ValueError(context.decode())


def test_error_of_a_task_reaches_each_partition_and_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark_tasks, "resolve", lambda name: fail)
    intake = spark_tasks.IntakeTask(b"bad", "x:y", BlobTransport(), 3)
    parts = list(intake(5, [b"payload"]))
    assert [target for target, _ in parts] == [0, 1, 2]
    records = [body + tail for _, (body, tail) in parts]
    with pytest.raises(SenderFailedError):
        receive(records[:1])
    stage = spark_tasks.StageTask(b"bad", "x:y", BlobTransport(), 3, 1)
    passed_on = [body + tail for _, (body, tail) in stage(0, records[:1])]
    ((document, mark),) = spark_tasks.LastStageTask(b"bad", "x:y", 2)(1, [b".", *passed_on[1:2]])
    assert mark == spark_tasks.ERROR
    assert repr(decode_error(document)) == "ValueError('bad')"
