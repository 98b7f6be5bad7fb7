"""Which files are there and which manifests name, over random epochs, moves of groups, numbers of
partitions, starts, failed attempts, drivers that are overtaken, ways back: as a model says that is
a dict of what each partition needs. Tasks are made up, their states and files are real.

``LEVADA_CASES`` for more; a case is a function of its seed.
"""

import os
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from levada.checkpoint import live_files, state_files
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.file_inventory import names_of
from levada.checkpoint.live_files import orphans
from levada.checkpoint.manifest import Manifest, read_manifest
from levada.core import column_names as col
from levada.core.frame import Frame
from levada.errors import OvertakenError
from levada.operators.state.state_parts import Head, State, StatePart, read_head
from levada.runtime.task.stage_task import report_files

CASES = int(os.environ.get("LEVADA_CASES", "0")) or 9
STEPS = 30
STAGES, MOST = 2, 5
KEYS = ("1.0", "2.0", "3.0")
ROWS = Frame({col.PLACE: np.zeros(1, np.int32)}, 1)
NEEDS = dict[str, set[str]]
"""Of each "STAGE.PARTITION" the files that it needs."""


class World:
    """A checkpoint, whoever is at work on it, and what it should hold."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rng, self.root = Random(seed), root
        self.partitions = self.rng.randint(1, MOST)
        self.driver = self.begin()
        self.needs: list[NEEDS] = [{}]  # after each epoch
        self.state: list[dict[str, str]] = [{}]
        self.asleep: list[Checkpoint] = []
        self.known = set[str]()  # that were named at any time
        self.beside: list[set[str]] = [set()]

    def begin(self) -> Checkpoint:
        return Checkpoint(self.root, partitions=1, locked=False)

    def run(self) -> None:
        doing = [self.epoch] * 12 + [self.start, self.start, self.fail, self.overtake, self.wake]
        for _ in range(STEPS):
            self.rng.choice([*doing, self.go_back])()
            self.check()

    # what a job does

    def job(self, driver: Checkpoint) -> tuple[list[TaskOutcome], NEEDS, dict[str, str]]:
        """Outcomes of all tasks, what they need, their states."""
        names, rng = driver.names, self.rng
        epoch = 1 + (driver.last.epoch if driver.last else 0)
        moves = rng.random() < 0.2
        if moves and rng.random() < 0.5:
            self.partitions = rng.randint(1, MOST)
        done, needs, states = [], NEEDS(), dict[str, str]()
        busy = rng.choice([0.1, 0.5, 1.0])
        for stage in range(1, STAGES + 1):
            for p in range(self.partitions):
                state = self.opened(names.state, stage, p, moves=moves)
                if rng.random() < busy:
                    self.change(state)
                told, files = self.finish(state, epoch, stage, p, whole=names.whole)
                if stage == 1:
                    for _ in range(rng.choice([1, 1, 2])):  # it may be run again
                        mine = names.deletable[p :: self.partitions]
                        state_files.delete(str(self.root), mine)
                done.append(told)
                needs[f"{stage}.{p}"] = files
                if told.state or (not told.lists_all_files and state.file):
                    states[f"{stage}.{p}"] = told.state or state.file
        rng.shuffle(done)
        return done, needs, states

    def opened(self, had: dict[str, str], stage: int, p: int, *, moves: bool) -> State:
        own = had.get(f"{stage}.{p}", "")
        froms = [own] if own else []
        if moves and self.rng.random() < 0.5:
            there = sorted(file for key, file in had.items() if key.startswith(f"{stage}."))
            froms = self.rng.sample(there, self.rng.randint(0, len(there)))
        if froms == [own]:
            return State(self.head(own), own, self.opener)
        pieces: dict[str, list[StatePart]] = {}
        for file in froms:
            for key, some in self.head(file).pieces.items():
                named = [msgspec.structs.replace(q, file=q.file or file) for q in some]
                pieces[key] = [*pieces.get(key, []), *named]
        return State(Head(pieces, 99) if froms else None, "", self.opener)

    def opener(self, name: str) -> Any:
        return state_files.map_(str(self.root), name)

    def head(self, file: str) -> Head:
        return read_head(self.opener(file)[1])

    def change(self, state: State) -> None:
        """Some pieces go, some come."""
        key = self.rng.choice(KEYS)
        left = [p for p in state.pieces(key) if self.rng.random() < 0.6]
        if self.rng.random() < 0.7:
            left.append(state.put({"": ROWS}, 1, (1, 1, 1)))
        state.replace(key, left)

    def finish(
        self, state: State, epoch: int, stage: int, p: int, *, whole: bool
    ) -> tuple[TaskOutcome, set[str]]:
        file: str | None = state.file or None
        if state.changed:
            stem = f"{epoch}-{stage}-{p}"
            for _ in range(self.rng.choice([1, 1, 1, 2])):  # another attempt of the same task
                file = state_files.write(str(self.root), "state", stem, state.finish())
        done = TaskOutcome(stage, p)
        files = report_files(done, state, file, whole=whole)
        return msgspec.json.decode(msgspec.json.encode(done), type=TaskOutcome), files

    # what may happen

    def manifest(self, driver: Checkpoint) -> tuple[Manifest, NEEDS, dict[str, str], set[str]]:
        done, needs, states = self.job(driver)
        last = driver.last
        epoch = 1 + (last.epoch if last else 0)
        manifest = Manifest(epoch, 0, group_table_version=driver.tables.current)
        beside = set() if last is None else {name for name, _ in last.total_files}
        if self.rng.random() < 0.3:
            name = state_files.write(str(self.root), "state", f"{epoch}-totals", [b"{}" * 8])
            beside = {name, *self.rng.sample(sorted(beside), len(beside) // 2)}
        manifest.total_files = [(name, 1) for name in sorted(beside)]
        driver.names.follow(manifest, done, beside)
        return manifest, needs, states, beside

    def epoch(self) -> None:
        manifest, needs, states, beside = self.manifest(self.driver)
        self.driver.commit(manifest)
        self.driver.forget_before(manifest)
        del self.needs[manifest.epoch :], self.state[manifest.epoch :]
        del self.beside[manifest.epoch :]
        self.needs.append(needs)
        self.state.append(states)
        self.beside.append(beside)

    def fail(self) -> None:
        """An attempt comes to nothing, before or behind its outcomes; the run goes on."""
        if self.rng.random() < 0.5:
            self.job(self.driver)
        else:
            self.manifest(self.driver)
        self.driver.has_orphans = True
        self.epoch()
        last = self.driver.last
        assert last and not orphans(self.root, last, self.driver.names.last_two_manifests), (
            "they are gone"
        )

    def start(self) -> None:
        """The process died, somewhere in an epoch; another begins."""
        if self.rng.random() < 0.5:
            self.job(self.driver)
        self.driver = self.begin()
        assert self.there() == self.of_last_two(), "nothing else is there behind a start"

    def overtake(self) -> None:
        """Another driver begins, while the first is in its job."""
        self.asleep.append(self.driver)
        self.driver = self.begin()

    def wake(self) -> None:
        """One that was overtaken goes on, long after."""
        if self.asleep:
            sleeper = self.asleep.pop(self.rng.randrange(len(self.asleep)))
            with pytest.raises((OvertakenError, FileNotFoundError)):
                manifest, *_ = self.manifest_of_sleeper(sleeper)
                sleeper.commit(manifest)

    def manifest_of_sleeper(self, sleeper: Checkpoint) -> Any:
        """Its tasks delete what they were to, and fail if what they begin with is gone."""
        partitions = self.partitions
        try:
            state_files.delete(str(self.root), sleeper.names.deletable)
            if any(not (self.root / file).exists() for file in sleeper.names.state.values()):
                raise FileNotFoundError
            return self.manifest(sleeper)
        finally:
            self.partitions = partitions

    def go_back(self) -> None:
        """As ``levada rollback``."""
        last = self.driver.last
        if last is None or last.epoch < 2:
            return
        path = self.root / "manifests" / str(last.epoch - 1)
        if not path.exists():
            return  # it has been gone back already
        back = Checkpoint(self.root, partitions=1, locked=False, mends=True)
        before = read_manifest(path)
        (self.root / "manifests" / str(last.epoch)).unlink()
        back.reign.commit(before)
        for of in (self.needs, self.state, self.beside):
            del of[before.epoch + 1 :]
        self.driver = self.begin()
        assert self.there() == self.of_last_two()

    # what is to be

    def there(self) -> set[str]:
        return {f"state/{path.name}" for path in (self.root / "state").iterdir()}

    def of_last_two(self) -> set[str]:
        return set().union(*(self.named(m) for m in self.manifests()))

    def manifests(self) -> list[Manifest]:
        """The last one, and the one before it."""
        last = self.driver.last
        epochs = [last.epoch - 1, last.epoch] if last else []
        paths = [self.root / "manifests" / str(epoch) for epoch in epochs]
        return [read_manifest(path) for path in paths if path.exists()]

    def named(self, manifest: Manifest) -> set[str]:
        """What a manifest names, which is what the model says."""
        found = names_of(self.root, manifest)
        epoch = manifest.epoch
        assert found.state == self.state[epoch]
        needed = set().union(self.beside[epoch], *self.needs[epoch].values())
        assert found.files - {manifest.inventory} == needed
        return found.files

    def check(self) -> None:
        names = self.driver.names
        named, there = self.of_last_two(), self.there()
        assert named <= there, "what the last two manifests name is there"
        assert names.last_two_manifests == named and names.state == self.state[-1]
        going = {*names.deletable}
        assert not going & named, "what may go nobody names"
        assert not (self.known - named - going) & there, "what was named once has gone"
        self.known |= named


@pytest.mark.parametrize("few", [0, 8, 1024])
def test_files_are_there_as_long_as_the_last_two_manifests_name_them(
    few: int, tmp_path: Path, random_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_files, "MAX_INLINE_NAMES", few)
    monkeypatch.setattr(Checkpoint, "lock", lambda self, patience, needed: None)
    for case in range(CASES // 3):
        World(tmp_path / str(case), random_seed + case).run()
