"""Placements by the names of tasks: as files, and applied to another graph than the learned one.

    {"levada": "placement", "machines": 12, "placer": "refined", "predicted": 0.0143,
     "machine": {"14": 3, ...}}

``predicted`` (optional) is the predicted share across machines. ``between`` is the predicted share
of rows from each machine to each, row by row, for up to ``MOST_TOLD`` machines.

The name of a group of keys includes the number of groups, such as ``group 17/4096``. Finer groups
nest in coarser ones (``levada.group_of``), so a placement of 4,096 groups is also one of 65,536.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from levada.core.array_types import Ints
from levada.core.frozen import frozen
from levada.errors import UsageError
from levada.placement.cost import between
from levada.placement.send_graph import SendGraph, add

if TYPE_CHECKING:
    from levada.placement.placers import Placer
    from levada.placement.problem import Problem

KIND = "placement"
FINEST = 1 << 16
MOST_TOLD = 16
_GROUP = re.compile(r"group (\d{1,6})/(\d{1,6})")


def machines_by_task(graph: SendGraph, place: Ints) -> dict[str, int]:
    """Returns the machine of each task, by its name."""
    return dict(zip(graph.tasks, place.tolist(), strict=True))


def place_by_past(placer: Placer, slices: Sequence[SendGraph], problem: Problem) -> Ints:
    """Places the problem's tasks by earlier slices alone; tasks that are in none of them go where
    ``uniform`` places them.

    >>> from levada.placement.problem import Problem
    >>> graph = SendGraph(("1", "2"), *np.array([[0], [1]], np.int32), np.array([7]))
    >>> new = SendGraph(("1", "2", "9"), *np.array([[0], [1]], np.int32), np.array([7]))
    >>> place_by_past(lambda problem: np.array([4, 4]), [graph], Problem(new, 6)).tolist()
    [4, 4, 3]
    """
    # imported here: a run with a placement file needs no placer
    from levada.placement.baseline_placers import uniform

    before = add(slices)
    place = machines_by_task(before, placer(replace(problem, graph=before, before=None)))
    usual = machines_by_task(problem.graph, uniform(problem))
    return np.array([place.get(t, usual[t]) for t in problem.graph.tasks], np.int32)


def write(
    path: Path,
    graph: SendGraph,
    place: Ints,
    machines: int,
    placer: str,
    *,
    predicted: float | None = None,
    vain: bool = False,
) -> None:
    """Writes a placement file. ``predicted``: the predicted share across machines. ``vain``: no
    placement of the graph is better than a random one (``cost.in_vain``). Raises ``UsageError``.
    """
    whole: dict[str, Any] = {"levada": KIND, "machines": machines, "placer": placer}
    whole |= {} if predicted is None else {"predicted": predicted}
    whole |= {"vain": True} if vain else {}
    shares = predicted_between(graph, place, machines)
    whole |= {"between": shares} if shares else {}
    whole["machine"] = machines_by_task(graph, place)
    try:
        path.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error


def predicted_between(graph: SendGraph, place: Ints, machines: int) -> list[list[float]]:
    """Returns the predicted share of all rows from each machine to each, to a hundredth of a
    percent; [] for more than ``MOST_TOLD`` machines.
    """
    if machines > MOST_TOLD:
        return []
    shares: list[list[float]] = np.round(between(graph, place, machines), 4).tolist()
    return shares


def read(path: Path, graph: SendGraph, machines: int) -> tuple[Ints, int]:
    """Returns the machine of each task of a graph (-1: not in the file) and the number of missing
    tasks. Raises ``UsageError`` if the file is not a placement on ``machines`` machines.
    """
    placement = read_file(path)
    if placement.machines != machines:
        raise UsageError(
            f"{path} is a placement on {placement.machines} machines, and there are {machines}.",
            hint="Place anew, or say as many machines.",
        )
    machine = placement.machine
    place = np.array([machine.get(task, -1) for task in graph.tasks], np.int32)
    return place, int((place < 0).sum())


@frozen
class Placement:
    """A placement file's contents: the number of machines and the machine of each task by its name.
    ``predicted``: the share across machines (-1: absent). ``between``: the share from each machine
    to each (() if absent). ``vain``: no placement of its graph is better than a random one.
    """

    machines: int
    machine: Mapping[str, int]
    predicted: float = -1.0
    between: tuple[tuple[float, ...], ...] = ()
    vain: bool = False


def read_file(path: Path) -> Placement:
    """Reads a placement file. Raises ``UsageError`` that names the wrong task."""
    hint = "Give a file that levada place has written."
    try:
        whole = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no placement: {error}.", hint=hint) from error
    machine_of_task = whole.get("machine") if isinstance(whole, dict) else None
    if not isinstance(machine_of_task, dict) or whole.get("levada") != KIND:
        raise UsageError(f"{path} is no placement: it has no machines of tasks.", hint=hint)
    machines = whole.get("machines")
    if type(machines) is not int or machines < 1:
        raise UsageError(f"{path} is a placement on {machines!r} machines.", hint=hint)
    for task, at in machine_of_task.items():
        if type(at) is not int or not 0 <= at < machines:
            raise UsageError(
                f"{path}: task {task} is on machine {at!r}; there are 0 to {machines - 1}."
            )
    predicted = whole.get("predicted", -1.0)
    if "predicted" in whole and not _is_share(predicted):
        raise UsageError(f"{path}: the share that it predicts is {predicted!r}.", hint=hint)
    if type(vain := whole.get("vain", False)) is not bool:
        raise UsageError(f"{path}: vain is true or false, and not {vain!r}.", hint=hint)
    shares = whole.get("between", [])
    rows = shares if isinstance(shares, list) else [shares]
    if rows and not (
        len(rows) == machines
        and all(isinstance(row, list) and len(row) == machines for row in rows)
        and all(_is_share(share) for row in rows for share in row)
    ):
        raise UsageError(
            f"{path}: what it predicts between machines are not {machines} rows of {machines} "
            "shares.",
            hint=hint,
        )
    return Placement(machines, machine_of_task, float(predicted), tuple(map(tuple, rows)), vain)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and 0 <= value <= 1


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for key, value in pairs:
        if key in whole:
            raise ValueError(f"{key} is in it twice")
        whole[key] = value
    return whole


def check_groups(groups: int) -> int:
    """Returns a number of groups. Raises ``UsageError`` unless it divides 65,536."""
    if not 1 <= groups <= FINEST or FINEST % groups:
        raise UsageError(
            f"There cannot be {groups:,} groups.", hint="Say a power of two up to 65,536."
        )
    return groups


def group_name(group: int, groups: int) -> str:
    """Returns the name of a group.

    >>> group_name(17, 4096)
    'group 17/4096'
    """
    return f"group {group}/{groups}"


def finest(machine: Mapping[str, int], path: str) -> Ints:
    """Returns the machine of each of the 65,536 groups, -1 without a machine. Raises ``UsageError``
    for unknown or repeated groups.

    >>> finest({"group 1/2": 3, "a reader": 0}, "p.json")[[0, 32_767, 32_768, 65_535]].tolist()
    [-1, -1, 3, 3]
    """
    machines = np.full(FINEST, -1, np.int32)
    for name, at in machine.items():
        if (match := _GROUP.fullmatch(name)) is None:
            continue
        group, groups = int(match[1]), int(match[2])
        if not 1 <= groups <= FINEST or FINEST % groups or group >= groups:
            raise UsageError(
                f"{path}: there is no {name}; a checkpoint has {FINEST:,} groups.",
                hint="Give a placement of groups that levada graph export has named.",
            )
        covered = slice(group * FINEST // groups, (group + 1) * FINEST // groups)
        if (machines[covered] >= 0).any():
            raise UsageError(f"{path}: groups of {name} are in it twice.")
        machines[covered] = at
    return machines


def group_number(name: str) -> int:
    """Returns the number of a group by its name.

    >>> group_number("group 17/4096")
    17
    """
    match = _GROUP.fullmatch(name)
    assert match is not None, f"{name} is a group"
    return int(match[1])


def is_group(name: str) -> bool:
    """Returns whether a task's name is that of a group."""
    return _GROUP.fullmatch(name) is not None
