"""A signal ends a run whose store accepts requests and never answers; the next run goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.cli.app.signals import GRACE
from levada.testing.compare import read_ndjson, same
from levada.testing.reference_model import Report
from levada.testing.stream_builders import write_lines
from support.fault_proxy import FaultProxy, http, terminated
from support.polling import PATIENCE
from support.query_dsl import S, element, query, step
from support.s3_server import BUCKET, Moto

QUERY = query(
    "SELECT ?a (SUM(?n) AS ?m)", "WINDOW :w { ?a :p ?n }", tail=" GROUP BY ?a", name="sum",
    windows={"w": (S, step(2000, 1000))},
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Moto]:
    running = Moto()
    running.make_bucket()
    yield running
    running.close()


REQUESTS = ["> PUT .*/commits/", *(
    pytest.param(each, marks=pytest.mark.long) for each in ("connect", "> POST", "> GET .*list")
)]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("request_kind", REQUESTS)
def test_a_store_that_never_answers(tmp_path: Path, server: Moto, request_kind: str) -> None:
    assert GRACE + 1 < 10, "an engine is to end within 10 s"
    write_lines(tmp_path / "s.nt", [element(300 * i, f"a{i % 3} p {i}") for i in range(60)])
    (tmp_path / "sum.rq").write_text(QUERY.text)
    (folder := tmp_path / "work").mkdir()
    environ = {**os.environ, **server.environ(), "LEVADA_CHECKPOINTS": str(folder)}
    port = int(server.url.rpartition(":")[2])
    checkpoint = f"s3://{BUCKET}/{uuid.uuid4()}"  # a later test may have the same folder
    command = [
        sys.executable, "-m", "levada", "run", "sum.rq", "--stream", f"{S}=s.nt", "--close",
        "--master", "none", "--epoch-rows", "5", "--epoch", "0", "--no-progress",
    ]  # fmt: skip

    def run(*more: str) -> list[Report]:
        subprocess.run([*command, *more], cwd=tmp_path, env=environ, check=True, timeout=PATIENCE)
        files = sorted((tmp_path / more[1]).rglob("*.ndjson"))
        return read_ndjson(line for path in files for line in path.read_text().splitlines())["sum"]

    disturbed = ["--out", "disturbed", "--checkpoint", checkpoint]
    with FaultProxy(port, http, [(request_kind, "hang")]) as proxy:
        hanging = {**environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}
        code, said = terminated([*command, *disturbed], proxy, cwd=tmp_path, env=hanging)
    assert code == 143, said
    assert f"The object store of {checkpoint} does not answer" in said
    assert "Traceback" not in said
    assert same(run("--out", "whole", "--checkpoint", "local"), run(*disturbed)) is None
