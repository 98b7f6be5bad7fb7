"""What ends a process that reads it: found out in a process apart, after a death that nobody has
explained (docs/decisions/0016-what-kills-is-set-aside.md).

    deaths  -> which payloads, and how each ended the process
    main    -> that process: one intake after the other, and a number behind each that came to an
               end

The process does all that an intake task does but for writing, on the same Python and with the same
modules. It has no memory bound of its own, but the system is told to end it before any other when
memory runs out. Who is found guilty died twice, the second time alone in a fresh process, so that
a kill from outside condemns nobody. Cost: a start of Python (2 s) and one read of the epoch's data,
after a death only.
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

from levada.runtime.context import decode_context
from levada.runtime.task.intake import IntakeTask, Payload

_READY = b"ready\n"


def deaths(context: bytes, payloads: Sequence[bytes]) -> dict[int, str]:
    """The places of those payloads that end a process which reads them, with the signal or status
    with which it ended.
    """
    found: dict[int, str] = {}
    at = 0
    while at < len(payloads):
        done, _ = _try(context, payloads[at:])
        at += done
        if at < len(payloads):
            alone, how = _try(context, payloads[at : at + 1])
            if not alone:
                found[at] = how
            at += 1
    return found


def _try(context: bytes, payloads: Sequence[bytes]) -> tuple[int, str]:
    """How many of the payloads a fresh process has read, and how it ended. One that does not even
    start has read them all: it says nothing of them.
    """
    path = os.pathsep.join(folder for folder in sys.path if folder)
    run = subprocess.run(
        [sys.executable, "-m", "levada.runtime.task.probe"],
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
        return len(payloads), ""
    return run.stdout.count(b"\n") - 1, _ending(run.returncode)


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
    output of each that is read.
    """
    told = os.dup(1)
    os.dup2(2, 1)  # what native code prints is no answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    context, *payloads = sys.stdin.buffer.read().split(b"\n")
    os.write(told, _READY)
    for payload in payloads:
        # what raises is no death: the epoch itself will say it
        with suppress(Exception):
            IntakeTask(decode_context(context)).read(msgspec.json.decode(payload, type=Payload))
        os.write(told, b"read\n")


if __name__ == "__main__":
    main()
