"""Ctrl-C and SIGKILL at any instant of a start leave no process behind: after each of its stages,
and a random moment later.
"""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from support.polling import PATIENCE, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500)]

QUERY = """PREFIX : <http://e/>
SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w { ?s :p ?v } }
"""
ROUNDS = int(os.environ.get("LEVADA_INTERRUPTS", "1"))
STAGES = {
    "nothing": lambda folder, process: _spent(process) > 0.1,  # Python's own start is behind
    "an epoch": lambda folder, process: any((folder / "tmp").glob("levada-*/manifests/1")),
    "a JVM": lambda folder, process: _below(process, "java"),
    "Spark": lambda folder, process: _below(process, "python"),
}


def _spent(process: subprocess.Popen[str]) -> float:
    """CPU seconds."""
    with suppress(psutil.NoSuchProcess):
        return float(psutil.Process(process.pid).cpu_times().user)
    return 0.0


def _below(process: subprocess.Popen[str], name: str) -> bool:
    children = psutil.Process(process.pid).children(recursive=True)
    with suppress(psutil.NoSuchProcess):
        return any(name in child.name() for child in children)
    return False


def of_the_run(folder: Path) -> list[psutil.Process]:
    """Processes that a run in this folder has started, wherever they hang: they have its folder for
    temporary files in their environment.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(folder / "tmp"):
                ended = process.status() == psutil.STATUS_ZOMBIE
                found += [] if ended else [process]
        except (psutil.Error, OSError):
            continue
    return found


def _nothing_of(folder: Path) -> bool:
    return not of_the_run(folder)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left(tmp_path: Path, number: signal.Signals, random_seed: int) -> None:
    rng = random.Random(random_seed)
    for i, stage in enumerate([*STAGES] * ROUNDS):
        folder, wait = tmp_path / str(i), rng.uniform(0, 0.5)
        (folder / "tmp").mkdir(parents=True)
        (folder / "q.rq").write_text(QUERY)
        (folder / "s.nt").write_text('<http://e/a> <http://e/p> "1" 1000 .\n')
        process = subprocess.Popen(
            [sys.executable, "-m", "levada", "run", "q.rq", "--stream", "s=s.nt"],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder / "tmp")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        until(partial(STAGES[stage], folder, process), stage, process=process)
        time.sleep(wait)
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
        assert "Traceback" not in said, (stage, wait, said)
        until(partial(_nothing_of, folder), f"nothing is left of a run that had {stage}")
