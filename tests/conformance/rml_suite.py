"""The test cases of RML-Core and RML-IO (``kg-construct/rml-core``, ``rml-io``).

They lie in ``../shared/data/rml`` and are read, never copied. A case is a folder with a mapping,
its data, and the expected quads; a case without them expects an error. The cases of RML-Core have
JSON: those with flat records of texts also run as CSV and as XML.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape

import pyoxigraph as ox
from reason_table import reason_table

from levada.connectors.config.rml.mapping_file import load_triples_maps
from levada.connectors.ingest.rml.map_files import FileMapper
from levada.errors import LevadaError

SUITE = Path(
    os.environ.get("LEVADA_RML_SUITE", Path(__file__).resolve().parents[3] / "shared/data/rml")
)
TARGET = "rml:logicalTarget, which is not supported"
HEAD = """
## RML

These are the cases of the W3C community group for RML-Core (`kg-construct/rml-core`) and for the
sources and targets of RML-IO (`rml-io`). The cases of RML-Core have JSON. Those with flat records
whose datatypes do not depend on the format also run as CSV and as XML. `levada map` writes the
quads, which are compared up to blank nodes.
"""


@dataclass(frozen=True)
class RmlCase:
    """A case of a suite."""

    suite: str
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def expected(self) -> bytes | None:
        """The expected quads; None for an error."""
        if "**Error expected?** Yes" in (self.folder / "README.md").read_text():
            return None
        files = [self.folder / name for name in ("output.nq", "default.nq")]
        return next((file.read_bytes() for file in files if file.exists()), b"")

    @property
    def has_targets(self) -> bool:
        return "logicalTarget" in (self.folder / "mapping.ttl").read_text()


CASES = [
    RmlCase(suite, folder)
    for suite in ("core", "io")
    for folder in sorted((SUITE / suite).glob("RML*"))
    if (folder / "mapping.ttl").exists()
]


def run(folder: Path) -> tuple[bytes, str]:
    """Maps the files of a folder; returns the quads and the fault."""
    try:
        mapper = FileMapper(load_triples_maps(folder / "mapping.ttl"), folder)
        quads = b"".join(mapper.lines())
    except LevadaError as error:
        return b"", str(error)
    return quads, "\n".join(mapper.report.sentences)


def canonical(quads: bytes) -> ox.Dataset:
    """The quads with canonical labels. Those of rml:UnsafeIRI are not IRIs, so the parser is
    lenient.
    """
    dataset = ox.Dataset(ox.parse(quads, ox.RdfFormat.N_QUADS, lenient=True))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def outcome(folder: Path, expected: bytes | None) -> str:
    """What is wrong with the result of a case; an empty text if nothing is."""
    quads, fault = run(folder)
    if expected is None:
        return "" if fault else "there is no error"
    if fault:
        return fault
    return "" if canonical(quads) == canonical(expected) else f"other quads: {quads.decode()}"


# -- the cases of RML-Core in other formats --

_RECORDS = re.compile(r'rml:iterator "\$\.?(\w*)\[\*\]" *;')
_REFERENCE = re.compile(r"""\$(?:\.(\w+)|\['([^']+)'\])""")


def as_text_tables(case: RmlCase) -> dict[str, list[dict[str, str]]] | None:
    """The records of a case by file, if they are flat and no datatype depends on the format."""
    mapping = (case.folder / "mapping.ttl").read_text()
    tables = {}
    member = dict(
        zip(re.findall(r'"([^"]+\.json)"', mapping), _RECORDS.findall(mapping), strict=False)
    )
    for name, key in member.items():
        path = case.folder / name
        if not path.exists():
            return None
        document: Any = json.loads(path.read_text())
        records = document[key] if key else document
        values = [value for record in records for value in record.values()]
        same = len({tuple(record) for record in records}) == 1
        if not same or not all(type(value) in (str, int) for value in values):
            return None
        typed = any(isinstance(value, int) for value in values) and "datatype" not in mapping
        if typed and b"XMLSchema#integer" in (case.expected or b""):
            return None  # an integer of JSON has its datatype, a text of CSV and XML has none
        tables[name] = [{key: str(value) for key, value in record.items()} for record in records]
    return tables or None


def write_as(case: RmlCase, form: str, folder: Path) -> bool:
    """Writes a case in another format; false if its data do not allow it."""
    tables = None if case.expected is None else as_text_tables(case)
    if tables is None:
        return False
    mapping = (case.folder / "mapping.ttl").read_text()
    mapping = mapping.replace("rml:JSONPath", {"csv": "rml:CSV", "xml": "rml:XPath"}[form])
    mapping = _RECORDS.sub("" if form == "csv" else 'rml:iterator "/all/record";', mapping)
    mapping = _REFERENCE.sub(lambda match: match[1] or match[2], mapping)
    mapping = mapping.replace('.json"', f'.{form}"')
    (folder / "mapping.ttl").write_text(mapping)
    for name, records in tables.items():
        path = folder / name.replace(".json", f".{form}")
        if form == "csv":
            _write_csv(path, records)
        elif not _write_xml(path, records):
            return False
    return True


def _write_csv(path: Path, records: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def _write_xml(path: Path, records: list[dict[str, str]]) -> bool:
    if any(not re.fullmatch(r"\w+", key) for key in records[0]):
        return False
    rows = (
        "".join(f"<{key}>{escape(value)}</{key}>" for key, value in record.items())
        for record in records
    )
    inner = "".join(f"<record>{row}</record>" for row in rows)
    path.write_text(f"<all>{inner}</all>")
    return True


def in_other_formats() -> dict[str, int]:
    """The number of cases of RML-Core that run in each other format."""
    with TemporaryDirectory() as folder:
        core = [case for case in CASES if case.suite == "core"]
        return {
            form: sum(write_as(case, form, Path(folder)) for case in core)
            for form in ("csv", "xml")
        }


def page() -> Iterator[str]:
    """The lines of docs/conformance.md."""
    yield HEAD
    yield "| suite | cases | passed | refused |"
    yield "|---|---|---|---|"
    for suite in ("core", "io"):
        cases = [case for case in CASES if case.suite == suite]
        passed = [case for case in cases if not outcome(case.folder, case.expected)]
        yield f"| {suite} | {len(cases)} | {len(passed)} | {len(cases) - len(passed)} |"
    for form, count in in_other_formats().items():
        yield f"| core as {form.upper()} | {count} | {count} | 0 |"
    yield "\nNot supported:\n"
    targets = [case.name for case in CASES if case.has_targets]
    yield from reason_table({"a target: `levada map` writes to standard output": targets})
