"""Placements by the names of tasks: carried from the graph that was learned from to another, and as
files.

    {"levada": "placement", "machines": 12, "placer": "refined", "machine": {"14": 3, ...}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from levada.errors import UsageError
from levada.model.arrays import Ints
from levada.placement.graph import SendGraph, add
from levada.placement.placers import Placer
from levada.placement.problem import Problem
from levada.placement.simple import uniform

KIND = "placement"


def named(graph: SendGraph, place: Ints) -> dict[str, int]:
    """The machine of each task, by its name."""
    return dict(zip(graph.tasks, place.tolist(), strict=True))


def learned(placer: Placer, slices: Sequence[SendGraph], problem: Problem) -> Ints:
    """Where the problem's tasks go if the slices before are all that the placer sees of them; tasks
    that are in none of them go where ``uniform`` has them.

    >>> graph = SendGraph(("1", "2"), *np.array([[0], [1]], np.int32), np.array([7]))
    >>> new = SendGraph(("1", "2", "9"), *np.array([[0], [1]], np.int32), np.array([7]))
    >>> learned(lambda problem: np.array([4, 4]), [graph], Problem(new, 6)).tolist()
    [4, 4, 3]
    """
    before = add(slices)
    place = named(before, placer(replace(problem, graph=before, before=None)))
    usual = named(problem.graph, uniform(problem))
    return np.array([place.get(t, usual[t]) for t in problem.graph.tasks], np.int32)


def write(path: Path, graph: SendGraph, place: Ints, machines: int, placer: str) -> None:
    """Writes a placement file."""
    whole = {
        "levada": KIND,
        "machines": machines,
        "placer": placer,
        "machine": named(graph, place),
    }
    try:
        path.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error


def read(path: Path, graph: SendGraph, machines: int) -> tuple[Ints, int]:
    """The machine of each task of a graph, -1 of those that the file does not have, and how many of
    these there are; raises UsageError if the file is no placement on so many machines.
    """
    machine = _machines(path, machines)
    place = np.array([machine.get(task, -1) for task in graph.tasks], np.int32)
    return place, int((place < 0).sum())


def _machines(path: Path, machines: int) -> Mapping[str, int]:
    hint = "Give a file that levada place has written."
    try:
        whole = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error
    except ValueError as error:
        raise UsageError(f"{path} is no placement: {error}.", hint=hint) from error
    found = whole.get("machine") if isinstance(whole, dict) else None
    if not isinstance(found, dict) or whole.get("levada") != KIND:
        raise UsageError(f"{path} is no placement: it has no machines of tasks.", hint=hint)
    if whole.get("machines") != machines:
        raise UsageError(
            f"{path} is a placement on {whole.get('machines')} machines, and there are {machines}.",
            hint="Place anew, or say as many machines.",
        )
    for task, at in found.items():
        if type(at) is not int or not 0 <= at < machines:
            raise UsageError(
                f"{path}: task {task} is on machine {at!r}; there are 0 to {machines - 1}."
            )
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for key, value in pairs:
        if key in whole:
            raise ValueError(f"{key} is in it twice")
        whole[key] = value
    return whole
