"""Signals at every step of an epoch: its files, its commit, its publication. One signal ends the
run after the epoch, two end the process where it stands; the next run goes on, and what is
published is what a run without signals publishes.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.polling import PATIENCE

ENDED = (130, 143)
KILLS = int(os.environ.get("LEVADA_KILLS", "3"))
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(PATIENCE * (KILLS + 10))]
XSD = "<http://www.w3.org/2001/XMLSchema#integer>"
QUERY = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } }"""
RUN = """
import itertools, json, os, signal, sys
from dataclasses import replace
from pathlib import Path
from levada.cli.app.run_app import run_app
from levada.cli.app_builder import CommandArguments, assemble
from levada_kill import STEPS

calls = {name: getattr(os, name) for name in STEPS}

def arm(at, times):
    steps = itertools.count(1)
    def doomed(call):
        def step(*args, **kwargs):
            if next(steps) == at:
                for number in (signal.SIGTERM, signal.SIGINT)[:times]:  # equal ones become one
                    os.kill(os.getpid(), number)
            return call(*args, **kwargs)
        return step
    for name, call in calls.items():
        setattr(os, name, doomed(call))
    return steps

def run(root):
    options = {"out": f"{root}/out", "checkpoint": f"{root}/ck", "epoch_rows": 10}
    streams = ("http://e/s=s.nt",)
    app = assemble(CommandArguments(queries=("q.rq",), streams=streams, options=options))
    return run_app(app, once=True, keep_open=False, overwrite=False, master="none")

root, first, last, times = sys.argv[1], *map(int, sys.argv[2:])
for at in range(first, last):
    steps = arm(at, times)
    run(f"{root}{at}")
    print(json.dumps(next(steps)), flush=True)
    arm(0, 0)
    run(f"{root}{at}")
"""


def go(folder: Path, root: str, first: int, last: int, times: int = 1) -> tuple[int, list[int]]:
    """Runs with a signal at the steps from ``first`` to ``last``, each followed by one without."""
    tools = str(Path(__file__).parents[1] / "cluster")
    path = os.pathsep.join([tools, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", RUN, root, str(first), str(last), str(times)],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=10 * PATIENCE,
    )  # fmt: skip
    assert done.returncode in (0, *ENDED), done.stderr
    assert not done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def bag(said: dict[str, Any]) -> str:
    if "results" in said:
        said["results"]["bindings"].sort(key=json.dumps)
    return json.dumps(said)


def published(root: Path) -> dict[str, list[str]]:
    """The lines of each file; solutions of a report are a bag."""
    return {
        str(path.relative_to(root)): [
            bag(json.loads(line)) for line in path.read_text().splitlines()
        ]
        for path in sorted((root / "out").rglob("*.ndjson"))
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.rq").write_text(QUERY)
    lines = [f'<http://e/a{i % 3}> <http://e/p> "{i}"^^{XSD} {i * 200} .\n' for i in range(40)]
    (tmp_path / "s.nt").write_text("".join([*lines[:25], lines[0], "bad\n", *lines[25:]]))
    return tmp_path


@pytest.mark.long
def test_signals_at_each_step(folder: Path, random_seed: int) -> None:
    _, [steps] = go(folder, "whole", 0, 1)
    right = published(folder / "whole0")
    assert any(name.startswith("out/late") for name in right)
    assert steps > 50
    rng = random.Random(random_seed)
    first = 1 if KILLS > 5 else rng.randint(1, steps - 20)
    code, seen = go(folder, "once", first, steps if KILLS > 5 else first + 20)
    assert code == 0
    assert seen
    for root in folder.glob("once*"):
        assert published(root) == right, (root.name, random_seed)
    for _ in range(max(KILLS // 2, 2)):
        at = rng.randint(1, steps * 3 // 4)  # of the steps that are there in every run
        code, _ = go(folder, "twice", at, at + 1, times=2)
        assert code in ENDED, f"step {at} of {steps}"
        go(folder, "twice", at, at + 1, times=0)
        assert published(folder / f"twice{at}") == right, (at, random_seed)
