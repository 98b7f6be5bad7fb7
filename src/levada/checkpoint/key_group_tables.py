"""The group tables of a checkpoint: a file for each version, beside the plans.

A table never changes. Another assignment of groups to partitions, or another number of partitions,
is the next version. An intention names the version that routes its rows, so a replay routes alike.
State is stored by the version of the last manifest. ``dealing`` is called before each epoch and may
return another table: rebalancing, placement and tests decide there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from levada.checkpoint.epoch_context import load_groups
from levada.core.array_types import Ints
from levada.core.durable_files import write_once
from levada.plan.encoding.plan_codec import encode_groups
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin
from levada.plan.execution.plan import Plan
from levada.plan.execution.splittable_joins import fit_divisions

GROUPS = 1 << 16  # fine enough that keys can follow their readers (decision 26)
Dealing = Callable[[int, GroupTable], GroupTable | None]
"""Returns the table from an epoch on, by its number and the present table; None: the same one."""


def as_it_is(epoch: int, table: GroupTable) -> GroupTable | None:
    """Returns None: the table stays."""
    return None


class GroupTables:
    """The tables of this ``id`` in the checkpoint ``root``. ``current``: the version of the next
    epoch (0: there is none yet). ``known``: a version that must exist.
    """

    def __init__(self, root: Path, id_: str, known: int) -> None:
        self._root, self._id = root.absolute(), id_  # tasks may have another working directory
        self.dealing: Dealing = as_it_is
        self.current = max([known, *self._versions()])

    def path(self, version: int) -> Path:
        """Returns the file of a table."""
        return Path(self.file(version))

    def file(self, version: int) -> str:
        """Returns the file of a table as text."""
        return f"{self._root}/{name_of(self._id, version)}"

    def load(self, version: int) -> GroupTable:
        """Loads a table. Raises ``CheckpointError``."""
        return load_groups(self.file(version))

    def deal(self, partitions: int) -> None:
        """Distributes the groups of the next epochs over so many partitions, round robin unless the
        number is unchanged.
        """
        if not self.current or self.load(self.current).partitions != partitions:
            self._write(deal_round_robin(GROUPS, partitions))

    def place(self, moved: Ints, to: Ints) -> None:
        """Assigns these groups to these partitions for the next epochs, the others round robin."""
        now = self.load(self.current)
        wanted = GroupTable(1, now.groups, now.partitions, moved, to)
        if (wanted.partition != now.partition).any():
            self._write(wanted)

    def version_for_epoch(self, epoch: int, plan: Plan) -> int:
        """Returns the version for an epoch of a plan."""
        now = self.load(self.current)
        table = fit_divisions(self.dealing(epoch, now) or now, plan)
        if table is not now:
            self._write(table)
        return self.current

    def forget(self, before: int) -> None:
        """Deletes the versions before this one, which nothing names any more."""
        for version in self._versions():
            if version < before:
                self.path(version).unlink(missing_ok=True)

    def _write(self, table: GroupTable) -> None:
        version = self.current + 1
        # an overtaken driver may have left one of this number
        while not write_once(self.path(version), encode_groups(replace(table, version=version))):
            version += 1
        self.current = version

    def _versions(self) -> list[int]:
        names = (p.name for p in (self._root / "plans").glob(f"groups-*-{self._id}"))
        return [int(name.split("-", 2)[1]) for name in names]


def name_of(id_: str, version: int) -> str:
    """Returns the file name of a group table in the folder of the checkpoint of this id."""
    return f"plans/groups-{version}-{id_}"
