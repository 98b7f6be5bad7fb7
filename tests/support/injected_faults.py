"""Faults that are injected into Levada's code where it works on one query: an exception, an endless
loop, an allocation of 10 GB. ``from_environment`` is for processes that a test starts: their
``sitecustomize`` calls it.
"""

from __future__ import annotations

import importlib
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NAME, MARK = "bad", "STRLEN"
"""The guilty query's name, and what only its text has."""
VARIABLE = "LEVADA_TEST_INJECTED"
ROOM = 4 << 30  # bytes of address space


def loop() -> None:
    """Never returns."""
    while True:
        pass


def allocate() -> None:
    """Allocates 10 GB of an address space that has less room."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    try:
        bytearray(10 << 30)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def fail() -> None:
    """Raises an exception that no code of Levada raises."""
    raise ZeroDivisionError("injected")


FAULTS: dict[str, Callable[[], None]] = {"exception": fail, "loop": loop, "memory": allocate}

STAGES = {
    "parse": "levada.engine.query_pipeline:parse",
    "translate": "levada.engine.query_pipeline:translate",
    "normalize": "levada.engine.query_pipeline:optimize",
    "check": "levada.engine.query_pipeline:check_plan",
    "plan": "levada.plan.topology.topology:Topology.add",
    "install": "levada.plan.sharing.query_sharing:QuerySharing._note_root",
    "operator": "levada.operators.operator_registry:evaluate",
    "result": "levada.operators.results.result_segments:_batch",
    "format": "levada.runtime.publication.publication:publish_batch",
    "manifest": "levada.runtime.driver.epoch_totals:hits",
    "decide": "levada.runtime.driver.derived_streams:unread",
    "removal": "levada.plan.topology.topology:Topology.remove",
}
"""Where Levada works on a query, from its text to its end."""
BEFORE_PLANS = ("parse", "translate", "normalize", "check")


def concerns(arguments: tuple[Any, ...]) -> bool:
    """Whether a call works on the guilty query."""
    for each in arguments:
        if each == NAME or getattr(each, "name", "") == NAME or NAME in _queries(each):
            return True
    return MARK in str([each for each in arguments if not hasattr(each, "seal")])


def _queries(value: Any) -> Any:
    """The queries of a plan, or those of a node that puts results out."""
    if type(getattr(value, "step", None)).__name__ == "Emit":
        return [member.query for i, member in enumerate(value.members) if value.alive[i]]
    return () if hasattr(value, "seal") else getattr(value, "queries", ())


def inject(patch: pytest.MonkeyPatch, stage: str, fault: str) -> None:
    """Has a stage meet a fault whenever it works on the guilty query."""
    module, _, path = STAGES[stage].partition(":")
    owner: Any = importlib.import_module(module)
    *owners, name = path.split(".")
    for part in owners:
        owner = getattr(owner, part)
    original = getattr(owner, name)

    def meet(*arguments: Any, **options: Any) -> Any:
        # the context of an operator has the whole plan
        if concerns(arguments[:1] if stage == "operator" else (*arguments, *options.values())):
            FAULTS[fault]()
        return original(*arguments, **options)

    patch.setattr(owner, name, meet)
    if stage == "operator":
        for user in ("stage_task", "ingest_task"):
            patch.setattr(importlib.import_module(f"levada.runtime.task.{user}"), name, meet)


def from_environment() -> None:
    """Injects what a variable names, such as ``parse loop``, for as long as this process lives."""
    for pair in filter(None, os.environ.get(VARIABLE, "").split(",")):
        inject(pytest.MonkeyPatch(), *pair.split())
