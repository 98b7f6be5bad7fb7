"""The options of query planning, and the regions of an engine: the places of a machine file with
its latencies, or names.
"""

from __future__ import annotations

import os
from pathlib import Path

from levada.core.query_limits import QueryLimits
from levada.errors import UsageError
from levada.plan.execution.joins import join_form_of
from levada.plan.sharing.regions.regions import ANY, Regions
from levada.plan.sharing.sharing_modes import DEFAULT, Planning, Sharing, sharing_of

_FILES = (".yaml", ".yml", ".json")


def planning_of(sharing: str, join: str, regions: str | os.PathLike[str], limits: str) -> Planning:
    """Returns the planning options for queries from now on. Raises ``UsageError``."""
    mode = sharing_of(sharing) if sharing else default_sharing(limits)
    return Planning(mode, join_form_of(join), regions_of(regions))


def default_sharing(limits: str) -> Sharing:
    """Returns the sharing mode of an engine with these limits of a query. Raises ``UsageError``.

    Relaxed joins keep rows of several queries, and a limit on rows of state needs those of one.

    >>> str(default_sharing("")), str(default_sharing("state=1M"))
    ('relax', 'exact')
    """
    return Sharing.EXACT if QueryLimits.parse(limits).state else DEFAULT


def regions_of(said: str | os.PathLike[str]) -> Regions:
    """Returns the regions of a machine file, or of names that commas separate. Raises
    ``UsageError``.

    >>> regions_of("east, west").names
    ('east', 'west')
    """
    if not isinstance(said, str | os.PathLike):
        raise UsageError(f"regions is {said!r}.", hint="Say a text: regions=east,west.")
    text = os.fspath(said)
    if not text:
        return Regions()
    if text.endswith(_FILES) or os.path.exists(text):
        # here: names need no reader of files
        from levada.core.machine_file import read_machine

        machine = read_machine(Path(text))
        delays = tuple([tuple(map(float, row)) for row in machine.latency])
        return Regions(machine.places, delays)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not name or name == ANY or "+" in name or " " in name:
            raise UsageError(
                f"A region cannot be called {name!r}.",
                hint="Say names with commas between, or a machine file: regions=east,west.",
            )
    if len({*names}) < len(names):
        raise UsageError(f"The regions {text} name one twice.")
    return Regions(tuple(names))
