"""``levada place``: all placers on a send graph, side by side."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.text import Text

from levada.cli.placement.topology_to_graph import read
from levada.core.array_types import Doubles, Ints
from levada.core.count_text import count_text
from levada.core.frozen import frozen
from levada.core.machine_file import read_machine
from levada.engine.status.summary import table
from levada.errors import UsageError, near
from levada.placement import placement_file as placements
from levada.placement.cost import Score, by_lot, distant, in_vain, score
from levada.placement.local_search_placer import evenest
from levada.placement.metis import FEWEST
from levada.placement.placers import PLACERS, applicable_placers
from levada.placement.problem import BOUND, Problem
from levada.placement.send_graph import Load, SendGraph, Unit, add

# Distances of machines from a file: JSON, a list of numbers for each machine; or the latencies of
# a machine file.


MAX_DISTANCE = 1e15
_HINT = "Give a JSON list with a list of numbers for each machine, or a machine file."
_YAML = (".yaml", ".yml")


def read_distances(path: Path, machines: int) -> Doubles:
    """Returns the distance of each machine (a row) from each, a square matrix. Raises
    ``UsageError`` that names the file, the row and the number.
    """
    if path.suffix in _YAML:
        return _latencies(path, machines)
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} holds no table of distances: {error}.", hint=_HINT) from error
    if isinstance(rows, dict):
        return _latencies(path, machines)
    _check_many(rows, machines, f"{path}, the table")
    for i, row in enumerate(rows):
        _check_many(row, machines, f"{path}, row {i}")
        for j, value in enumerate(row):
            _check(value, i == j, f"{path}, row {i}, number {j}")
    return np.array(rows, np.float64).reshape(machines, machines)


def _latencies(path: Path, machines: int) -> Doubles:
    """Returns the latencies of a machine file, place by place in its order."""
    machine = read_machine(path)
    if len(machine.places) != machines:
        raise UsageError(
            f"{path} has {len(machine.places)} places for {machines} machines.",
            hint=f"Say --machines {len(machine.places)}, or give a file of as many places.",
        )
    return machine.latency


def _check_many(value: Any, machines: int, where: str) -> None:
    if not isinstance(value, list):
        raise UsageError(f"{where}: this is no list.", hint=_HINT)
    if len(value) != machines:
        raise UsageError(
            f"{where}: it has {len(value)} entries for {machines} machines.", hint=_HINT
        )


def _check(value: object, is_diagonal: bool, where: str) -> None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not 0 <= value <= MAX_DISTANCE:  # type: ignore[operator]
        raise UsageError(
            f"{where}: {value!r} is no distance.", hint="Give numbers from 0 to 10^15."
        )
    if is_diagonal and value:
        raise UsageError(
            f"{where}: {value!r} is how far a machine is from itself.", hint="That is 0."
        )


# A guard of standard output against C libraries that print to it.


@contextmanager
def quiet() -> Iterator[None]:
    """Discards the output of C libraries: METIS prints if a part has no tasks, which is not an
    error. It redirects the file descriptor, so no other thread may print meanwhile.
    """
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # standard output is closed
        yield
        return
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # C has a buffer of its own
        os.dup2(kept, 1)
        os.close(kept)


RSD_TOLERANCE = 1.05
"""A factor on the least possible RSD, which gives the bound if that RSD exceeds the default."""


@frozen
class Wish:
    """The options of the command."""

    graphs: tuple[Path, ...]
    machines: int
    learn: int = 0
    bound: str | None = None
    unit: Unit = "rows"
    load: Load = "rows"
    distance: Path | None = None
    before: Path | None = None
    moves: int | None = None
    seed: int = 0
    placer: str = "refined"


@frozen
class Placed:
    """A placer's result. ``distant``: the rows sent, each times its distance, by all rows sent."""

    place: Ints
    score: Score
    distant: float | None


