"""Counts of what an engine has Spark do: calls of py4j, bytes to the JVM, jobs, tasks.

Calls and bytes are counted where py4j sends them, jobs and tasks by the numbers that Spark's
schedulers give them. Commands that let go of objects are left out, since the collector of Python
decides when they are sent. Bytes to the JVM are those of commands; and of records, which the engine
gives by a file or a socket.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

NAMES = ("py4j calls", "bytes to the JVM", "jobs", "tasks")


class SparkCounts:
    """Counts since the beginning of the process. Make it before the engine starts."""

    def __init__(self) -> None:
        from py4j.clientserver import ClientServerConnection
        from py4j.java_gateway import GatewayConnection
        from py4j.protocol import MEMORY_COMMAND_NAME

        self.sent: Counter[str] = Counter()
        self._is_looking = False
        for connection in (ClientServerConnection, GatewayConnection):
            self._count_commands(connection, MEMORY_COMMAND_NAME)
        self._count_records()

    def _count_commands(self, connection: Any, memory: str) -> None:
        send = connection.send_command

        def counted(client: Any, command: str) -> Any:
            if not self._is_looking and not command.startswith(memory):
                self.sent["py4j calls"] += 1
                self.sent["bytes to the JVM"] += len(command.encode())
            return send(client, command)

        connection.send_command = counted

    def _count_records(self) -> None:
        from pyspark import SparkContext

        give = SparkContext._serialize_to_jvm

        def counted(context: Any, records: Any, *rest: Any) -> Any:
            self.sent["bytes to the JVM"] += sum(map(len, records))
            return give(context, records, *rest)

        SparkContext._serialize_to_jvm = counted

    def so_far(self) -> dict[str, int]:
        """The counts by name. Call it while no epoch runs."""
        self._is_looking = True
        try:
            return {**dict.fromkeys(NAMES, 0), **self.sent, **_scheduled()}
        finally:
            self._is_looking = False


def _scheduled() -> dict[str, int]:
    """Jobs and tasks that Spark's schedulers have numbered; none before there is a context."""
    module = sys.modules.get("pyspark")
    context = None if module is None else module.SparkContext._active_spark_context
    if context is None:
        return {}
    scala: Any = context._jsc.sc()
    return {
        "jobs": int(scala.dagScheduler().nextJobId()),
        "tasks": int(scala.taskScheduler().nextTaskId()),
    }
