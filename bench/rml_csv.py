"""A million rows of CSV, mapped by RML to five triples each, beside Morph-KGC.

Both write all triples to a file with one process. Levada maps the file twice, and the second time
counts; for Morph-KGC the time of a mapping of an empty file is subtracted. Morph-KGC needs an
environment of its own: ``python -m venv morph && morph/bin/pip install morph-kgc``, and
``MORPH_KGC=morph/bin/python`` for the benchmark.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

ROWS = 1_000_000
_MAPPING = """@prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix rr: <http://www.w3.org/ns/r2rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <http://e/> .
:m rml:logicalSource [ rml:source "{file}" ; rml:referenceFormulation ql:CSV ] ;
  rr:subjectMap [ rr:template "http://e/person/{{id}}" ; rr:class :Person ] ;
  rr:predicateObjectMap [ rr:predicate :name ; rr:objectMap [ rml:reference "name" ] ] ,
    [ rr:predicate :age ; rr:objectMap [ rml:reference "age" ; rr:datatype xsd:integer ] ] ,
    [ rr:predicate :city ; rr:objectMap [ rr:template "http://e/city/{{city}}" ] ] ,
    [ rr:predicate :mail ; rr:objectMap [ rml:reference "mail" ] ] .
"""
_CONFIGURATION = """[CONFIGURATION]
output_file: {folder}/{name}.nt
output_format: N-TRIPLES
number_of_processes: 1
logging_level: ERROR
[SOURCE]
mappings: {folder}/{name}.ttl
"""


def write(folder: Path, rows: int) -> None:
    """Writes the table, an empty one, and their mappings."""
    for name, count in (("people", rows), ("empty", 0)):
        with (folder / f"{name}.csv").open("w") as file:
            file.write("id,name,age,city,mail\n")
            for i in range(count):
                mail = f"user{i}@example.org"
                file.write(f"{i},Name {i % 5000},{i % 90},City {i % 300},{mail}\n")
        (folder / f"{name}.ttl").write_text(_MAPPING.format(file=folder / f"{name}.csv"))
        (folder / f"{name}.ini").write_text(_CONFIGURATION.format(folder=folder, name=name))


def levada(folder: str) -> dict[str, Any]:
    """Levada's side, in this process."""
    from levada.connectors.config.rml.mapping_file import load_triples_maps
    from levada.connectors.ingest.rml.map_files import FileMapper

    maps, triples, cpu = load_triples_maps(f"{folder}/people.ttl"), 0, 0.0
    for _ in range(2):
        began = time.process_time()
        with open(f"{folder}/levada.nt", "wb") as out:
            for lines in FileMapper(maps, Path(folder)).lines():
                out.write(lines)
        cpu = time.process_time() - began
    with open(f"{folder}/levada.nt", "rb") as made:
        triples = sum(1 for _ in made)
    return {"triples": triples, "cpu_s": round(cpu, 2)}


def morph(folder: Path) -> dict[str, Any] | None:
    """Morph-KGC's side; None without its interpreter."""
    if not (python := os.environ.get("MORPH_KGC")):
        return None
    cpu = {}
    for name in ("empty", "people"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [python, "-m", "morph_kgc", f"{folder}/{name}.ini"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with (folder / "people.nt").open("rb") as made:
        triples = sum(1 for _ in made)
    return {"triples": triples, "cpu_s": round(cpu["people"] - cpu["empty"], 2)}
