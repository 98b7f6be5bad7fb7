"""What ends a process that reads it: found out in a process apart, after a death that nobody has
explained (docs/decisions/0016-what-kills-is-set-aside.md).

    deaths    -> which payloads, and how each ended the process
    rehearse  -> how a whole job ends the process, and in which node
    main      -> that process: one intake after the other, and a line behind each that came to an
                 end; or a whole job, and a line before each node

A job that is rehearsed writes what its tasks write, and nobody names it.

The process does all that an intake task does but for writing, on the same Python and with the same
modules, and the system ends it where an operator, or reading a reference, exceeds its limit of CPU
seconds (``runtime.task.work_note``). It has no memory bound of its own, but the system is told to
end it before any other when memory runs out. Who is found guilty died twice, the second time alone
in a fresh process, so that a kill from outside condemns nobody. Cost: a start of Python (2 s) and
one read of the epoch's data, after a death only.
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
from levada.plan.execution.plan import PlanNode
from levada.runtime.executor import Blob, Job, deliver
from levada.runtime.task import entry_points
from levada.runtime.task.exchange import Exchange
from levada.runtime.task.ingest_task import IntakeTask, Payload
from levada.runtime.task.stage_task import StageTask
from levada.runtime.task.work_note import CpuBound

_READY, _DONE = b"ready\n", b"done"


def find_crashes(context: bytes, payloads: Sequence[bytes]) -> dict[int, str]:
    """The places of those payloads that end a process which reads them, with the signal or status
    with which it ended.
    """
    crashes: dict[int, str] = {}
    at = 0
    while at < len(payloads):
        done, _ = _try(context, payloads[at:])
        at += done
        if at < len(payloads):
            alone, how = _try(context, payloads[at : at + 1])
            if not alone:
                crashes[at] = how
            at += 1
    return crashes


def _try(context: bytes, payloads: Sequence[bytes]) -> tuple[int, str]:
    """How many of the payloads a fresh process has read, and how it ended. One that does not even
    start has read them all: it says nothing of them.
    """
    answers, status = _run_apart(context, payloads)
    return (len(payloads), "") if answers is None else (len(answers), _ending(status))


def rehearse(job: Job) -> tuple[int, str] | None:
    """The node in which a job ends a fresh process (-1: before the first) and how it does; None if
    it does not.
    """
    arguments = str(job.stages), str(job.partitions)
    answers, status = _run_apart(job.context, job.payloads, *arguments)
    if answers is None or answers[-1:] == [_DONE] or status == 0:
        return None
    return (int(answers[-1]) if answers else -1), _ending(status)


def _run_apart(
    context: bytes, payloads: Sequence[bytes], *arguments: str
) -> tuple[list[bytes] | None, int]:
    """The lines that a fresh process has told, and its status; None if it did not start."""
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
    """How a process ended, by the number that the system gives.

    >>> _ending(-11), _ending(3)
    ('SIGSEGV', 'exit status 3')
    """
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"exit status {status}"


def main() -> None:
    """Reads the context and the payloads from standard input, a line each, and tells on standard
    output of each that is read. With numbers of stages and partitions: runs the job.
    """
    output = os.dup(1)
    os.dup2(2, 1)  # what native code prints is no answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    context, *payloads = sys.stdin.buffer.read().split(b"\n")
    os.write(output, _READY)
    if sys.argv[1:]:
        stages, partitions = map(int, sys.argv[1:])
        with suppress(Exception), CpuBound().bound():
            _run(output, Job(context, [p for p in payloads if p], stages, partitions))
        os.write(output, _DONE + b"\n")
        return
    for payload in payloads:
        # what raises is no death: the epoch itself will say it
        with suppress(Exception), CpuBound().bound():
            IntakeTask(decode_context(context)).read(msgspec.json.decode(payload, type=Payload))
        os.write(output, b"read\n")


class _TellingStage(StageTask):
    """A stage that tells of each node before it is evaluated."""

    output = 1

    def _node(self, node: PlanNode, exchange: Exchange) -> None:
        os.write(self.output, b"%d\n" % node.id)
        super()._node(node, exchange)


def _run(output: int, job: Job) -> None:
    """A job as the local executor runs it."""
    _TellingStage.output = output
    context = decode_context(job.context)
    plan = load_plan(context.plan)
    sent = [pair for payload in job.payloads for pair in entry_points.intake(job.context, payload)]
    for number in range(1, job.stages + 1):
        inboxes = deliver(sent, job.partitions)
        sent = [
            pair
            for p in range(job.partitions)
            for pair in _TellingStage(context, plan, number, p).run(_as_bytes(inboxes[p]))
        ]


def _as_bytes(blobs: Sequence[Blob]) -> list[bytes]:
    return [bytes(blob) for blob in blobs]


if __name__ == "__main__":
    main()
