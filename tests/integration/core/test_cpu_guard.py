"""Work that takes too much CPU is interrupted where it is, and nothing behind it is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from levada.core.cpu_guard import CpuTimeError, cpu_guard, enable


def use_cpu(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.fixture
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEVADA_WATCHDOG", "0.1")
    enable()


@pytest.mark.usefixtures("enabled")
def test_endless_work_is_interrupted_in_its_thread() -> None:
    found: list[BaseException] = []

    def work() -> None:
        try:
            with cpu_guard(), cpu_guard():
                use_cpu(1e9)
        except CpuTimeError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    with cpu_guard():
        thread.join()
    assert "It took more than 0.1 CPU seconds" in str(found[0])


@pytest.mark.usefixtures("enabled")
def test_works_extend_the_limit_and_waiting_does_not_count() -> None:
    with cpu_guard(100_000):
        use_cpu(0.5)
    with cpu_guard():
        time.sleep(0.5)


@pytest.mark.long
@pytest.mark.usefixtures("enabled")
def test_what_is_interrupted_as_it_ends_leaves_nothing_behind() -> None:
    for i in range(60):
        try:
            with cpu_guard():
                use_cpu(0.08 + 0.001 * i)
        except CpuTimeError:
            pass
        use_cpu(0.005)  # nothing is raised here


def test_nothing_is_interrupted_unless_a_process_is_levadas() -> None:
    text = (
        "import time\n"
        "from levada.core.cpu_guard import cpu_guard\n"
        "with cpu_guard():\n"
        "    while time.thread_time() < 1: pass\n"
    )
    environ = {"LEVADA_WATCHDOG": "0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", text], env=environ, check=False, timeout=100)
    assert done.returncode == 0
