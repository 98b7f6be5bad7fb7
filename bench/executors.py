"""The executors of a session on a cluster of this machine: how many there are, and their end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil

PATIENCE = 180.0  # s


class Executors:
    """Those of a session, as many as are wanted."""

    def __init__(self, session: Any) -> None:
        context = session.sparkContext
        self._spark, self._jvm = context._jsc.sc(), context._jvm

    def ids(self) -> list[str]:
        """Those that there are, oldest first."""
        found = str(self._spark.getExecutorIds().mkString(",")).split(",")
        return sorted(filter(None, found), key=int)

    def want(self, number: int) -> None:
        """Has so many be there soon; does not wait."""
        jvm, gone = self._jvm, self.ids()[number:]
        nobody = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        self._spark.requestTotalExecutors(number, 0, nobody)
        if gone:
            leave = jvm.java.util.ArrayList()
            for executor in gone:
                leave.add(executor)
            self._spark.killExecutors(jvm.PythonUtils.toSeq(leave))

    def wait(self, number: int) -> None:
        """Until there are so many."""
        end = time.monotonic() + PATIENCE
        while len(self.ids()) != number:
            assert time.monotonic() < end, f"{number} executors are wanted, there are {self.ids()}"
            time.sleep(0.1)

    def kill(self) -> None:
        """The last one is gone at once."""
        last = self.ids()[-1]
        found = next((process for name, process in jvms() if name == last), None)
        assert found is not None, f"no process is the executor {last}"
        found.kill()


def jvms() -> Iterator[tuple[str, psutil.Process]]:
    """The JVM of each executor below this process, by its id."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            line = process.cmdline()
            if "--executor-id" in line and "java" in line[0]:
                yield line[line.index("--executor-id") + 1], process
