"""Hosts on one machine: network namespaces of Linux with an address each, on one switch. What runs
at a host reaches the others by its link alone, which can be cut. It needs root and ``ip``.

A host's clock can be off: a library, compiled here, shifts what the system calls of its processes
say (``LD_PRELOAD``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

NEEDED = ("ip", "cc", "unshare")
TRIAL = "ip link add switch type bridge && ip link add port type veth peer name eth0"
SHIFT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long seconds(void) {
    const char *text = getenv("CLOCK_SHIFT");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += seconds();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (into)
        *into = read.tv_sec;
    return read.tv_sec;
}
"""


class Place(NamedTuple):
    """Where a process runs: what its command begins with, and variables of its environment."""

    command: Sequence[str] = ()
    variables: Mapping[str, str] = MappingProxyType({})


HERE = Place()
NONE: Mapping[int, int] = MappingProxyType({})


def missing_parts() -> str:
    """Returns what this machine lacks for hosts; "" if nothing."""
    if os.name != "posix" or os.geteuid() != 0:
        return "root"
    absent = [part for part in NEEDED if shutil.which(part) is None]
    if absent:
        return ", ".join(absent)
    tried = subprocess.run(["unshare", "-n", "sh", "-c", TRIAL], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "network namespaces"


class Hosts:
    """So many hosts, from 0 on. ``shifts``: seconds by which the clock of a host is off."""

    def __init__(
        self, folder: Path, count: int, shifts: Mapping[int, int] = MappingProxyType({})
    ) -> None:
        self._name, self._count, self._shifts = f"levada{os.getpid()}", count, shifts
        self._library = folder / "shift.so"
        if shifts:
            compiler = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(self._library), "-ldl"]
            subprocess.run(compiler, input=SHIFT, text=True, check=True)
        try:
            self._make()
        except BaseException:
            self.end()
            raise

    def _make(self) -> None:
        switch = self._host("switch")
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        for i in range(self._count):
            host = self._host(i)
            _ip("netns", "add", host)
            _ip("-n", switch, "link", "add", f"port{i}", "type", "veth",
                "peer", "name", "eth0", "netns", host)  # fmt: skip
            _ip("-n", switch, "link", "set", f"port{i}", "master", "switch", "up")
            _ip("-n", host, "address", "add", f"{self.address(i)}/24", "dev", "eth0")
            _ip("-n", host, "link", "set", "eth0", "up")
            _ip("-n", host, "link", "set", "lo", "up")

    def _host(self, name: object) -> str:
        return f"{self._name}-{name}"

    @staticmethod
    def address(i: int) -> str:
        """The address of a host."""
        return f"10.77.0.{i + 1}"

    def place(self, i: int) -> Place:
        """How a process is started at a host."""
        variables = {"SPARK_LOCAL_IP": self.address(i)}
        if i in self._shifts:
            clock = {"CLOCK_SHIFT": str(self._shifts[i]), "LD_PRELOAD": str(self._library)}
            variables |= clock
        return Place(("ip", "netns", "exec", self._host(i)), variables)

    def cut(self, i: int) -> None:
        """Cuts the link of a host."""
        _ip("-n", self._host("switch"), "link", "set", f"port{i}", "down")

    def mend(self, i: int) -> None:
        """Mends the link of a host."""
        _ip("-n", self._host("switch"), "link", "set", f"port{i}", "up")

    def end(self) -> None:
        """Removes the hosts, whose processes have ended."""
        for name in ("switch", *range(self._count)):
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", self._host(name))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
