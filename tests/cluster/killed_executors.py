"""Executors of a local cluster as processes, to be killed."""

import os
import signal

import psutil


def executor_process(number: str) -> psutil.Process | None:
    """Returns the executor with this number among the processes below this one."""
    for process in psutil.Process().children(recursive=True):
        if _is_executor(process, number):
            return process
    return None


def kill_executor(number: str) -> int:
    """Kills the executor with this number; returns its process number, or 0 if there is none."""
    process = executor_process(number)
    if process is None:
        return 0
    os.kill(process.pid, signal.SIGKILL)
    return process.pid


def _is_executor(process: psutil.Process, number: str) -> bool:
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return any("CoarseGrainedExecutorBackend" in w for w in words) and (
        words[words.index("--executor-id") + 1] == number if "--executor-id" in words else False
    )
