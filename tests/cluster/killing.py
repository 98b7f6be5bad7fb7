"""Killing the command line in random epochs and starting it again; shared by ``test_crash.py`` and
``tests/soak``.

The driver, Spark's JVM and the Python workers are killed with SIGKILL, all at once or the driver
alone, after a random epoch of a run that does not end, or at a random step of an epoch
(``levada_kill.py`` makes the driver leave with ``os._exit`` there).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import psutil

from levada.testing.compare import read_ndjson
from levada.testing.reference_model import Element
from levada.testing.stream_builders import lines
from support.generators import Clause
from support.polling import newest_epoch, until

S, T = "http://e/s", "http://e/t"
EPOCH_ROWS = 250
EPOCHS = 8  # that there are at least: of the longer stream
LIMIT = 600

QUERIES = {
    "join": f"""PREFIX : <http://e/>
REGISTER RSTREAM :o AS SELECT ?a ?n ?m
FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT1S]
FROM NAMED WINDOW :v ON <{T}> [RANGE PT3S STEP PT1S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} WINDOW :v {{ ?a :q ?m }} }}""",
    "fresh": f"""PREFIX : <http://e/>
REGISTER ISTREAM :o AS SELECT ?a ?n FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} }}""",
    "sum": f"""PREFIX : <http://e/>
REGISTER RSTREAM :o AS SELECT ?a (SUM(?n) AS ?s) (COUNT(*) AS ?c)
FROM NAMED WINDOW :w ON <{S}> [RANGE PT4S STEP PT2S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} }} GROUP BY ?a""",
    "maybe": f"""PREFIX : <http://e/>
REGISTER RSTREAM :o AS SELECT ?a ?m
FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S STEP PT1S]
FROM NAMED WINDOW :v ON <{T}> [RANGE PT1S STEP PT1S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} OPTIONAL {{ WINDOW :v {{ ?a :q ?m }} }} }}""",
}


def streams() -> dict[str, list[Element]]:
    """2,000 and 1,000 elements over 50 and 45 seconds."""

    def triple(a: int, p: str, n: int) -> tuple[str]:
        return (
            f'<http://e/a{a}> <http://e/{p}> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer>',
        )

    left = [Element(25 * i, triple(i * 7 % 40, "p", i % 17)) for i in range(2000)]
    right = [Element(45 * i, triple(i * 11 % 60, "q", i)) for i in range(1000)]
    return {S: left, T: right}


def prepare(folder: Path) -> None:
    """Writes streams and queries."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, elements in streams().items():
        text = "".join(f"{line}\n" for line in lines(elements))
        (folder / f"{name[-1]}.nt").write_text(text)
    for name, text in QUERIES.items():
        (folder / f"{name}.rq").write_text(text)


def command(folder: Path, root: Path, *, once: bool) -> list[str]:
    """The command line of a run; ``once``: that ends."""
    given = [f"{folder}/{name}.rq" for name in QUERIES]
    given += [x for name in (S, T) for x in ("--stream", f"{name}={folder}/{name[-1]}.nt")]
    given += ["--close"] if once else []
    given += ["--epoch", "0", "--epoch-rows", str(EPOCH_ROWS), "--master", "local[2]"]
    return [
        "-m",
        "levada_kill",
        "run",
        *given,
        "--checkpoint",
        f"{root}/ck",
        "--out",
        f"{root}/out",
    ]


