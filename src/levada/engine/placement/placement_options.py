"""The option ``place`` of a run: a placement file, or the request to learn a placement."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from levada.core.array_types import Ints
from levada.core.frozen import frozen
from levada.core.integer_options import AUTO, CORES, Partitions
from levada.errors import UsageError
from levada.placement import placement_file as placements
from levada.placement.placement_file import finest, is_group
from levada.runtime.cost_model.partition_count import CORES as CORES_FOLLOWED
from levada.runtime.cost_model.partition_count import FIXED, LOAD, MODEL, PLACEMENT
from levada.runtime.executor import cores
from levada.runtime.rebalancing.rebalancer import Balancing
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, Measure, balance_of

OFF, LEARN = "off", "learn"
_WISH = re.compile(r"learn(?::(.*))?")
_ONE_MACHINE = re.compile(r"none|local(\[.*)?")  # masters without executors of their own
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


# The options for balance and for the number of partitions, and the policies that follow from
# them.


Wanted = str | bool | Mapping[str, Any] | BalanceOptions | None
"""The option ``balance``: off (also None), on, "on,choice=random", or a mapping of options."""


def balancing_of(
    wanted: Wanted,
    wish: PlacementOption | LearnPlacementOption | None,
    partitions: Partitions,
    master: str,
    interval: int,
) -> Balancing | None:
    """Returns the policy that moves groups. It is on by default on a cluster. If the user asks for
    it, it also chooses the number of partitions, up to the cores of the master, unless the user
    says that. ``interval``: the least time between two epochs, ms. Raises ``UsageError``, also if
    a placement has the groups.
    """
    is_cluster = _ONE_MACHINE.fullmatch(master) is None
    if wanted is None and is_cluster and not _placing(wish):
        return Balancing(BalanceOptions(measure=Measure.TIME), most=0, least=interval / 1000)
    options = balance_of(wanted)
    if options is None:
        return None
    who = _placing(wish)
    if who:
        message = f"{who} places groups, and balance would move them."
        raise UsageError(message, hint="Leave one of the two out.")
    if partitions == CORES:
        raise UsageError(
            "partitions is cores, and balance says how many partitions there are.",
            hint="Leave partitions out, or say a number.",
        )
    if is_cluster:
        options = replace(options, measure=Measure.TIME)
    most = 0 if isinstance(partitions, int) else cores(master)
    return Balancing(options, most=most, least=interval / 1000)


def partitions_of(
    wanted: Partitions, wish: PlacementOption | LearnPlacementOption | None,
    balancing: Balancing | None, master: str,
) -> Partitions:  # fmt: skip
    """Returns the option ``partitions``: on a cluster the number follows the executors' cores,
    unless another option says it. Raises ``UsageError`` if two options say it.

    >>> partitions_of(None, None, None, "spark://host:7077"), partitions_of(3, None, None, "yarn")
    ('cores', 3)
    """
    if wish is not None and isinstance(wanted, str):
        message = f"partitions is {wanted}, and place says how many partitions there are."
        raise UsageError(message, hint="Leave one of the two out, or say a number of partitions.")
    is_free = wanted is None and wish is None and not (balancing and balancing.resizes)
    return CORES if is_free and _ONE_MACHINE.fullmatch(master) is None else wanted


def degree_by(
    partitions: Partitions,
    wish: PlacementOption | LearnPlacementOption | None,
    balancing: Balancing | None,
) -> str:
    """Returns the policy for the number of partitions during a run.

    >>> degree_by("auto", None, None), degree_by(None, None, None)
    ('model', 'fixed')
    """
    if balancing is not None and balancing.resizes and partitions != AUTO:
        return LOAD
    if wish is not None:
        return PLACEMENT
    return {AUTO: MODEL, CORES: CORES_FOLLOWED}.get(str(partitions), FIXED)


def _placing(wish: PlacementOption | LearnPlacementOption | None) -> str:
    """Returns the option that places groups; "" without one."""
    if isinstance(wish, LearnPlacementOption):
        return "What a run learns"
    return wish.path if wish is not None and (wish.groups >= 0).any() else ""
