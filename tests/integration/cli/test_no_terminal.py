"""Standard output or error that are closed, full, or read by nobody: a sentence where there is a
place for one, and no run ends because it cannot say something.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import polars as pl
import pytest

from levada.connectors.serialization.serialize import Batch, Format
from levada.connectors.sinks.stdout_sink import StdoutSink
from support.polling import PATIENCE

XSD = "<http://www.w3.org/2001/XMLSchema#integer>"
QUERY = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } }"""
RUN = (
    f"{sys.executable} -m levada run q.rq --stream http://e/s=s.nt --once --master none "
    "--no-progress"
)


def shell(folder: Path, command: str) -> tuple[int, str, str]:
    (folder / "q.rq").write_text(QUERY)
    lines = "".join(f'<http://e/a> <http://e/p> "{i}"^^{XSD} {i * 100} .\n' for i in range(20_000))
    (folder / "s.nt").write_text(lines + "bad\n")
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    return done.returncode, done.stdout, done.stderr


def test_no_standard_output(tmp_path: Path) -> None:
    code, _, said = shell(tmp_path, f"{RUN} >&-")
    assert (code, said) == (2, "levada: There is no standard output for results. Say --out DIR.\n")
    code, _, said = shell(tmp_path, f"{RUN} --out out >&-")
    assert code == 0, said
    assert list((tmp_path / "out" / "q").iterdir())


def test_no_standard_error(tmp_path: Path) -> None:
    code, given, _ = shell(tmp_path, f"{RUN} 2>&-")
    assert code == 0
    assert all(line.startswith("{") for line in given.splitlines())
    code, given, _ = shell(tmp_path, f"{RUN} --epoch nonsense 2>&-")
    assert (code, given) == (2, "")


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_full_disks(tmp_path: Path) -> None:
    code, _, said = shell(tmp_path, f"{RUN} > /dev/full")
    assert code == 1
    assert said.startswith("levada: The disk that holds standard output is full.")
    code, given, _ = shell(tmp_path, f"{RUN} 2> /dev/full")
    assert len(given.splitlines()) > 1900


@pytest.mark.parametrize("setting", ["", pytest.param("1", marks=pytest.mark.long)])
def test_a_reader_that_has_enough(tmp_path: Path, setting: str) -> None:
    run = f"PYTHONUNBUFFERED={setting} {RUN}"  # containers set it
    code, given, said = shell(tmp_path, f"{run} | head -1; exit ${{PIPESTATUS[0]}}")
    assert (code, said) == (1, "levada: Nobody reads standard output any more.\n")
    assert given.count("\n") == 1


def test_a_part_of_a_write_is_not_all_of_it() -> None:
    """A pipe without a buffer before it may take less than it is given."""
    taken: list[bytes] = []

    class Narrow(io.RawIOBase):
        def write(self, data: Any) -> int:
            taken.append(bytes(data[:7]))
            return len(taken[-1])

    column = pl.Series(["<http://e/a>"] * 3, dtype=pl.String)
    batch = Batch(np.array([5, 6, 7], np.int64), columns={"x": column})
    StdoutSink(Format.CSV, cast(BinaryIO, Narrow())).publish("q", ["x"], 1, batch)
    assert b"".join(taken) == b"report,x\n5,http://e/a\n6,http://e/a\n7,http://e/a\n"
