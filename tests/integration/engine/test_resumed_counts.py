"""What a run that goes on on a checkpoint says of itself: its own counts and rates, and beside them
what all runs have done; progress and summary agree.
"""

from __future__ import annotations

import io
from pathlib import Path

from levada.cli.app.app_file import App, Options, QuerySource
from levada.cli.app.run_app import run_app
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.engine.status.summary import AllRunsTotals, Progress, Summary

QUERY = """PREFIX : <http://e/> SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } }"""


def run(folder: Path, elements: range) -> tuple[Summary, Progress]:
    with (folder / "s.nt").open("a") as file:
        file.writelines(f'<http://e/a{i}> <http://e/p> "{i}" {500 * i} .\n' for i in elements)
    app = App(
        (StreamConfig.from_options("http://e/s", str(folder / "s.nt")),),
        queries=(QuerySource("q", QUERY),),
        options=Options(checkpoint=str(folder / "ck"), epoch=0, epoch_rows=3, master="none"),
    )
    seen: list[Progress] = []
    summary = run_app(
        app,
        once=True,
        keep_open=True,
        overwrite=False,
        master="none",
        progress=seen.append,
        on_results=StdoutSink(Format.NDJSON, io.BytesIO()),
    )
    return summary, seen[-1]


def test_a_run_that_goes_on_counts_its_own(tmp_path: Path) -> None:
    first, progress = run(tmp_path, range(6))
    assert (first.elements, first.results, first.all_runs) == (6, 4, None)
    assert (progress.epochs, progress.elements, progress.results) == (first.epochs, 6, 4)
    assert "ever" not in progress.line()
    second, progress = run(tmp_path, range(6, 8))
    assert (second.elements, second.results, second.query_results) == (2, 2, {"q": 2})
    assert second.all_runs == AllRunsTotals(first.epochs + second.epochs, 8, 6) == progress.all_runs
    assert (progress.epochs, progress.elements, progress.results) == (second.epochs, 2, 2)
    assert f"{2 / progress.seconds:,.0f}/s" in progress.line()
    assert "2 elements (8 ever)" in progress.line()
