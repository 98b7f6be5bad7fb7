"""The option ``place`` of a run: a placement file, or the request to learn a placement."""

from __future__ import annotations

import math
import os
import re
import warnings
from pathlib import Path

from levada.core.array_types import Ints
from levada.core.frozen import frozen
from levada.errors import UsageError
from levada.placement import placement_file as placements
from levada.placement.placement_file import finest, is_group

OFF, LEARN = "off", "learn"
_WISH = re.compile(r"learn(?::(.*))?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,.*")


@frozen
class PlacementOption:
    """A placement from its file. ``groups``: the machine of each group (-1: open). ``machine``: the
    machine of each other task by name. ``predicted``: the fraction of rows that will cross machines
    (-1: unknown). ``between``: the predicted fraction from machine to machine (() if unknown).
    """

    path: str
    machines: int
    groups: Ints
    machine: dict[str, int]
    predicted: float = -1.0
    between: tuple[tuple[float, ...], ...] = ()

    def partitions(self, cores: int) -> int:
        """Returns how many partitions a new checkpoint has for ``cores`` cores: an equal number for
        each machine.
        """
        return self.machines * math.ceil(cores / self.machines)


def read_placement(place: str | os.PathLike[str]) -> PlacementOption | None:
    """Reads the file of ``place``. Returns None for "" and ``off``. Warns and returns None if the
    file says that no placement helps. Raises ``UsageError``.
    """
    if place in ("", OFF):
        return None
    path = Path(place)
    placement = placements.read_file(path)
    groups = finest(placement.machine, str(path))
    others = {name: at for name, at in placement.machine.items() if not is_group(name)}
    if (groups < 0).all() and not others:
        raise UsageError(f"{path} places nothing.", hint="Give one that levada place has written.")
    if placement.vain:
        warnings.warn(
            f"{path} was made of a send graph that no placement helps: the run does not go by it "
            '(it does without the line "vain").',
            stacklevel=2,
        )
        return None
    return PlacementOption(
        str(path), placement.machines, groups, others, placement.predicted, placement.between
    )


@frozen
class LearnPlacementOption:
    """The request to learn a placement on ``machines`` machines."""

    machines: int

    def partitions(self, cores: int) -> int:
        """Returns how many partitions a new checkpoint has for ``cores`` cores."""
        return self.machines * math.ceil(cores / self.machines)


def read_learning(place: str | os.PathLike[str], master: str) -> LearnPlacementOption | None:
    """Parses ``learn`` (a machine for each executor of a local cluster) or ``learn:N`` in
    ``place``; None for other values. Raises ``UsageError``.

    >>> read_learning("learn:3", "local[2]"), read_learning("off", "local[2]")
    (LearnPlacementOption(machines=3), None)
    """
    match = _WISH.fullmatch(place) if isinstance(place, str) else None
    if match is None:
        return None
    said = match[1]
    if said is None and (cluster := _LOCAL_CLUSTER.fullmatch(master)) is not None:
        said = cluster[1]
    if said is None:
        raise UsageError(
            f"On how many machines a placement is to be learned does not follow from {master}.",
            hint="Say it: --place learn:4. A master local[..] or none is one machine.",
        )
    if not said.isdigit() or int(said) < 2:
        raise UsageError(
            f"A placement on {said!r} machines cannot be learned.",
            hint="Say two or more, such as learn:4; on one there is nothing to learn.",
        )
    return LearnPlacementOption(int(said))


def parse_placement_option(
    place: str | os.PathLike[str], master: str
) -> PlacementOption | LearnPlacementOption | None:
    """Parses ``place``: a placement to learn, a file, or None. Raises ``UsageError``."""
    return read_learning(place, master) or read_placement(place)
