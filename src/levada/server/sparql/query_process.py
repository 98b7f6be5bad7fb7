"""The process of one query: it is started, gets its graphs, and ends with its answer, at its time
limit, or when its client disconnects.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from levada.core.frozen import frozen
from levada.server.problem_json import Problem
from levada.server.settings import Limits

_SCRIPT = Path(__file__).with_name("query_worker.py")
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")  # environment variables without secrets


@frozen
class Part:
    """The N-Triples of a graph (None: the default graph)."""

    graph: str | None
    lines: bytes


@frozen
class Ask:
    """A query. ``base``: the base of its relative IRIs. ``default``, ``named``: the dataset of the
    protocol; None without one.
    """

    query: str
    form: str
    base: str
    default: Sequence[str] | None = None
    named: Sequence[str] = ()


async def answer(ask: Ask, parts: Sequence[Part], limits: Limits) -> bytes:
    """Runs a query in a process. Returns the answer in the format ``ask.form``. Raises ``Problem``
    400, 413, 503. Ends the process also if cancelled.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_SCRIPT),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
    )
    try:
        async with asyncio.timeout(limits.sparql_seconds):
            await _send_query(process, ask, parts, limits)
            output = await _read_output(process, limits)
            await process.wait()  # a kill after the end would take the exit code from asyncio
    except TimeoutError:
        seconds = limits.sparql_seconds
        raise Problem(
            503,
            f"The query took more than {seconds:g} s, and was ended.",
            hint="Ask for less.",
            limit="seconds",
        ) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return _parse_output(output)


async def _send_query(
    process: asyncio.subprocess.Process, ask: Ask, parts: Sequence[Part], limits: Limits
) -> None:
    assert process.stdin is not None, "it is a pipe"
    head: dict[str, Any] = {
        "query": ask.query,
        "form": ask.form,
        "base": ask.base,
        "default": None if ask.default is None else list(ask.default),
        "named": list(ask.named),
        "parts": [[part.graph, len(part.lines)] for part in parts],
        "seconds": int(limits.sparql_seconds) + 1,
        "memory": limits.sparql_memory,
        "server": os.getpid(),
    }
    with suppress(BrokenPipeError, ConnectionResetError):  # it died: its output is read next
        process.stdin.write(json.dumps(head).encode() + b"\n")
        for part in parts:
            process.stdin.write(part.lines)
            await process.stdin.drain()
        process.stdin.close()


async def _read_output(process: asyncio.subprocess.Process, limits: Limits) -> bytes:
    assert process.stdout is not None, "it is a pipe"
    output = bytearray()
    while block := await process.stdout.read(1 << 16):
        output += block
        if len(output) > limits.sparql_answer:
            most = limits.sparql_answer
            raise Problem(413, f"The answer has more than {most:,} bytes.", hint="Say LIMIT.")
    return bytes(output)


def _parse_output(output: bytes) -> bytes:
    head, end, data = output.partition(b"\n")
    if not end:  # the system ended it for its memory
        raise Problem(503, "The query took more memory than it may have.", hint="Ask for less.")
    wrong = json.loads(head)
    if wrong:
        place = {"line": wrong.get("line"), "column": wrong.get("column")}
        raise Problem(400, f"The query cannot be run: {wrong['told']}.", **place)
    return data
