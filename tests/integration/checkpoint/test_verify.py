"""``levada verify`` reads every file of a checkpoint that is named, or waited for: a bit of any of
them is told, and nothing of a sound one.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from levada.checkpoint import reader_leases, request_files
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.file_inventory import names_of
from levada.checkpoint.manifest import read_manifest
from levada.checkpoint.request_files import Answer, Content, Request
from levada.checkpoint.verify import verify
from levada.connectors.spool.push_spool import PushLog
from levada.connectors.spool.spool_folder import spool_folder
from levada.engine.engine import Engine
from support.generators import Clause
from support.query_dsl import S, query, register

QUERY = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="q", windows={"w": (S, Clause("range", 1000))}
)
LINES = "".join(f'<http://e/a{i}> <http://e/p> "{i}" {300 * i} .\n' for i in range(40)).encode()
FREE = {"lock", "push"}  # nothing is in them


def push(root: Path, number: int) -> None:
    folder = spool_folder(root / "ck", S) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    PushLog(folder, "nq").append(LINES, {f"key {number}": "digest"}, 12_000 * number)


def run(root: Path) -> None:
    with Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=11, partitions=1, keep="1h",
        keep_results=False,
    ) as engine:  # fmt: skip
        engine.stream(S, "push:", format="nq")
        register(engine, [QUERY])
        engine.start(once=True, keep_open=True)
        engine.await_end()


@pytest.fixture
def ck(tmp_path: Path) -> Path:
    """A checkpoint with what waits in it: rows, keys, requests, an answer, a reader."""
    root = tmp_path / "ck"
    run(tmp_path)
    push(tmp_path, 1)
    run(tmp_path)
    push(tmp_path, 2)
    wanted = Request("1", content=Content(None))
    request_files.place_content(root, wanted, b"<http://e/a> <http://e/b> <http://e/c> .\n")
    request_files.put_answer(root, "0", Answer(["done"]))
    reader_leases.ReaderLease(root, "reader", lambda: 0.0).require_epoch(1)
    return root


def files(ck: Path) -> list[Path]:
    return sorted(p for p in ck.rglob("*") if p.is_file() and p.name not in FREE)


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def names(ck: Path) -> list[str]:
    return [found.item.name for found in verify(ck).damaged]


def test_a_sound_checkpoint_has_no_damage(ck: Path) -> None:
    report = verify(ck)
    assert report.damaged == []
    kinds = {found.item.kind for found in report.files}
    assert kinds >= {"index", "spool", "keys", "request", "reader", "results", "engine"}


def test_a_bit_of_each_file_is_told(ck: Path, random_seed: int) -> None:
    drawn, last = random.Random(random_seed), newest_manifest(ck)
    assert last is not None
    before = read_manifest(ck / "manifests" / str(last.epoch - 1))
    named = names_of(ck, last).files | names_of(ck, before).files
    checked = {found.item.name for found in verify(ck).files}
    for path in files(ck):
        name = f"{path.relative_to(ck)}"
        if path.parent.name == "state" and name not in named:
            continue  # the next epoch deletes it
        assert name in checked, name
        bit = drawn.randrange(8 * path.stat().st_size)
        if path.parent.name in ("state", "results"):
            bit = 8 * 60 + bit % 64  # in the head: the rest of it fills up
        flip(path, bit)
        try:
            told = names(ck)
        except Exception as error:  # levada.json
            told = [name] * (path.name in str(error))
        # the last line of the index may be what a crash has left
        assert name in told or (name == "published.log" and bit > 8 * ends_before(path)), (
            name,
            bit,
        )
        flip(path, bit)
    assert names(ck) == []


def ends_before(index: Path) -> int:
    """Where the last line of the index begins."""
    return index.read_bytes().rindex(b"\n", 0, -1)


def test_files_that_are_missing_are_told(ck: Path) -> None:
    index, kept = ck / "published.log", min((ck / "results").iterdir())
    for path in (index, kept):
        data = path.read_bytes()
        path.unlink()
        assert f"{path.relative_to(ck)}" in names(ck)
        path.write_bytes(data)


def test_a_file_that_was_given_up_is_not_looked_at(ck: Path) -> None:
    path = max((ck / "spool").glob("*/data/*"))
    flip(path, 0)
    path.rename(f"{path}.part")
    assert names(ck) == []


def test_what_a_request_brings_is_refused_if_it_is_damaged(tmp_path: Path) -> None:
    root = tmp_path / "ck"
    with Engine(spark=False, checkpoint=root, partitions=1, keep_results=False) as engine:
        engine.stream(S, "push:", format="nq")
        engine.static(["<http://e/a> <http://e/b> <http://e/d> ."], replaceable=True)
        register(engine, [QUERY])
        engine.start(once=True, keep_open=True)
        engine.await_end()
    with Engine(spark=False, checkpoint=root, partitions=1, keep_results=False) as engine:
        engine.stream(S, "push:", format="nq")
        engine.static(["<http://e/a> <http://e/b> <http://e/d> ."], replaceable=True)
        register(engine, [QUERY])
        wanted = Request("1", content=Content(None))
        request_files.place_content(root, wanted, b"<http://e/a> <http://e/b> <http://e/c> .\n")
        flip(request_files.content_path(root, "1"), 100)
        engine.start(once=True, keep_open=True)
        engine.await_end()
        answer = request_files.take_answer(root, "1")
    assert answer is not None
    assert "1.nt cannot be read: it is cut short or altered" in answer.refusal
