"""``levada test``: runs queries over small inputs and compares their results with files.

    alarms/hot.cql              a query, or several; or an app file with streams and queries
    alarms/Readings.csv         the input of the stream Readings, typed by ``schema=auto``
    alarms/expected/hot.csv     the expected results of the query hot: csv, tsv, json or ndjson

An RDF stream is called after its file, too: ``s.nt`` is the stream whose IRI ends in ``/s`` or
``#s``. A case runs without Spark, to the end of its inputs, so all windows close. Rows of one
report may come in any order.

Cost: a start of an engine for each case, some tenths of a second.
"""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from levada.cli.app.app_file import App, QuerySource, load_app, read_query
from levada.cli.app.run_app import run_app
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.serialization.encode_batch import records
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import heading
from levada.core.durable_files import read_bounded, write_atomic
from levada.core.frozen import frozen
from levada.core.text_columns import join_lines
from levada.errors import LevadaError, UsageError, escape_controls
from levada.language.dialects.detect import dialect_of_ending

if TYPE_CHECKING:
    from levada.connectors.serialization.serialize import Batch

FORMATS = (Format.CSV, Format.TSV, Format.JSON, Format.NDJSON)
_TABLES = (".csv", ".tsv", ".ndjson", ".json", ".parquet")


@frozen
class CaseOutcome:
    """The outcome of a case. ``difference``: the lines that differ, "" if none do. ``fault``: why
    it could not run.
    """

    folder: Path
    seconds: float
    difference: str = ""
    fault: str = ""

    @property
    def passed(self) -> bool:
        """Whether all results are as expected."""
        return not self.difference and not self.fault


MAX_EXPECTED_BYTES = 64_000_000


@frozen
class Results:
    """A sink that keeps the results of each query, by their names."""

    kept: dict[str, list[tuple[Sequence[str], Batch]]] = field(default_factory=dict)

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Keeps a batch."""
        self.kept.setdefault(query, []).append((tuple(variables), batch))
        return []


def find_cases(folder: str | Path) -> list[Path]:
    """Returns the folders with expected results, ``folder`` itself or those below it, sorted.
    Raises ``UsageError`` if there are none.
    """
    root = Path(folder)
    cases = sorted(path.parent for path in root.rglob("expected") if path.is_dir())
    if not cases:
        hint = "A case is a folder with queries, inputs and a folder expected/ of results."
        raise UsageError(f"There is no case in {root}.", hint=hint)
    return cases


def check_case(folder: str | Path) -> None:
    """Runs a case. Raises ``AssertionError`` with the difference if its results are others."""
    outcome = run_case(Path(folder))
    assert outcome.passed, f"{outcome.folder}: {outcome.fault or outcome.difference}"


def run_case(folder: Path, *, update: bool = False) -> CaseOutcome:
    """Runs a case and compares its results, or writes them in place of the expected ones
    (``update``). A record that cannot be read is a fault.
    """
    began = time.monotonic()
    difference = fault = ""
    try:
        expected = _expected_files(folder)
        app, results = _load_case(folder), Results()
        with TemporaryDirectory() as out:
            options = replace(app.options, checkpoint=None, out=out)
            summary = run_app(
                replace(app, options=options), once=True, keep_open=False, overwrite=True,
                on_results=results, master="none",
            )  # fmt: skip
        for stream, counts in summary.streams.items():
            for reason in counts.dead_letter_reasons:
                fault += f"{stream}: dead letter: {reason}\n"
        names = [query.name for query in app.queries]
        for name, path in expected.items():
            if name not in names:
                message = f"{path} is of no query of the case: they are {', '.join(names)}."
                raise UsageError(message)
            text = _text_of(name, Format(path.suffix[1:]), results)
            if update:
                write_atomic(path, text.encode())
            else:
                difference += _difference(path, text)
    except LevadaError as error:
        fault += error.message + (f" {error.hint}" if error.hint else "")
    return CaseOutcome(folder, time.monotonic() - began, difference, fault)


def _expected_files(folder: Path) -> dict[str, Path]:
    """Returns the file of each query with expected results."""
    files = sorted(path for path in (folder / "expected").iterdir() if path.is_file())
    for path in files:
        if path.suffix[1:] not in FORMATS:
            raise UsageError(
                f"{path} is no file of results.", hint=f"Say one of .{', .'.join(FORMATS)}."
            )
    return {path.stem: path for path in files}


def _load_case(folder: Path) -> App:
    """Returns the application of a case: that of its app file, or of its queries and inputs."""
    apps = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])
    if apps:
        return load_app(apps[0])
    files = sorted(path for path in folder.iterdir() if path.is_file())
    queries = [p for p in files if p.suffix == ".rq" or dialect_of_ending(p.suffix)]
    if not queries:
        hint = "Put a query file there, or an app file such as app.yaml."
        raise UsageError(f"The case {folder} has no query.", hint=hint)
    sources = [read_query(path) for path in queries]
    streams = [
        StreamConfig.from_options(name, path, **_options_of(path))
        for path in files
        if path not in queries
        for name in _stream_names(path, sources)
    ]
    return App(streams=tuple(streams), queries=tuple(sources))


def _options_of(path: Path) -> dict[str, Any]:
    return {"schema": "auto"} if path.suffix in _TABLES else {}


def _stream_names(path: Path, queries: Sequence[QuerySource]) -> list[str]:
    """Returns the streams that a file is the input of: a table has the name of the file."""
    if path.suffix in _TABLES:
        return [path.stem]
    # imported here: a case of tables needs no SPARQL
    from levada.language import parse
    from levada.language.sparql.term_ast import Constant
    from levada.language.translate.sparql.windows import iri

    names: dict[str, None] = {}
    for query in queries:
        for clause in getattr(parse(query.text, query.dialect), "windows", ()):
            if isinstance(clause.stream, Constant):
                names[iri(clause.stream)] = None
    return [n for n in names if n.rsplit("/", 1)[-1].rsplit("#", 1)[-1] == path.stem]


def _text_of(name: str, form: Format, results: Results) -> str:
    """Returns the results of a query as the text of a file."""
    batches = results.kept.get(name, [])
    lines = [join_lines(records(form, name, variables, batch)) for variables, batch in batches]
    head = heading(form, *batches[0]) if batches else b""
    return (head + b"".join(lines)).decode()


def _difference(path: Path, results: str) -> str:
    """Returns the lines that differ, as a diff; the order of rows within a report is free. Raises
    ``UsageError`` for a file that holds no results.
    """
    form = Format(path.suffix[1:])
    try:
        expected = read_bounded(path, MAX_EXPECTED_BYTES).decode()
        left = _comparable(form, expected, expected)
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} holds no results: {reason}.") from error
    right = _comparable(form, results, expected)
    diff = difflib.unified_diff(left, right, f"{path}", "results", lineterm="", n=1)
    return "".join(f"{line}\n" for line in diff)


def _comparable(form: Format, text: str, expected: str) -> list[str]:
    """Returns the lines of results in one order, and in one spelling. The member ``query`` counts
    only if it is expected.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if form in (Format.CSV, Format.TSV):
        return [*lines[:1], *sorted(lines[1:])]
    rows = [json.loads(line) for line in lines]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line is not an object")
    for row in rows:
        if '"query"' not in expected:
            row.pop("query", None)
        if bindings := row.get("results", {}).get("bindings"):
            bindings.sort(key=lambda binding: json.dumps(binding, sort_keys=True))
    return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)


