"""``kernels --targets``: each kernel compiled for several processors, side by side on this one.

A target is a process that compiles for it (``NUMBA_CPU_NAME``), with a folder of its own for what
numba compiles; one more compiles as Levada does by itself. All are alive at once and asked in turn,
kernel by kernel and round by round, each time over columns made anew; the best round counts, and
what seems far from its best is asked again. So what the machine does besides, and where columns
lie, meets all alike.

What a target has and this machine has not is read from a table of those extensions that a compiler
uses by itself. With ``NUMBA_CACHE_DIR`` the folders are kept below it, and the next run need not
compile.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
from rich.console import Console
from rich.table import Table

from bench.apart import SideError
from bench.case import Case
from bench.result import CountError, Result

ROUNDS = 5
WHILE = 0.04  # CPU seconds a kernel, target and round
WITHIN = 1.2  # of the best: what is further off is marked
OURS = "levada"

_HASWELL = "avx2 bmi bmi2 f16c fma lzcnt movbe popcnt"
_SKYLAKE = f"{_HASWELL} avx512bw avx512cd avx512dq avx512f avx512vl"
_LATER = "avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512vpopcntdq gfni"
TARGETS: Mapping[str, Mapping[str, str]] = {
    "x86_64": {
        "haswell": _HASWELL,
        "znver3": f"{_HASWELL} sse4a",
        "znver4": f"{_SKYLAKE} {_LATER} sse4a",
        "skylake-avx512": _SKYLAKE,
    },
    "aarch64": {"generic": "neon"},
}


def split(machine: str, features: Mapping[str, bool]) -> tuple[list[str], dict[str, list[str]]]:
    """The targets that a machine can run, and the others with what it lacks.

    >>> split("x86_64", dict.fromkeys(TARGETS["x86_64"]["haswell"].split(), True))[0]
    ['haswell']
    """
    known = TARGETS.get(machine, {})
    lacking = {
        name: [need for need in needs.split() if not features.get(need)]
        for name, needs in known.items()
    }
    return [name for name in known if not lacking[name]], {
        name: lack for name, lack in lacking.items() if lack
    }


@dataclass(frozen=True, slots=True)
class Compiled:
    """A process that has the kernels for one target."""

    name: str
    process: subprocess.Popen[str]

    def ask(self, *question: Any) -> Any:
        """The answer to one line."""
        assert self.process.stdin is not None and self.process.stdout is not None, (
            "it was started with pipes"
        )
        print(json.dumps(question), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SideError(
                f"The kernels for {self.name} failed with exit code {self.process.wait()}."
            )
        return json.loads(answer)


@contextmanager
def compiled(name: str, folder: Path) -> Iterator[Compiled]:
    """A process for a target, or for what Levada compiles for by itself (``OURS``)."""
    root = Path(__file__).resolve().parent.parent
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(folder / name),
        "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    if name != OURS:
        environment |= {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, "-m", "bench.kernel_targets"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield Compiled(name, process)
        finally:
            process.kill()


def measure(scale: float, names: list[str]) -> dict[str, dict[str, int]]:
    """Kernel -> target -> rows per CPU-second."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="levada-targets-")))
        kept = Path(os.environ.get("NUMBA_CACHE_DIR", folder))
        processes = [stack.enter_context(compiled(name, kept)) for name in names]
        kernels = [process.ask("load") for process in processes][-1]
        wanted = re.compile(os.environ.get("LEVADA_KERNELS", ""))  # a part of the names
        chosen = [kernel for kernel in kernels if wanted.search(kernel)]
        return {kernel: _best(processes, kernel, scale) for kernel in chosen}


def behind(rates: Mapping[str, int]) -> float:
    """How many times what Levada compiles by itself the best target does."""
    return round(max(rates.values()) / rates[OURS], 2)


def _best(processes: list[Compiled], kernel: str, scale: float) -> dict[str, int]:
    best = dict.fromkeys((process.name for process in processes), 0)
    for process in processes:
        process.ask("check", kernel, scale)
    for turn in range(2 * ROUNDS):
        if turn >= ROUNDS and behind(best) <= WITHIN:
            break
        first = turn % len(processes)
        for process in processes[first:] + processes[:first]:
            best[process.name] = max(best[process.name], process.ask("time", kernel, scale))
    return best


@dataclass(frozen=True, slots=True)
class Compared(Result):
    """Kernels by targets; ``more`` has ``rates``, how far Levada's are ``behind`` the best, which
    are ``far``, and what is ``left_out``.
    """

    def show(self, console: Console) -> None:
        """A row a kernel, a column a target."""
        rates: Mapping[str, Mapping[str, int]] = self.more["rates"]
        names = list(next(iter(rates.values())))
        table = Table(title="Million rows per CPU-second", title_justify="left", box=None)
        table.add_column("", no_wrap=True)
        for name in [*names, "best / levada"]:
            table.add_column(name, justify="right")
        for kernel, each in rates.items():
            mark = " *" if kernel in self.more["far"] else ""
            table.add_row(kernel, *(_millions(each[n]) for n in names), f"{behind(each):.2f}{mark}")
        console.print(table)
        for name, lack in self.more["left_out"].items():
            console.print(f"{name} is left out: this machine has no {', '.join(lack)}.")


def _millions(rate: int) -> str:
    return f"{rate / 1e6:,.0f}" if rate >= 1e8 else f"{rate / 1e6:.1f}"


def run(scale: float) -> Compared:
    """All kernels for all targets that this machine can run."""
    runnable, left_out = split(platform.machine(), get_host_cpu_features())
    rates = measure(scale, [*runnable, OURS])
    off = {kernel: behind(each) for kernel, each in rates.items()}
    far = [kernel for kernel, ratio in off.items() if ratio > WITHIN]
    ours = {"count": len(rates), "each": {kernel: each[OURS] for kernel, each in rates.items()}}
    more = {
        "machine": get_host_cpu_name(),
        "rates": rates,
        "behind": off,
        "far": far,
        "left_out": left_out,
    }
    return Compared("kernels --targets", ours, more=more)


class _Answers:
    """The other process: one kernel's case at a time, made anew for each question."""

    def __init__(self) -> None:
        self.cases: dict[str, Callable[[int], Case]] = {}

    def load(self) -> list[str]:
        """Compiles; the kernels' names."""
        self.cases = {
            make.__name__: make for make, _ in importlib.import_module("bench.kernel_cases").CASES
        }
        return list(self.cases)

    def check(self, kernel: str, scale: float) -> bool:
        """That the kernel gives what its twin gives, on few rows."""
        kernels = importlib.import_module("bench.kernels")
        case = self.cases[kernel](max(int(kernels.FEW * scale), 1000))
        if not kernels.same(case.kernel(), case.twin()):
            raise CountError(f"The kernel {kernel} and its twin differ.")
        return True

    def time(self, kernel: str, scale: float) -> int:
        """Rows per CPU-second, the first call apart."""
        rows: int = importlib.import_module("bench.kernels").ROWS
        case: Case = self.cases[kernel](max(int(rows * scale), 1000))
        case.kernel()
        calls, began = 0, time.thread_time()
        while (spent := time.thread_time() - began) < WHILE:
            case.kernel()
            calls += 1
        return round(calls * case.rows / spent)


def main() -> None:
    """Answers questions, a line each, until there are no more."""
    answers = _Answers()
    for line in sys.stdin:
        what, *given = json.loads(line)
        print(json.dumps(getattr(answers, what)(*given)), flush=True)


if __name__ == "__main__":
    main()
