"""How often a task looks at the bytes of lines: it reads them once, and two kernels pass over them,
one that counts lines and one that parses.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.parse import ntriples
from levada.connectors.ingest.parse.ntriples import COLD
from levada.connectors.sources import file_splitter, read_split, source_reader
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.splits import FileSplit
from levada.kernels.text import line_boundaries

LINE = "<http://e/s> <http://e/p> <http://e/o> 1000 .\n"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many bytes each kernel is given, and how many are read."""
    found: Counter[str] = Counter()

    def counting(owner: Any, name: str, size: Any) -> None:
        call = getattr(owner, name)

        def counted(*given: Any) -> Any:
            found[name] += size(*given)
            return call(*given)

        monkeypatch.setattr(owner, name, counted)

    counting(line_boundaries, "scan_ends", lambda buf, at, stop: stop - at)
    counting(ntriples.kernel, "parse_lines", lambda buf, size, *more: size)
    counting(ntriples.kernel, "count_line_ends", lambda buf, size: size)
    for module in (file_splitter, read_split):
        counting(module, "count_byte", lambda buf, stop, byte: stop)
    counting(os, "preadv", lambda file, buffers, at: sum(map(len, buffers)))
    monkeypatch.setattr(COLD, "left", -1)
    return found


def test_two_kernels_pass_over_lines_that_are_read_once(
    tmp_path: Path, passes: Counter[str]
) -> None:
    path = tmp_path / "a.nt"
    path.write_text(LINE * 5000)
    size = path.stat().st_size
    config = StreamConfig.from_options("s", path)
    made = FileSource(config, tmp_path)
    made.discover(final=True)
    ((reference,), _) = made.take({}, 10_000)
    assert isinstance(reference, FileSplit)
    passes.clear()
    found = source_reader.read(reference, config)
    assert found.text is not None
    triples = ntriples.parse(
        found.text, quads=False, timed=True, seed=1, document=1, line_ends=found.line_ends
    )
    assert triples.n == 5000
    assert size - 1 <= passes.pop("scan_ends") <= size
    assert passes == {"parse_lines": size, "preadv": size}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end_is_counted(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.nt"
    path.write_bytes((LINE * 100).replace("\n", end).encode())
    config = StreamConfig.from_options("s", path)
    made = FileSource(config, tmp_path)
    made.discover(final=True)
    ((reference,), _) = made.take({}, 10_000)
    assert isinstance(reference, FileSplit)
    found = source_reader.read(reference, config)
    assert found.text is not None and found.line_ends == (200 if end == "\r\n" else 100)
    triples = ntriples.parse(
        found.text, quads=False, timed=True, seed=1, document=1, line_ends=found.line_ends
    )
    assert triples.n == reference.elements == 100