def start(
    folder: Path, root: Path, point: int = 0, *, once: bool = True, heavy: bool = False
) -> subprocess.Popen[bytes]:
    """Starts a run; ``point``: it leaves at its so many-th step (0: it does not); ``heavy``: all
    that it does after its first job is done by workers.
    """
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, *command(folder, root, once=once)],
        env={
            **os.environ,
            "PYTHONPATH": path,
            "LEVADA_KILL_AT": str(point),
            "LEVADA_JOBS_HERE": "1",
            **({"LEVADA_HEAVY": "1"} if heavy else {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[bytes], *, all_of_it: bool) -> None:
    """SIGKILL to the driver, or to it and everything below it."""
    children = psutil.Process(process.pid).children(recursive=True) if all_of_it else []
    os.killpg(process.pid, signal.SIGKILL)
    for child in children:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue


def kill_worker(process: subprocess.Popen[bytes], rng: random.Random) -> bool:
    """SIGKILL to one of the Python processes that do a run's tasks, if there is one."""
    below = psutil.Process(process.pid).children(recursive=True)
    for child in rng.sample(below, len(below)):
        try:
            parent = child.parent()
            forked = parent in below and parent.cmdline() == child.cmdline()
            if forked and "levada.runtime.spark.worker_daemon" in child.cmdline():
                child.kill()
                return True
        except psutil.NoSuchProcess:
            continue
    return False


def go_without_workers(folder: Path, root: Path, kills: int, rng: random.Random) -> int:
    """A run to its end, in which one of its workers is killed so many times, each time in another
    epoch; how many there were.
    """
    process, killed, epoch = start(folder, root, heavy=True), 0, 0
    while process.poll() is None and killed < kills:
        newest = newest_epoch(root / "ck")
        if newest > epoch:
            time.sleep(rng.uniform(0, 0.2))  # anywhere in what follows
            if kill_worker(process, rng):
                epoch, killed = newest, killed + 1
        time.sleep(0.005)
    code, said = finish(process)
    assert code == 0, said
    return killed


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The end of a run by itself: exit code and what it said."""
    try:
        said, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        kill(process, all_of_it=True)
        raise
    return process.returncode, said.decode()


def survive(folder: Path, root: Path, kills: int, rng: random.Random) -> list[str]:
    """Runs to the end with so many kills on the way; returns how each kill was."""
    story: list[str] = []
    while len(story) < kills:
        point = rng.choice((0, rng.randint(1, 40)))
        process = start(folder, root, point, once=bool(point))
        if point:
            code, said = finish(process)
            assert code in (0, 86), said
            story.append(f"left at step {point}" if code else "was over before")
        else:
            epoch = min(newest_epoch(root / "ck") + rng.randint(0, 5), EPOCHS)
            until(partial(_is_there, root, epoch), f"epoch {epoch}", process=process, step=0.005)
            time.sleep(rng.uniform(0, 0.3))  # anywhere in what follows
            everything = rng.random() < 0.5
            kill(process, all_of_it=everything)
            process.communicate()
            story.append("killed all" if everything else "killed the driver")
        if (root / "over").exists() or _ended(root):
            break
    code, said = finish(start(folder, root))
    assert code == 0, f"after {story}: {said}"
    return story


def _is_there(root: Path, epoch: int) -> bool:
    return newest_epoch(root / "ck") >= epoch


def _ended(root: Path) -> bool:
    """Whether the streams have ended: then there is nothing left to be killed in."""
    manifests = [p for p in (root / "ck" / "manifests").glob("*") if p.name.isdigit()]
    return (
        bool(manifests)
        and b'"ended":true,"rows_in"' in max(manifests, key=lambda p: int(p.name)).read_bytes()
    )


def published(root: Path) -> Counter[tuple[str, int, frozenset[tuple[str, str]]]]:
    """The bag of (query, report, solution) below ``out``."""
    texts = [
        line
        for path in sorted((root / "out").rglob("*.ndjson"))
        for line in path.read_text().splitlines()
    ]
    found: Counter[tuple[str, int, frozenset[tuple[str, str]]]] = Counter()
    for query, reports in read_ndjson(texts).items():
        for report in reports:
            for solution, times in report.solutions.items():
                found[query, report.time, solution] += times
    return found


def clauses() -> dict[str, dict[str, tuple[str, Clause]]]:
    """The windows of the queries, for the reference."""
    step = Clause
    return {
        "join": {"w": (S, step("step", 2000, 1000)), "v": (T, step("step", 3000, 1000))},
        "fresh": {"w": (S, step("range", 1000))},
        "sum": {"w": (S, step("step", 4000, 2000))},
        "maybe": {"w": (S, step("step", 1000, 1000)), "v": (T, step("step", 1000, 1000))},
    }
