"""A second signal ends a run that is in the middle of an epoch without end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SLOW = r"""PREFIX : <http://e/>
SELECT ?o FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?s :p ?o } FILTER(REGEX(?o, "^((a|aa)+)\\1$")) }
"""
RUN = """
import sys
from levada.app.run import run_app
from levada.cli.assemble import Given, assemble
app = assemble(Given(queries=("slow.rq",), streams=("http://e/s=s.nt",)))
print("run", flush=True)
run_app(app, once=False, keep_open=False, overwrite=False, spark=False)
"""


def slow(folder: Path) -> None:
    """A query and elements whose epoch takes a second an element."""
    (folder / "slow.rq").write_text(SLOW)
    lines = [f'<http://e/a> <http://e/p> "{"a" * (61 + 2 * i)}" {i} .\n' for i in range(500)]
    (folder / "s.nt").write_text("".join(lines) + '<http://e/a> <http://e/p> "" 9000 .\n')
    (folder / "tmp").mkdir()


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(tmp_path: Path, second: Any) -> None:
    slow(tmp_path)
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    given: Any = {"cwd": tmp_path, "env": environment, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", RUN], **given) as process:
        process.stdout.readline()
        opened = tmp_path / "tmp"
        while not list(opened.glob("levada-*/intentions/open")):
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(1.5)
        assert process.poll() is None, "the first signal finishes the epoch"
        began = time.monotonic()
        process.send_signal(second)
        process.wait(timeout=60)
        assert time.monotonic() - began < 30, "the epoch takes minutes"
        assert process.returncode == 128 + second
    assert list(opened.iterdir()) == [], "the temporary checkpoint is gone"
