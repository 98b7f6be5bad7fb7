"""What is read without the parser's kernel while it is not compiled: little, and then no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from levada import kernels
from levada.connectors.ingest.parse import ntriples
from levada.connectors.ingest.parse.ntriples import InterpretedParserQuota


def test_small_chunks_until_they_have_come_to_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntriples, "is_there", lambda kernel: False)
    found = InterpretedParserQuota(left=100, chunk=50)
    assert [found.allows(size) for size in (50, 40, 20, 1)] == [True, True, False, False]
    found = InterpretedParserQuota(left=100, chunk=50)
    assert [found.allows(size) for size in (51, 1)] == [False, False], "it is compiled by now"


def test_a_kernel_that_is_there_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntriples, "is_there", lambda kernel: True)
    assert not InterpretedParserQuota().allows(1)


RUN = """
from levada import kernels
from levada.connectors.ingest.parse.ntriples import parse
from levada.kernels.text.ntriples import parse_lines
found = parse(b'<a:s> <a:p> "5" 17 .', quads=False, timed=True, seed=1, document=1)
print(found.n, found.text(found.o, 0), kernels.is_there(parse_lines), len(parse_lines.overloads))
"""


@pytest.mark.long
def test_with_an_empty_cache_a_line_is_read_without_it(tmp_path: Path) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" or not kernels.CACHE:
        pytest.skip("nothing is compiled")
    environment = {**os.environ, "LEVADA_CACHE": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == '1 "5" False 0\n'