def place(wish: Wish, *, out: Path | None, as_json: bool) -> None:
    """Prints the results of the placers, and writes the placement of one to ``out``. Raises
    ``UsageError``.
    """
    slices = _slices(wish)
    problem = _problem(wish, slices)
    waiting = "[dim]Placing; the first time, compiling the search[/dim]"
    with Console(stderr=True).status(waiting), quiet():
        answers = _answers(problem, slices[:-1])
    vain = _warn_if_vain(problem, answers["refined"].score.share)
    if wish.placer not in answers:
        raise UsageError(
            f"There is no placement by {wish.placer}.", hint=near(wish.placer, answers)
        )
    if out is not None:
        chosen = answers[wish.placer]
        placements.write(
            out, problem.graph, chosen.place, problem.machines, wish.placer,
            predicted=chosen.score.share, vain=vain,
        )  # fmt: skip
    if as_json:
        print(json.dumps(tell(problem, answers), ensure_ascii=False))
    else:
        Console().print(_show(problem, answers))


def _slices(wish: Wish) -> list[SendGraph]:
    """Returns the slices to learn from, and last the one to score."""
    if wish.learn == 0 and len(wish.graphs) > 1:
        raise UsageError(
            f"There are {len(wish.graphs)} send graphs, and one is placed.",
            hint="With --learn 1 the last is scored, and the one before it learned from.",
        )
    if len(wish.graphs) <= wish.learn:
        raise UsageError(
            f"--learn {wish.learn} needs {wish.learn + 1} slices; there are {len(wish.graphs)}.",
            hint="Give more of them, in their order, or learn from fewer.",
        )
    return [read(path) for path in wish.graphs[-wish.learn - 1 :]]


def _problem(wish: Wish, slices: list[SendGraph]) -> Problem:
    """Returns the problem on the slice to score; warns of odd input."""
    graph, path = slices[-1], wish.graphs[-1]
    if not graph.rows.sum():
        hint = "Give one of a run or a slice in which something was sent."
        raise UsageError(f"{path} has no messages, so there is nothing to place by.", hint=hint)
    _check_measured(wish, slices)
    problem = Problem(
        graph,
        wish.machines,
        wish.unit,
        wish.load,
        BOUND if wish.bound is None else fraction(wish.bound),
        None if wish.distance is None else read_distances(wish.distance, wish.machines),
        wish.seed,
    )
    for before, part in zip(wish.graphs[-len(slices) :], slices[:-1], strict=False):
        if not part.rows.sum():
            warnings.warn(f"{before} has no messages: nothing is learned from it.", stacklevel=2)
    if slices[:-1] and not any(part.rows.sum() for part in slices[:-1]):
        raise UsageError("No slice before the last has messages.", hint="Learn from more slices.")
    _warn_about_new(path, slices)
    if wish.machines > len(graph.tasks):
        warnings.warn(
            f"Of {wish.machines} machines {wish.machines - len(graph.tasks)} stay empty: {path} "
            f"has fewer tasks ({len(graph.tasks)}).",
            stacklevel=2,
        )
    if (wish.before is None) != (wish.moves is None):
        raise UsageError("--from and --moves go together.", hint="Say both, or neither.")
    if wish.before is not None:
        problem = _from(problem, wish.before, wish.moves or 0, learned=bool(wish.learn))
    if wish.bound is None:
        seen = (
            problem if len(slices) == 1 else replace(problem, graph=add(slices[:-1]), before=None)
        )
        problem = replace(problem, bound=_default_graph(seen))
    return problem


def _default_graph(problem: Problem) -> float:
    """Returns the default bound on RSD. If a heavy task makes 5 % impossible, the bound has some
    room above the evenest placement, so that a search is possible.
    """
    least = evenest(problem)
    if least <= BOUND:
        return BOUND
    task, part = problem.heaviest()
    warnings.warn(
        f"No placement on {problem.machines} machines was found with an RSD below {least:.1%}: "
        f"the heaviest task, {task}, has {part:.1%} of the load. --bound says what RSD is allowed.",
        stacklevel=2,
    )
    return least * RSD_TOLERANCE


def _check_measured(wish: Wish, slices: list[SendGraph]) -> None:
    for path, graph in zip(wish.graphs[-len(slices) :], slices, strict=True):
        for wanted in (wish.unit, wish.load):
            if not graph.has(wanted):
                hint = "Measure it with them, or place by rows."
                raise UsageError(f"{path} tells nothing of {wanted}.", hint=hint)


