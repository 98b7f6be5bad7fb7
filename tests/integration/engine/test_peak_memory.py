"""Queries that would take all memory at once do not: the peak of a process of their own stays below
a gigabyte.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = """
import json, resource, sys, threading
import levada
text, options, reports = json.loads(sys.argv[1])
found, enough = [], threading.Event()
class Few:
    def publish(self, name, variables, epoch, batch):
        found.append([batch.report.tolist()[:3], [c.to_list()[0] for c in batch.columns.values()],
                      len(batch.report) + len(batch.empty)])
        if sum(n for *_, n in found) >= reports:
            enough.set()
engine = levada.Engine(spark=False, sink=Few(), keep_results=False)
engine.stream("http://e/s", "s.nt")
engine.register(text, **options)
engine.start(once=True)
enough.wait(600)
engine.stop()
status = open('/proc/self/status').read()  # the peak of resource is also that of who forked it
peak = int(status.split('VmHWM:')[1].split()[0]) >> 10
print(json.dumps([peak, sum(n for *_, n in found), found[0][:2]]))
engine.close()
"""
HEAD = "PREFIX : <http://e/> SELECT %s FROM NAMED WINDOW :w ON <http://e/s> [%s] WHERE { %s }"
COUNT, ALL = "(COUNT(*) AS ?n)", "WINDOW :w { ?s ?p ?o }"
BINDS = " ".join(f"BIND(CONCAT({', '.join([f'?x{i}'] * 4)}) AS ?x{i + 1})" for i in range(18))
ONE = ['<http://e/a> <http://e/p> "x" 0 .\n']
MANY = [f'<http://e/a{i}> <http://e/p> "{i}" 0 .\n' for i in range(300)]
GAP = [*ONE, f'<http://e/a> <http://e/p> "y" {9 * 86_400_000} .\n']
INTEGER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'


@pytest.mark.parametrize(
    ("text", "options", "lines", "reports", "first"),
    [
        (HEAD % (COUNT, "RANGE P1D STEP PT0.001S", ALL), {}, ONE, 4_000_000, INTEGER.format(1)),
        pytest.param(
            HEAD % (COUNT, "RANGE P1D STEP PT1H", ALL),
            {"report": "periodic:1ms"},
            ONE,
            4_000_000,
            INTEGER.format(1),
            marks=pytest.mark.long,
        ),
        pytest.param(
            HEAD % (COUNT, "RANGE PT0.001S STEP PT0.001S", ALL),
            {"empty_reports": True},
            GAP,
            2_000_000,
            INTEGER.format(1),
            marks=pytest.mark.long,
        ),
        (
            HEAD % (COUNT, "RANGE PT1S STEP PT1S", "WINDOW :w { ?a :p ?x . ?b :p ?y . ?c :p ?z }"),
            {},
            MANY,
            1,
            INTEGER.format(300**3),
        ),
        (HEAD % ("?x18", "RANGE PT1S STEP PT1S", "WINDOW :w { ?s ?p ?x0 } " + BINDS), {}, ONE, 1,
         None),
    ],
    ids=["steps", "periodic", "empty", "product", "texts"],
)  # fmt: skip
def test_the_peak_is_below_a_gigabyte(
    text: str, options: Any, lines: list[str], reports: int, first: str | None, tmp_path: Path
) -> None:
    (tmp_path / "s.nt").write_text("".join(lines))
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([text, options, reports])],
        cwd=tmp_path, capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    peak, made, (times, values) = json.loads(done.stdout)
    assert peak < 1000
    assert made >= reports
    assert times[0] == (1000 if reports == 1 else 3_600_000 if "report" in options else 1)
    assert values == [first]


LIMITED = """
import pathlib, sys, warnings
from levada import Engine
from levada.engine.status.status import read_status
warnings.simplefilter("ignore")
root = pathlib.Path("ck")
with Engine(spark=False, keep_results=False, checkpoint=root, limits="made=100MB") as engine:
    engine.stream("http://e/s", "s.nt")
    engine.register(sys.argv[1], name="q")
    engine.start(once=True)
    engine.await_end()
peak = pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(int(peak) >> 10, *read_status(root).suspended_queries.values())
"""
PAIRS = "WINDOW :w { ?a :p ?x . ?b :p ?y }"


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        HEAD % ("*", "RANGE PT1S STEP PT1S", PAIRS) + " ORDER BY ?x DESC(?y) ?a",
        HEAD
        % (
            "*",
            "RANGE PT1S STEP PT1S",
            PAIRS + " ".join(f"BIND(?x * {i} + ?y AS ?v{i})" for i in range(100)),
        ),
    ],
    ids=["order", "binds"],
)
def test_a_query_takes_twice_its_limit_and_100_mb_at_most(text: str, tmp_path: Path) -> None:
    """The operator at work has temporary columns, which no account has."""
    (tmp_path / "s.nt").write_text(
        "".join(f"<http://e/a{i}> <http://e/p> {INTEGER.format(i)} 0 .\n" for i in range(800))
    )
    peaks = []
    for each in (HEAD % (COUNT, "RANGE PT1S STEP PT1S", ALL), text):
        command = [sys.executable, "-c", LIMITED, each]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        peak, _, suspended = done.stdout.strip().partition(" ")
        peaks.append(int(peak))
        shutil.rmtree(tmp_path / "ck")
    assert "more than 100,000,000 bytes" in suspended
    assert peaks[1] - peaks[0] <= 300
