"""``formats``: NDJSON of two levels, mapped by five paths to five triples a record, beside
N-Triples of the same triples.

The engine reads each in a process of its own, without Spark, with a query whose filter next to no
triple passes: what is measured is reading, mapping, parsing and matching. Each side reads its file
once before. A row is a triple; ``ratio_cpu`` is the rate of NDJSON over that of N-Triples (its
target is a half). ``reader``: the rate at which the columns of the same file are read, without
triples. ``rml``: CSV by RML, beside Morph-KGC (``bench.rml_csv``; its target is ten times).
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench import rml_csv
from bench.apart import apart
from bench.measure import Tree, peak_memory
from bench.meter import side
from bench.result import Result, check_count, ratio

RECORDS = 400_000
LIMIT = 39.99  # of temperatures from -10 to 40 in hundredths
QUERY = (
    "SELECT ?v FROM NAMED WINDOW <w> ON <http://e/s> [RANGE PT1H STEP PT1H] "
    f"WHERE {{ WINDOW <w> {{ ?o <http://e/temp> ?v }} FILTER(?v > {LIMIT}) }}"
)
PATHS = {
    "payload.temp": "double", "payload.humidity": "integer", "payload.unit": "string",
    "device.room": "string", "seq": "integer",
}  # fmt: skip
MAPPING = {
    "columns": {name: kind for name, kind in PATHS.items() if kind != "string"},
    "triples": [
        f"<http://e/o/{{seq}}> <http://e/{name.rpartition('.')[2]}> {{{name}}}" for name in PATHS
    ],
}
_XSD = "http://www.w3.org/2001/XMLSchema#"


def write(folder: Path, records: int) -> int:
    """Writes both files; returns the number of results."""
    draw, count = random.Random(1), 0
    nested, flat = (folder / "s.ndjson").open("w"), (folder / "s.nt").open("w")
    with nested, flat:
        for i in range(records):
            temp, at = round(draw.uniform(-10, 40), 2), 1_700_000_000_000 + 10 * i
            values = {
                "temp": temp, "humidity": draw.randrange(100), "unit": "C",
                "room": f"room {draw.randrange(50)}", "seq": i,
            }  # fmt: skip
            payload = {name: values[name] for name in ("temp", "humidity", "unit")}
            record = {"seq": i, "ts": at, "device": {"room": values["room"]}, "payload": payload}
            nested.write(json.dumps(record) + "\n")
            count += temp > LIMIT
            for name, value in values.items():
                kind = {float: "double", int: "integer"}.get(type(value))
                term = f'"{value:g}"' if isinstance(value, float) else f'"{value}"'
                term += f"^^<{_XSD}{kind}>" if kind else ""
                flat.write(f'<http://e/o/{i}> <http://e/{name}> {term} "{at}" .\n')
    (folder / "map.yml").write_text(json.dumps(MAPPING))
    return count


def read(folder: str, form: str) -> dict[str, Any]:
    """One side, in this process."""
    from levada.engine.engine import Engine

    told = {}
    for _ in range(2):
        options: dict[str, Any] = {"mapping": f"{folder}/map.yml"} if form == "ndjson" else {}
        with Engine(spark=False) as engine:
            engine.stream("http://e/s", f"{folder}/s.{form}", **options)
            query = engine.register(f"REGISTER RSTREAM <http://e/q> AS {QUERY}")
            before, began = Tree().cpu(), time.perf_counter()
            engine.start(once=True)
            engine.await_end()
            cpu, seconds = Tree().cpu() - before, time.perf_counter() - began
            results = query.to_polars().height
            triples = engine._records()["http://e/s"].triples
        told = side(results, triples, seconds, cpu, memory=peak_memory())
    return told


def columns(folder: str) -> dict[str, Any]:
    """The reader alone: records a CPU-second."""
    from levada.connectors.ingest.tables.json_rows import json_rows
    from levada.connectors.sources.splits import FileSplit

    data = np.fromfile(f"{folder}/s.ndjson", np.uint8)
    reference = FileSplit("s", "s", "s", "s", "ndjson", 0, len(data), 0, 1, 0)
    for _ in range(2):
        cpu = time.process_time()
        rows = json_rows(data, [*PATHS, "ts"], reference, "ts").table.height
        cpu = time.process_time() - cpu
    return {"records_per_cpu_s": round(rows / cpu), "mb_per_cpu_s": round(len(data) / cpu / 1e6)}


def run(scale: float, stepped: bool) -> Result:
    """Both sides over 400,000 records, two million triples."""
    with tempfile.TemporaryDirectory(prefix="levada-formats-") as folder:
        records = max(int(RECORDS * scale), 1000)
        expected = write(Path(folder), records)
        nested = apart("bench.formats:read", folder=folder, form="ndjson")
        flat = apart("bench.formats:read", folder=folder, form="nt")
        for name, found in (("levada", nested), ("baseline", flat)):
            check_count(name, found["count"], expected)
        reader = apart("bench.formats:columns", folder=folder)
        rml = _rml(Path(folder), max(int(rml_csv.ROWS * scale), 1000))
    return Result("formats", nested, flat, ratio(nested, flat), {"reader": reader, "rml": rml})


def _rml(folder: Path, rows: int) -> dict[str, Any]:
    """CSV by RML, beside Morph-KGC if it is there."""
    rml_csv.write(folder, rows)
    sides = {"levada": apart("bench.rml_csv:levada", folder=str(folder))}
    check_count("levada", sides["levada"]["triples"], 5 * rows)
    if other := rml_csv.morph(folder):
        check_count("morph_kgc", other["triples"], 5 * rows)
        sides["morph_kgc"] = other
        ratio_cpu = other["cpu_s"] / sides["levada"]["cpu_s"]
        return {**sides, "ratio_cpu": round(ratio_cpu, 1)}
    return sides
