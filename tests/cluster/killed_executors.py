"""Executors of a local cluster as processes, to be killed."""

import os
import signal

import psutil


def kill_executor(number: str) -> int:
    """Kills the executor with this number, a process of this one; returns its process number, or 0
    if there is none.
    """
    for process in psutil.Process().children(recursive=True):
        if _is_executor(process, number):
            os.kill(process.pid, signal.SIGKILL)
            return process.pid
    return 0


def _is_executor(process: psutil.Process, number: str) -> bool:
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return any("CoarseGrainedExecutorBackend" in w for w in words) and (
        words[words.index("--executor-id") + 1] == number if "--executor-id" in words else False
    )
