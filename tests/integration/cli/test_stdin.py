"""Standard input as a stream: each format by lines, as it comes, and the same again after a
crash.
"""

import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from levada.cli.main import main
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.stdin_spool import StdinSpool
from support.polling import until

COUNT = """PREFIX : <http://e/>
SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :rooms [RANGE PT2S STEP PT2S]
WHERE { WINDOW :w { ?r :t ?t } }"""
RUN = [sys.executable, "-m", "levada", "run", "--master", "none", "--no-progress"]


def line(time: int) -> str:
    return f'<http://e/r{time}> <http://e/t> "1" {time} .\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("count.rq").write_text(COUNT)
    Path("sum.cql").write_text("Rstream(Select Sum(v) As s From trips [Range 2 s Slide 2 s])")
    return tmp_path


@pytest.mark.parametrize(
    ("query", "stream", "text", "expected"),
    [
        ("count.rq", "rooms=-", "".join(map(line, (500, 1000, 2500))), ["2000,2", "4000,1"]),
        pytest.param("count.rq", "rooms=-", line(500) + line(600).rstrip(), ["2000,2"],
                     marks=pytest.mark.long),
        ("sum.cql", "trips=-,format=csv,schema=v:integer;w:string",
         'ts,v,w\n100,1,"two\nlines"\n200,2,b\n', ["2000,3"]),
        pytest.param("sum.cql", "trips=-,format=ndjson,schema=v:integer",
                     '{"ts": 1, "v": 5}\n', ["2000,5"], marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_what_comes_is_the_stream(
    folder: Path, query: str, stream: str, text: str, expected: list[str]
) -> None:
    done = subprocess.run(
        [*RUN, query, "--stream", stream, "--once", "--format", "csv"],
        input=text, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == expected


@pytest.mark.long
def test_it_goes_on_as_it_comes_and_nothing_is_lost_or_twice_after_a_kill(folder: Path) -> None:
    arguments = [*RUN, "count.rq", "--stream", "rooms=-", "--checkpoint", "ck", "--out", "r"]
    options = ["--format", "csv", "--epoch", "0"]
    first: Any = subprocess.Popen([*arguments, *options], stdin=subprocess.PIPE)
    for time_ in (500, 1000, 2500, 4500, 4600):
        first.stdin.write(line(time_).encode())
        first.stdin.flush()
        if time_ == 2500:  # the others come later
            until(lambda: results(), process=first)
    until(lambda: len(results()) == 2 and durable("4600"), process=first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    done = subprocess.run(
        [*arguments, *options, "--once", "--close"],
        input=line(6500),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert results() == {"2000": "2", "4000": "1", "6000": "2", "8000": "1"}


def durable(word: str) -> bool:
    files = Path("ck/spool").glob("*/data/[0-9]*.nt")
    return any(word in path.read_text() for path in files)


def results() -> dict[str, str]:
    rows = [
        row.split(",")
        for path in Path("r/count").glob("*.csv")
        for row in path.read_text().splitlines()[1:]
    ]
    assert len({report for report, _ in rows}) == len(rows), "a report comes once"
    return dict(rows)


def test_an_app_file_may_name_it(folder: Path) -> None:
    Path("app.yaml").write_text(
        "streams: {rooms: {path: '-'}}\nqueries: {count: {file: count.rq}}\n"
    )
    done = subprocess.run(
        [*RUN, "--app", "app.yaml", "--once"], input=line(500), capture_output=True, text=True
    )
    assert '"report": 2000' in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("streams", "why"),
    [
        (["rooms=-,format=ttl,time=predicate:http://e/at"], "is read as nt, nq, csv, ndjson"),
        (["rooms=-,element=subject"], "is read by lines"),
        (["rooms=-,format=csv,schema=auto"], "needs its schema said"),
        (["rooms=-,time=filename:a(b)"], "has no file name"),
        (["rooms=-", "other=-"], "The streams rooms and other are standard input"),
    ],
)
def test_what_needs_a_file_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], streams: list[str], why: str
) -> None:
    given = [part for stream in streams for part in ("--stream", stream)]
    assert main(["run", "count.rq", *given, "--master", "none", "--once"]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("form", ["nt", "csv"])
def test_files_are_whole_wherever_the_input_is_cut(
    tmp_path: Path, form: str, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    rows = [f'{i},"{chr(10) * draw.randrange(3)}, {i}"\n' for i in range(200)]
    text = "".join(["k,w\n", *rows] if form == "csv" else map(line, range(200))).encode()
    given = {"schema": "k:integer"} if form == "csv" else {}
    out, into = os.pipe()
    config = StreamConfig.from_options("s", "-", format=form, **given)
    spool = StdinSpool(config, tmp_path / "data", out)
    spool.start(once=False)

    def holds(size: int) -> bool:
        return len(spool._buffer) == size

    while text:
        size = draw.randrange(1, 200)
        wanted = len(spool._buffer) + os.write(into, text[:size])
        until(partial(holds, wanted), "what was written is read")
        text = text[size:]
        if draw.random() < 0.3:
            spool._written = 0.0  # long ago
            spool.check()
    os.close(into)
    until(lambda: spool._ended, "the end of the input")
    spool.stop()
    files = [path.read_text() for path in sorted((tmp_path / "data").iterdir())]
    assert len(files) > 2
    if form == "csv":
        assert all(file.startswith("k,w\n") and file.count('"') % 2 == 0 for file in files)
        assert "".join(file.removeprefix("k,w\n") for file in files) == "".join(rows)
    else:
        assert "".join(files) == "".join(map(line, range(200)))
