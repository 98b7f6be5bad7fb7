"""``levada map``: writes the N-Quads of an RML mapping over the files that it names.

Functions, paths and packed files of a mapping can demand any amount of CPU time and memory of
native code, which no exception interrupts. So a thread ends the process above a limit, which grows
with the files.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from levada.cli.errors import FAILURE
from levada.connectors.config.rml.mapping_file import load_triples_maps
from levada.connectors.ingest.rml.map_files import FileMapper
from levada.core.cpu_guard import VARIABLE, cpu_limit
from levada.core.durable_files import sink_error
from levada.core.names import is_iri
from levada.errors import UsageError

EXIT_CODE = 5
MAX_MEMORY, MEMORY_GROWTH = 4 << 30, 50
"""Bytes that a mapping may take, and more of them for each byte of its files."""
_LOOK = 0.05  # s


def map_to_stdout(mapping: Path, base: str, allowed: Sequence[Path]) -> int:
    """Prints the N-Quads of a mapping, and on standard error what is not mapped. Returns the exit
    code. Raises ``UsageError`` for a wrong mapping, ``SourceError`` for a file that cannot be read.
    Ends the process above its limits.
    """
    if base and not is_iri(base):
        raise UsageError(f"--base {base} is not an IRI.", hint="Say --base http://example.com/.")
    with _limits(mapping.name) as allow_input:
        mapper = FileMapper(load_triples_maps(mapping, base), mapping.parent, allowed)
        try:
            allow_input(mapper.input_bytes())
            for lines in mapper.lines():
                _write(lines)
        finally:
            _tell(mapper)
    return FAILURE if mapper.report.count else 0


@contextmanager
def _limits(name: str) -> Iterator[Callable[[int], None]]:
    """Ends the process if the block takes too much CPU time or memory. Yields a function that
    raises the limits for the bytes of files.
    """
    process, began, size = psutil.Process(), time.process_time(), [0]
    memory_before = process.memory_info().rss
    limit = cpu_limit()
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_LOOK):
            seconds, memory = limit + size[0] / (1 << 20), MAX_MEMORY + MEMORY_GROWTH * size[0]
            if time.process_time() - began > seconds:
                _end(f"{name} has taken more than {seconds:,.0f} CPU seconds ({VARIABLE})")
            if process.memory_info().rss - memory_before > memory:
                _end(f"{name} has taken more than {memory / (1 << 30):,.1f} GiB of memory")

    threading.Thread(target=watch, name="levada map limits", daemon=True).start()
    try:
        yield lambda count: size.append(size.pop() + count)
    finally:
        is_over.set()


def _end(what: str) -> None:
    """Ends the process."""
    hint = "Look for functions, joins and // that multiply the data, or split the files."
    print(f"levada: The mapping {what}. {hint}", file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)


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
