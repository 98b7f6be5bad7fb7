"""Files that end the process that reads them, and engines that read them in processes of their own.

The parser dies of triples that nest deeper than Levada lets it; here the bound is taken away, in
every process that is started (``sitecustomize``).
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PATIENCE = 300  # seconds
UNBOUND = "import levada.connectors.ingest.parse.document_limits as b\nb.DEEPEST = 1 << 40\n"
DEEP = 50_000

RUN = """
import json, os, sys
from pathlib import Path
import levada
from levada.errors import LevadaError
from levada.connectors.serialization.result_formats import Format
from levada.runtime.executor import LocalExecutor
from levada.connectors.sinks.file_sink import FileSink

root, data, static, killed = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
spark = None if sys.argv[5] else False
if spark is None:  # what is here until Spark is there would die with its files
    import levada.runtime.spark.spark_startup
    levada.runtime.spark.spark_startup.shares_host = lambda master: False
run = LocalExecutor.run
def doomed(self, job):
    if json.loads(job.context)["epoch"] == killed:
        os.kill(os.getpid(), 9)
    return run(self, job)
LocalExecutor.run = doomed
QUERY = '''PREFIX : <http://e/> SELECT ?s ?o FROM NAMED WINDOW :w ON <http://e/S>
[RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?s :p ?o } %s }''' % ("GRAPH :g { ?s :q ?x }" if static else "")
try:
    sink = FileSink(root / 'out', Format.CSV)
    with levada.Engine(
        spark=spark, master="local[2]", checkpoint=root / "c", epoch_rows=3, letters=root, sink=sink
    ) as engine:
        engine.stream("http://e/S", data, format="ttl", time="filename:_([0-9]+)")
        if static:
            engine.static(static, graph="http://e/g")
        query = engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()
        dead = engine._records()["http://e/S"].dead_letters
    texts = [path.read_text() for path in (root / "out" / "q").glob("*.csv")]
    lines = [line for text in texts for line in text.splitlines()[1:]]
    print(json.dumps([dead, sorted(lines)]))
except LevadaError as error:
    print(json.dumps(str(error)))
"""


def document(path: Path, value: int) -> None:
    path.write_text(f"<http://e/s{value % 3}> <http://e/p> {value} .")


def deadly(path: Path) -> None:
    path.write_text("<a:s> <a:p> " + "<<( <a:s> <a:p> " * DEEP + "<a:o>" + " )>>" * DEEP + " .")


def start(
    root: Path, data: Path, *, static: Path | str = "", killed: int = -1, spark: str = ""
) -> Any:
    """An engine in a process of its own; its status and what it prints."""
    bare = root / "bare"
    bare.mkdir(exist_ok=True, parents=True)
    (bare / "sitecustomize.py").write_text(UNBOUND)
    path = os.pathsep.join([str(bare), *filter(None, sys.path)])
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(root), str(data), str(static), str(killed), spark],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return run.returncode, json.loads(run.stdout.splitlines()[-1]) if run.stdout else run.stderr


def letters(root: Path) -> list[Any]:
    found = (root / "dead-letter").glob("*") if (root / "dead-letter").exists() else ()
    lines = (line for path in sorted(found) for line in path.read_text().splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]


def documents(folder: Path) -> Path:
    """Nine documents of a number each, three an epoch."""
    folder.mkdir()
    for i in range(9):
        document(folder / f"a_{1000 + 400 * i}.ttl", i)
    return folder


def died(status: int) -> bool:
    return status in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)