def _warn_about_new(path: Path, slices: list[SendGraph]) -> None:
    """Warns of tasks that are not in the slices to learn from."""
    tasks, known = slices[-1].tasks, {task for part in slices[:-1] for task in part.tasks}
    if slices[:-1] and (new := sum(task not in known for task in tasks)):
        warnings.warn(
            f"{new:,} of the {count_text(len(tasks), 'task')} of {path} are in no slice that is "
            "learned from: they go where uniform has them.",
            stacklevel=2,
        )


def _from(problem: Problem, path: Path, moves: int, *, learned: bool) -> Problem:
    if learned:
        raise UsageError("--from and --learn do not go together.", hint="Leave out one of them.")
    before, missing = placements.read(path, problem.graph, problem.machines)
    if missing:
        warnings.warn(
            f"{path} has no machine for {count_text(missing, 'task: it goes', 'tasks: they go')} "
            "anywhere.",
            stacklevel=2,
        )
    return replace(problem, before=before, moves=moves)


def _answers(problem: Problem, before: list[SendGraph]) -> dict[str, Placed]:
    answers = {}
    seen = replace(problem, graph=add(before), before=None) if before else problem
    for name, placer in applicable_placers(seen).items():
        placement = placements.place_by_past(placer, before, problem) if before else placer(problem)
        scored = score(problem.graph, placement, problem.machines, problem.unit, problem.load)
        apart = problem.distance
        far = None if apart is None else distant(problem.graph, placement, apart, problem.unit)
        answers[name] = Placed(placement, scored, far)
    if len(answers) < len(PLACERS):
        few = f"there are fewer than {FEWEST} tasks a machine"
        why = "there is one machine" if problem.machines == 1 else few
        warnings.warn(f"METIS is left out: {why}.", stacklevel=2)
    return answers


def _warn_if_vain(problem: Problem, least: float) -> bool:
    """Warns if a placement is hardly better than a random one; returns whether that is so."""
    graph, k, unit = problem.graph, problem.machines, problem.unit
    vain = problem.floor() <= BOUND and in_vain(graph, k, least, unit)
    if vain:
        warnings.warn(
            f"No placement helps much: refined leaves {least:.1%} across machines, lots about "
            f"{by_lot(graph, k, unit):.1%}; a run will not go by it. Where each task sends to most "
            "of the others, files that are cut by what is grouped or joined on help "
            "(docs/placement.md).",
            stacklevel=2,
        )
    return vain


def tell(problem: Problem, answers: Mapping[str, Placed]) -> dict[str, object]:
    """Returns the results as JSON-able values; share and RSD are fractions."""
    placers = {
        name: {"share": a.score.share, "rsd": a.score.rsd}
        | ({} if a.distant is None else {"distant": a.distant})
        | {"machine": placements.machines_by_task(problem.graph, a.place)}
        for name, a in answers.items()
    }
    return {
        "machines": problem.machines,
        "bound": problem.bound,
        "least_rsd": problem.floor(),
        "placers": placers,
    }


def _show(problem: Problem, answers: Mapping[str, Placed]) -> Group:
    graph, far = problem.graph, problem.distance is not None
    sent = int(graph.sent(problem.unit).sum())
    rows = [
        (name, f"{a.score.share:.2%}", f"{a.score.rsd:.2%}", *([f"{a.distant:.4f}"] if far else []))
        for name, a in answers.items()
    ]
    heads = ("placer", "share", "RSD", *(["distant"] if far else []))
    return Group(
        Text(
            f"{count_text(len(graph.tasks), 'task')}, {count_text(len(graph.rows), 'edge')}, "
            f"{sent:,} {problem.unit}, {count_text(problem.machines, 'machine')}\n"
            f"predicted; refined is held to an RSD of {problem.bound:.2%}"
        ),
        table(heads, rows),
    )


def fraction(text: str) -> float:
    """Parses a bound as a fraction. Raises ``UsageError`` if it is malformed.

    >>> fraction("2.4%"), fraction("0.024")
    (0.024, 0.024)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*(%?)", text.strip())
    if match is None or (not match[2] and float(match[1]) > 1):
        raise UsageError(f"{text} is no bound on RSD.", hint="Say such as 2.4% or 0.024.")
    return float(f"{match[1]}e-2") if match[2] else float(match[1])
