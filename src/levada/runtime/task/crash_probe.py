"""Finds the input that crashes a process, in a separate process, after an unexplained crash
(docs/decisions/0016-what-kills-is-set-aside.md).

    find_crashes  -> which payloads, and how each ended the process
    rehearse      -> how a whole job ends the process, and in which node
    main          -> that process: one intake after the other, and a line behind each that came to
                     an end; or a whole job. A line before each node in either case

An intake also evaluates the first operators of queries. If the process ends in one of these, the
input is not at fault, and the query is looked for (``rehearse``).

A rehearsed job writes the files of its tasks, and no manifest names them.

The process does all the work of an intake task except writing, on the same Python and with the same
modules. The system ends it if an operator, or the reading of a reference, exceeds its limit of CPU
seconds (``runtime.task.work_note``). It has no memory bound of its own, but the system ends it
first when memory runs out. Guilty input has crashed two processes, the second time alone in a fresh
process, so a kill from outside does not condemn any input. Cost: a start of Python (2 s) and one
read of the epoch's data, only after a crash.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from levada.checkpoint.epoch_context import decode_context, load_plan
from levada.connectors.ingest.parse import json_ld_contexts
from levada.core.user_functions import declare_as_driver
from levada.errors import LevadaError
from levada.runtime.executor import AnyBlob, Job, deliver
from levada.runtime.task import entry_points
from levada.runtime.task.ingest_task import IntakeTask, Payload
from levada.runtime.task.stage_task import StageTask
from levada.runtime.task.work_note import CpuBound

_READY, _READ, _DONE = b"ready\n", b"read", b"done"


def find_crashes(context: bytes, payloads: Sequence[bytes]) -> dict[int, str]:
    """Returns the positions of the payloads that crash a process, with the signal or status of each
    crash.
    """
    crashes: dict[int, str] = {}
    at = 0
    while at < len(payloads):
        done, _ = _try(context, payloads[at:])
        at += done
        if at < len(payloads):
            alone, how = _try(context, payloads[at : at + 1])
            if not alone and how:
                crashes[at] = how
            at += 1
    return crashes


def _try(context: bytes, payloads: Sequence[bytes]) -> tuple[int, str]:
    """Counts the payloads that a fresh process has read, and describes how it ended ("": in an
    operator). If the process does not start, all count as read: nothing is known about them.
    """
    answers, status = _run_apart(context, payloads)
    if answers is None:
        return len(payloads), ""
    within = answers[-1:] not in ([], [_READ]) and int(answers[-1]) >= 0
    return answers.count(_READ), "" if within else _ending(status)


def rehearse(job: Job) -> tuple[int, str] | None:
    """Returns the node in which a job crashes a fresh process (-1: before the first) and how; None
    if it does not.
    """
    arguments = str(job.stages), str(job.partitions)
    answers, status = _run_apart(job.context, job.payloads, *arguments)
    if answers is None or answers[-1:] == [_DONE] or status == 0:
        return None
    return (max(int(answers[-1]), -1) if answers else -1), _ending(status)


def _run_apart(
    context: bytes, payloads: Sequence[bytes], *arguments: str
) -> tuple[list[bytes] | None, int]:
    """Returns the output lines of a fresh process and its status; None if it did not start."""
    path = os.pathsep.join(folder for folder in sys.path if folder)
    run = subprocess.run(
        [sys.executable, "-m", "levada.runtime.task.crash_probe", *arguments],
        input=b"\n".join([context, *payloads]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # a terminal's signals are for the engine
        check=False,
    )
    if not run.stdout.startswith(_READY):
        message = "What ended the engine could not be looked for: no process of Python starts here."
        warnings.warn(message, stacklevel=1)
        return None, 0
    return run.stdout.splitlines()[1:], run.returncode


def _ending(status: int) -> str:
    """Describes how a process ended, by its status.

    >>> _ending(-11), _ending(3)
    ('SIGSEGV', 'exit status 3')
    """
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"exit status {status}"


def main() -> None:
    """Reads the context and the payloads from standard input, a line each, and writes a line to
    standard output after each that is read. With numbers of stages and partitions: runs the job.
    """
    output = os.dup(1)
    os.dup2(2, 1)  # native code may print, which is not an answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    context, *payloads = sys.stdin.buffer.read().split(b"\n")
    os.write(output, _READY)
    decoded = decode_context(context)
    with suppress(LevadaError):
        declare_as_driver(decoded.functions, decoded.function_folders)
        json_ld_contexts.declare_as_driver(decoded.contexts)
    if sys.argv[1:]:
        stages, partitions = map(int, sys.argv[1:])
        with suppress(Exception), _ReportingBound(output).bound():
            _run(Job(context, [p for p in payloads if p], stages, partitions))
        os.write(output, _DONE + b"\n")
        return
    for payload in payloads:
        # an exception is not a crash: the epoch itself will raise it
        with suppress(Exception), _ReportingBound(output).bound():
            IntakeTask(decoded).read(msgspec.json.decode(payload, type=Payload))
        os.write(output, _READ + b"\n")


class _ReportingBound(CpuBound):
    """Writes each operator to the output before it is evaluated, and what follows it."""

    def __init__(self, output: int) -> None:
        super().__init__()
        self._output = output

    def begin(self, node: int, extra: int = 0) -> None:
        os.write(self._output, b"%d\n" % node)
        super().begin(node, extra)


def _run(job: Job) -> None:
    """Runs a job like the local executor."""
    context = decode_context(job.context)
    plan = load_plan(context.plan)
    sent = [pair for payload in job.payloads for pair in entry_points.intake(job.context, payload)]
    for number in range(1, job.stages + 1):
        inboxes = deliver(sent, job.partitions)
        sent = [
            pair
            for p in range(job.partitions)
            for pair in StageTask(context, plan, number, p).run(_as_bytes(inboxes[p]))
        ]


def _as_bytes(blobs: Sequence[AnyBlob]) -> list[bytes]:
    return [bytes(blob) for blob in blobs]


if __name__ == "__main__":
    main()
