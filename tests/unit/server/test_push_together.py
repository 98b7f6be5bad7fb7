"""Bodies that wait together: each is judged as if it were alone, the good ones are durable."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from levada.connectors.config.input_formats import PUSH
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.push_spool import PushLog
from levada.core.event_time import MIN
from levada.server.problem_json import Problem
from levada.server.push.push_validation import rows_of, rows_of_each, whole_lines
from levada.server.push.push_writer import Body, Pusher

QUADS = (
    b'<a:s> <a:p> "x" %d .',
    b'<a:s> <a:p> "\\u00e9"@en <a:g> %d .',
    b"_:b <a:p> 5 %d .",
    b'<a:s> <a:p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> %d .',
    b"# a comment %d",
    b"  \t",
    b"",
)
NO_QUADS = (b'<a:s> <a:p> "x" ', b"<a:s> <a p> <a:o> 5 .", b"<a:s> <a:p> <a:o> .", b"\xff", b"_:")
TUPLES = (b'{"ts": %d, "k": 1}', b'{"k": 2, "ts": "%d"}', b"", b"  ")
NO_DOT = "No dot stands at the end of the line."
NO_TUPLES = (b'{"ts": 1, "k": "one"}', b"[1]", b'{"k":', b'{"ts": 1}{"ts": 2}', b"\xff")


def config(form: str) -> StreamConfig:
    schema = {"schema": "k:integer"} if form == "ndjson" else {}
    return StreamConfig.from_options("s", PUSH, format=form, **schema)


def bodies(seed: int, good: tuple[bytes, ...], bad: tuple[bytes, ...]) -> list[bytes]:
    """Some bodies of some lines, of which a few are none."""
    draw = random.Random(seed)

    def line() -> bytes:
        if draw.random() < 0.1:
            return draw.choice(bad)
        found = draw.choice(good)
        return found % draw.randrange(10**6) if b"%d" in found else found

    def body() -> bytes:
        end = draw.choice((b"\n", b"\r\n"))
        return end.join(line() for _ in range(draw.randrange(4))) + draw.choice((b"", end))

    return [body() for _ in range(draw.randrange(1, 20))]


def alone(of: StreamConfig, text: bytes) -> int | bytes:
    try:
        return rows_of(of, text)
    except Problem as problem:
        return problem.body()


@pytest.mark.parametrize(
    ("form", "good", "bad", "cases"),
    [("nq", QUADS, NO_QUADS, 60), ("ndjson", TUPLES, NO_TUPLES, 5)],
)
def test_together_is_as_alone(
    form: str, good: tuple[bytes, ...], bad: tuple[bytes, ...], cases: int, random_seed: int
) -> None:
    of = config(form)
    seen = set()
    for seed in range(random_seed, random_seed + cases):
        texts = [whole_lines(of, body) for body in bodies(seed, good, bad)]
        found = [each.body() if isinstance(each, Problem) else each
                 for each in rows_of_each(of, texts)]  # fmt: skip
        assert found == [alone(of, text) for text in texts], seed
        seen |= set(map(type, found))
    assert seen == {int, bytes}, "both are drawn"


def pushed(folder: Path, *asked: tuple[bytes, str]) -> list[int | str | None]:
    """What bodies with keys that come at once are told."""
    of = config("nq")

    async def push() -> list[int | BaseException | None]:
        pusher = Pusher(PushLog(folder / "data", "nq"))
        adding = (pusher.add(Body(of, whole_lines(of, data), key, MIN)) for data, key in asked)
        return await asyncio.gather(*adding, return_exceptions=True)

    (folder / "data").mkdir(exist_ok=True)
    return [str(each) if isinstance(each, Exception) else each for each in asyncio.run(push())]  # type: ignore[misc]


def good(n: int) -> bytes:
    return b'<a:s> <a:p> "%d" %d .\n' % (n, n)


def files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "data").iterdir())]


def test_a_mistake_is_its_bodys_alone(tmp_path: Path) -> None:
    told = pushed(tmp_path, (good(1), ""), (good(2) + b"<a:s>\n", ""), (b"# 3", ""), (good(4), ""))
    assert told == [1, NO_DOT, 0, 1]
    assert files(tmp_path) == [good(1) + good(4)], "one file, in the order in which they came"


def test_where_all_have_mistakes_nothing_is_written(tmp_path: Path) -> None:
    assert pushed(tmp_path, (b"x", "one"), (b"y", "two")) == [NO_DOT] * 2
    assert files(tmp_path) == []
    assert pushed(tmp_path, (good(1), "one")) == [1], "its key was not taken"


def test_a_key_that_is_on_its_way_is_waited_for(tmp_path: Path) -> None:
    assert pushed(tmp_path, *[(good(1), "one")] * 3, (good(2), "two")) == [1, None, None, 1]
    assert pushed(tmp_path, (b"x", "new"), *[(good(3), "new")] * 2) == [NO_DOT, 1, None]
    assert files(tmp_path) == [good(1) + good(2), good(3)]


def test_a_key_on_its_way_is_one_bodys(tmp_path: Path) -> None:
    of = config("nq")
    (tmp_path / "data").mkdir()

    async def push() -> list[object]:
        pusher = Pusher(PushLog(tmp_path / "data", "nq"))
        bodies = [Body(of, good(n), "one", MIN, sent=str(n)) for n in (1, 2, 1)]
        return await asyncio.gather(*map(pusher.add, bodies), return_exceptions=True)

    first, other, again = asyncio.run(push())
    assert (first, again) == (1, None)
    assert isinstance(other, Problem) and other.status == 422
    assert files(tmp_path) == [good(1)]


def test_a_document_of_its_own_is_a_file(tmp_path: Path) -> None:
    blank = b"_:b <a:p> <a:o> 7 .\n"
    assert pushed(tmp_path, (good(1), ""), (blank, ""), (blank, ""), (good(2), "")) == [1] * 4
    assert files(tmp_path) == [good(1), blank, blank, good(2)]
