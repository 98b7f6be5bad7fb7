"""``levada map``: writes the N-Quads of an RML mapping over the files that it names."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from levada.cli.errors import FAILURE
from levada.connectors.config.rml.mapping_file import load_triples_maps
from levada.connectors.ingest.rml.map_files import FileMapper
from levada.core.durable_files import sink_error
from levada.core.names import is_iri
from levada.errors import UsageError


def map_to_stdout(mapping: Path, base: str, allowed: Sequence[Path]) -> int:
    """Prints the N-Quads of a mapping, and on standard error what is not mapped. Returns the exit
    code. Raises ``UsageError`` for a wrong mapping, ``SourceError`` for a file that cannot be read.
    """
    if base and not is_iri(base):
        raise UsageError(f"--base {base} is not an IRI.", hint="Say --base http://example.com/.")
    mapper = FileMapper(load_triples_maps(mapping, base), mapping.parent, allowed)
    try:
        for lines in mapper.lines():
            _write(lines)
    finally:
        _tell(mapper)
    return FAILURE if mapper.report.count else 0


def _write(lines: memoryview) -> None:
    try:
        sys.stdout.buffer.write(lines)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None  # the reader has seen enough
    except OSError as error:
        raise sink_error(error, "standard output") from error


def _tell(mapper: FileMapper) -> None:
    """Prints the first faults and how many there are."""
    report = mapper.report
    for sentence in report.sentences:
        print(f"levada: {sentence}", file=sys.stderr)
    if report.count > len(report.sentences):
        more = report.count - len(report.sentences)
        print(f"levada: {more:,} more faults are not shown.", file=sys.stderr)
