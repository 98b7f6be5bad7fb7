"""Results on standard output: flushed at publication, one header a run, and a reader that goes
away.
"""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from levada.connectors.serialization.serialize import Batch, Format
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.errors import SinkError


def batch(*reports: Any) -> Any:
    return Batch(
        np.array(reports, np.int64),
        columns={"x": pl.Series(["<http://e/a>"] * len(reports), dtype=pl.String)},
    )


def test_lines_are_flushed_at_publication(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as stream:
        sink = StdoutSink(Format.CSV, stream)
        assert sink.publish("q", ["x"], 1, batch(5)) == []
        assert path.read_bytes() == b"report,x\n5,http://e/a\n"
        sink.publish("q", ["x"], 2, batch(6, 7))
        assert path.read_bytes() == b"report,x\n5,http://e/a\n6,http://e/a\n7,http://e/a\n"


def test_a_batch_without_a_line_writes_not_even_a_header() -> None:
    stream = io.BytesIO()
    StdoutSink(Format.CSV, stream).publish("q", ["x"], 1, batch())
    assert stream.getvalue() == b""


def test_a_full_disk_is_a_sentence() -> None:
    with Path("/dev/full").open("wb") as stream:
        with pytest.raises(SinkError, match="The disk that holds standard output is full"):
            StdoutSink(Format.NDJSON, stream).publish("q", ["x"], 1, batch(5))
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def test_a_reader_that_goes_away_is_told_once() -> None:
    program = """
import sys, numpy as np, polars as pl
from levada.connectors.serialization.serialize import Batch, Format
from levada.errors import SinkError
from levada.connectors.sinks.stdout_sink import StdoutSink
sink = StdoutSink(Format.NDJSON, sys.stdout.buffer)
batch = Batch(np.arange(10_000), columns={"x": pl.Series(["<http://e/a>"] * 10_000)})
try:
    for epoch in range(100):
        sink.publish("q", ["x"], epoch, batch)
except SinkError as error:
    sys.exit(str(error))
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"Nobody reads standard output any more.\n"
        assert process.wait() == 1