def run_cases(folder: Path, junit: Path | None, *, update: bool) -> int:
    """Runs all cases of a folder and prints a line for each, with its difference. Returns the exit
    code: 1 if a case fails. Raises ``UsageError``.
    """
    outcomes = []
    for case in find_cases(folder):
        outcome = run_case(case, update=update)
        word = "ok" if outcome.passed else "FAILED"
        print(f"{word:6} {case} ({outcome.seconds:.1f} s)", flush=True)
        if not outcome.passed:
            print("".join(f"    {line}\n" for line in _lines_of(outcome)), end="", flush=True)
        outcomes.append(outcome)
    failed = sum(not outcome.passed for outcome in outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    if junit is not None:
        write_atomic(junit, ET.tostring(_junit(outcomes), encoding="utf-8", xml_declaration=True))
    return int(failed > 0)


def _lines_of(outcome: CaseOutcome) -> Iterator[str]:
    """Returns the lines to print; others may have written the files of a case."""
    yield from map(escape_controls, (outcome.fault or outcome.difference).splitlines())


def _junit(outcomes: Sequence[CaseOutcome]) -> ET.Element:
    """Returns the outcomes as JUnit's XML."""
    failed = str(sum(not outcome.passed for outcome in outcomes))
    suite = ET.Element("testsuite", name="levada", tests=str(len(outcomes)), failures=failed)
    for outcome in outcomes:
        case = ET.SubElement(
            suite, "testcase", classname=str(outcome.folder.parent), name=outcome.folder.name,
            time=f"{outcome.seconds:.3f}",
        )  # fmt: skip
        if not outcome.passed:
            failure = ET.SubElement(case, "failure", message="the results differ")
            failure.text = outcome.fault or outcome.difference
    return suite
