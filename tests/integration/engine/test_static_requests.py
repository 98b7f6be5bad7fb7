"""What requests give static graphs: once, lastingly, until the program itself says another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from levada import Engine
from levada.checkpoint.request_files import (
    Answer,
    Content,
    Ledger,
    Request,
    place,
    place_content,
    read_ledger,
    take_answer,
    write_ledger,
)
from levada.engine.status.request_client import ask, new_id
from support.polling import until

G = "http://e/g"
QUERY = f"SELECT ?o WHERE {{ GRAPH <{G}> {{ ?s ?p ?o }} }}"
OWN, SENT = (
    b'<http://e/a> <http://e/p> "own" .\n',
    b'<http://e/a> <http://e/p> "sent\xe2\x80\xa8" .\n',
)


@contextmanager
def engine(folder: Path) -> Iterator[Engine]:
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False) as made:
        made.static(folder / "g.nt", G, replaceable=True)
        made.register(QUERY, name="q")
        made.start()
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "g.nt").write_bytes(OWN)
    return tmp_path


def give(folder: Path, lines: bytes) -> Answer:
    request = Request(new_id(), content=Content(G))
    return ask(folder / "ck", request, lambda: time.sleep(0.002), lines)


def content(running: Engine) -> bytes:
    statics = running._statics
    return b"".join((statics.folder / name).read_bytes() for name in statics.names(G))


def until_forgotten(folder: Path) -> None:
    until(lambda: not read_ledger(folder / "ck").static_replacements)


def test_what_is_given_lasts_until_the_program_gives_another(folder: Path) -> None:
    with engine(folder) as running:
        assert give(folder, SENT).messages == [f"<{G}>: 1 triple, from the next epoch on"]
        assert content(running) == SENT
    assert not list((folder / "ck" / "requests").iterdir())
    with engine(folder) as running:
        assert content(running) == SENT, "another start changes nothing"
        assert give(folder, b"").messages == [f"<{G}>: 0 triples, from the next epoch on"]
        assert content(running) == b""
    with engine(folder) as running:
        assert content(running) == b""
        running.static(['<http://e/a> <http://e/p> "own"'], G)
        until_forgotten(folder)
    with engine(folder) as running:
        assert content(running) == OWN
        give(folder, SENT)
    (folder / "g.nt").write_bytes(OWN + SENT)
    with engine(folder) as running:
        assert content(running) == OWN + SENT, "who edits the file is newer"
        assert not read_ledger(folder / "ck").static_replacements


def test_what_was_given_before_a_crash_is_only_answered(folder: Path) -> None:
    with engine(folder):
        give(folder, SENT)
    ledger = read_ledger(folder / "ck")
    request = Request(new_id(), content=Content(G))
    write_ledger(
        folder / "ck",
        Ledger(
            static_replacements=ledger.static_replacements, answers={request.id: Answer(["done"])}
        ),
    )
    place_content(folder / "ck", request, b"this is not read any more")
    with engine(folder) as running:
        answer = until(lambda: take_answer(folder / "ck", request.id))
        assert answer.messages == ["done"]
        assert content(running) == SENT
    assert not list((folder / "ck" / "requests").iterdir())


def test_what_is_refused_changes_nothing(folder: Path) -> None:
    with engine(folder) as running:
        assert "not well-formed" in give(folder, b"<http://e/a> <http://e/p> .\n").refusal
        other = Request(new_id(), content=Content("http://e/h"))
        said = ask(folder / "ck", other, lambda: time.sleep(0.002), SENT).refusal
        assert "was not there when the engine started" in said
        lost = Request(new_id(), content=Content(G))
        place(folder / "ck", lost)
        answer = until(lambda: take_answer(folder / "ck", lost.id))
        assert answer.refusal == "The request has lost what it brought."
        assert content(running) == OWN
        assert not read_ledger(folder / "ck").static_replacements
