"""Each side of a benchmark runs in a process of its own: a fresh JVM, no caches of the other's, its
own peak of memory.

    apart("bench.join:levada", folder="/tmp/x", epoch_rows=100_000)

calls ``bench.join.levada(folder=.., epoch_rows=..)`` there and gives what it returns, which is
JSON. Its standard error is ours.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.result import check_count

_ROOT = Path(__file__).resolve().parent.parent


class SideError(Exception):
    """A side did not end well; what it said is on standard error."""


def apart(function: str, **arguments: Any) -> dict[str, Any]:
    """What ``module:function`` returns for these arguments, called in a process of its own."""
    path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    command = [sys.executable, "-m", "bench.apart", function, json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, text=True, check=False)
    if done.returncode:
        raise SideError(f"{function} failed with exit code {done.returncode}.")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def supplied(
    function: str,
    folder: Path,
    given: Mapping[str, Any],
    expected: int,
    before: int,
    **arguments: Any,
) -> dict[str, Any]:
    """A side that reads rounds (``bench.steady``) of ``folder``: its results of the rounds, of
    which the number is checked.

    ``given`` are the sizes of its ``Supply``; ``expected`` the results of a round, ``before`` those
    of the warm-up.
    """
    name = function.partition(":")[2]
    supply = {
        **given,
        "folder": str(folder),
        "into": tempfile.mkdtemp(prefix=f"{name}-", dir=folder),
    }
    side = apart(function, supply=supply, **arguments)
    side["count"] -= before
    check_count(name, side["count"], expected * side["rounds_in_all"])
    return side


def main(function: str, arguments: str) -> None:
    """The other process: the answer is the last line of standard output."""
    module, _, name = function.partition(":")
    called: Callable[..., dict[str, Any]] = getattr(importlib.import_module(module), name)
    print(json.dumps(called(**json.loads(arguments))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
