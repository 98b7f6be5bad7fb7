"""Ctrl-C and SIGKILL at any instant of a start leave no process behind."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500)]

QUERY = """PREFIX : <http://e/>
SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w { ?s :p ?v } }
"""
INSTANTS = int(os.environ.get("LEVADA_INTERRUPTS", "4"))
SPAN = 6.0  # s; a quiet machine has Spark by then


def of_the_run(folder: Path) -> list[psutil.Process]:
    """Processes that a run in this folder has started, wherever they hang: they have its folder for
    temporary files in their environment.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(folder / "tmp"):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(tmp_path: Path, number: signal.Signals) -> None:
    seed = int(os.environ.get("LEVADA_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    rng = random.Random(seed)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nt").write_text('<http://e/a> <http://e/p> "1" 1000 .\n')
    (tmp_path / "tmp").mkdir()
    for _ in range(INSTANTS):
        wait = rng.uniform(0, SPAN)
        process = subprocess.Popen(
            [sys.executable, "-m", "levada", "run", "q.rq", "--stream", "s=s.nt"],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        time.sleep(wait)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        assert "Traceback" not in said, (wait, said)
        patience = time.monotonic() + (60 if number == signal.SIGKILL else 2)
        while (left := of_the_run(tmp_path)) and time.monotonic() < patience:
            time.sleep(0.1)
        assert not left, (wait, [(p.pid, p.cmdline()[:3]) for p in left], said)
