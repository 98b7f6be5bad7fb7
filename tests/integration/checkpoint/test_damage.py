"""A checkpoint of which one bit is another says so in a sentence, or gives what it gave: never
other results, never another exception.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint import verify
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import SETUPS, Setup, cached_plan, load_setup
from levada.checkpoint.leadership.commit_log import read_commit
from levada.checkpoint.manifest import read_manifest
from levada.checkpoint.state_files import map_
from levada.core.checkpoint_files import facts_of
from levada.core.checksummed_files import read_sealed
from levada.engine.engine import Engine
from levada.errors import CheckpointError
from levada.plan.encoding.plan_codec import (
    encode,
    encode_groups,
    encode_plan,
    read_file,
    read_groups,
    read_plan,
)
from levada.plan.topology.catalog_file import encode_catalog, read_catalog
from levada.runtime.driver.static_graphs import StaticGraphs
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing.stream_builders import write_lines
from support.example_counts import EXAMPLES
from support.generators import Clause
from support.loop_steps import loop_of
from support.polling import PATIENCE
from support.query_dsl import S, T, element, query, register, run, same_queries

STRIDE = 1 if EXAMPLES else 4  # bytes
ELEMENTS = [element(300 * i, f"a{i % 5} p {i}") for i in range(60)]
OTHER = [element(300 * i + 100, f"a{i % 5} q {i}") for i in range(60)]
QUERIES = [
    query(
        "SELECT ?a ?n ?m",
        "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :q ?m }",
        name="beside",
        windows={"w": (S, Clause("range", 2500)), "v": (T, Clause("range", 2500))},
    ),
    query(
        "SELECT ?a (SUM(?n) AS ?m)",
        "WINDOW :w { ?a :p ?n }",
        tail=" GROUP BY ?a",
        name="sum",
        windows={"w": (S, Clause("range", 4000))},
    ),
]


class DiedError(Exception):
    """What the run that makes the checkpoint sees in place of its end."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that died in mid-run: its last epoch is written ahead and not committed; it has
    letters, too.
    """
    folder = tmp_path_factory.mktemp("made")
    write_lines(folder / "s.nt", [*ELEMENTS[:30], ELEMENTS[0], *ELEMENTS[30:]])
    write_lines(folder / "t.nt", OTHER)
    run_epoch = EpochRunner.run

    def die(self: EpochRunner, intention: Any) -> None:
        if intention.epoch == 9:
            raise DiedError
        run_epoch(self, intention)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochRunner, "run", die)
        with pytest.raises(Exception, match="stopped in epoch 9"):
            start(folder)
    return folder


def start(folder: Path) -> Any:
    return run(folder / "ck", SOURCES(folder), QUERIES, epoch_rows=11, partitions=1)[0]


def SOURCES(folder: Path) -> dict[str, dict[str, Any]]:  # noqa: N802
    return {S: {"path": folder / "s.nt"}, T: {"path": folder / "t.nt", "lateness": "1500ms"}}


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy")) / "ck"


def newest(ck: Path, pattern: str) -> Path:
    found = sorted(
        ck.glob(pattern), key=lambda p: int(p.name.split("-")[0]) if p.name[0].isdigit() else 0
    )
    assert found, f"the checkpoint has {pattern}"
    return found[-1]


def flip(path: Path, bit: int) -> None:
    """Makes one bit of a file the other one; twice, and it is as it was."""
    with path.open("r+b", buffering=0) as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def bits(path: Path) -> int:
    return 8 * path.stat().st_size


READERS: dict[str, Callable[[Path], Any]] = {
    "levada.json": lambda path: facts_of(path.parent),
    "manifests/*": read_manifest,
    "commits/*": lambda path: read_commit(path.parents[1], int(path.name)),
    "intentions/open": read_sealed,
    "plans/*.plan": lambda path: encode_plan(read_plan(path)),
    "plans/*.catalog": lambda path: encode_catalog(*read_catalog(path)),
    "plans/groups-*": lambda path: encode_groups(read_groups(path)),
    "plans/setup-*": lambda path: encode(read_file(path, Setup, SETUPS), SETUPS),
}


@pytest.mark.long
@pytest.mark.parametrize("pattern", READERS)
def test_every_bit_of_a_small_file_is_told(copy: Path, pattern: str) -> None:
    path, read = newest(copy, pattern), READERS[pattern]
    read(path)
    for bit in range(bits(path)):
        flip(path, bit)
        with pytest.raises(CheckpointError) as told:
            read(path)
        flip(path, bit)
        assert path.name in str(told.value) or "has format" in str(told.value), (pattern, bit)


def test_every_bit_of_the_facts_is_told_by_an_engine(copy: Path) -> None:
    path = copy / "levada.json"
    for bit in range(bits(path)):
        flip(path, bit)
        with pytest.raises(CheckpointError):
            Checkpoint(copy, partitions=1)
        flip(path, bit)


@pytest.mark.long
def test_a_bit_of_each_byte_of_an_intention_is_told_by_the_loop(
    copy: Path, random_seed: int
) -> None:
    """Of each fourth in CI."""
    path = copy / "intentions" / "open"
    drawn = random.Random(random_seed)
    for bit in (byte + drawn.randrange(8) for byte in range(0, bits(path), 8 * STRIDE)):
        flip(path, bit)
        loop = loop_of(path.parent, lambda last: None, lambda intention: pytest.fail("it was run"))
        assert loop.await_end(PATIENCE)
        assert isinstance(loop.failure, CheckpointError), bit
        flip(path, bit)


@pytest.mark.parametrize("pattern", ["state/*", "results/*"])
def test_bits_of_rows_are_told_where_they_are_read(
    copy: Path, pattern: str, random_seed: int
) -> None:
    path = max(copy.glob(pattern), key=lambda p: p.stat().st_size)
    drawn, size = random.Random(random_seed), bits(path)
    right, told = content(path), 0
    for bit in (drawn.randrange(size) for _ in range(1000)):
        flip(path, bit)
        try:
            assert content(path) == right, bit  # what fills up the head says nothing
        except CheckpointError as error:
            assert path.name in str(error)
            told += 1
        flip(path, bit)
    assert told > 800


def content(path: Path) -> Any:
    """All that a file of frames holds."""
    frames, meta = map_(str(path.parent), path.name)
    return meta, {
        name: {column: values.tobytes() for column, values in frame.columns.items()}
        for name, frame in frames.items()
    }


@pytest.mark.parametrize("size", [0, 3, 8, 15, 16, 500, -1])
def test_rows_cut_short_are_told(copy: Path, size: int) -> None:
    path = newest(copy, "state/*")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CheckpointError, match=f"{path.name} cannot be read: it is"):
        content(path)


def test_a_frame_is_checked_when_it_is_asked_for(copy: Path) -> None:
    path = newest(copy, "state/*")
    whole = map_(str(copy), f"state/{path.name}")[0]
    last = list(whole)[-1]
    assert max(c.nbytes for c in whole[last].columns.values())
    flip(path, bits(path) - 8 * 64)
    frames, _ = map_(str(copy), f"state/{path.name}")
    for name in list(frames)[:-1]:
        assert frames[name].n == whole[name].n
    with pytest.raises(CheckpointError):
        frames[last]


@pytest.mark.long
def test_bits_of_any_file_do_not_change_what_an_engine_says(
    made: Path, tmp_path: Path, random_seed: int
) -> None:
    drawn = random.Random(random_seed)
    right = start(Path(shutil.copytree(made, tmp_path / "right")))
    assert right["beside"]
    assert right["sum"]
    told = 0
    for n in range(25):
        folder = Path(shutil.copytree(made, tmp_path / str(n)))
        path = drawn.choice(
            sorted(p for p in (folder / "ck").rglob("*") if p.is_file() and p.stat().st_size)
        )
        flip(path, drawn.randrange(bits(path)))
        cached_plan.cache_clear()
        load_setup.cache_clear()
        try:
            assert same_queries(right, start(folder)) is None, path
        except CheckpointError as error:
            told += str(error).count("cannot be read")
        shutil.rmtree(folder)
    assert told


def wrong(ck: Path, path: Path) -> bool:
    """Whether something is said of this file."""
    try:
        return path.name in [Path(f.item.name).name for f in verify.verify(ck).damaged]
    except CheckpointError as error:
        return path.name in str(error)


def test_verify_finds_what_is_sound_and_what_is_not(
    copy: Path, tmp_path: Path, random_seed: int
) -> None:
    folder = tmp_path
    read: list[int] = []
    report = verify.verify(copy, read.append)
    assert not report.damaged
    assert (report.epoch, report.running) == (8, False)
    assert sum(read) > 0
    kinds = {f.item.kind for f in report.files}
    assert kinds >= {
        "facts",
        "manifest",
        "intention",
        "plan",
        "catalog",
        "setup",
        "state",
        "results",
    }
    drawn = random.Random(random_seed)
    for found in report.files:
        path = copy / found.item.name
        rows = found.item.kind in ("state", "results")
        at = bits(path) - 8 * 64 if rows else drawn.randrange(bits(path))
        flip(path, at)
        assert wrong(copy, path), found
        flip(path, at)
        if found.item.kind not in ("facts", "manifest", "intention", "commit", "engine"):
            path.rename(folder / "away")
            assert wrong(copy, path), found
            (folder / "away").rename(path)
    assert not verify.verify(copy).damaged


def test_the_copy_of_a_static_file_is_checked_before_it_is_read(tmp_path: Path) -> None:
    write_lines(tmp_path / "s.nt", ELEMENTS)
    (tmp_path / "k.nt").write_text("<http://e/a1> <http://e/q> <http://e/x> .\n" * 9)
    joined = query(
        "SELECT ?a ?n ?m",
        "?a :q ?m . WINDOW :w { ?a :p ?n }",
        name="joined",
        windows={"w": (S, Clause("range", 2500))},
    )

    def static(flipped: bool) -> None:
        with Engine(spark=False, checkpoint=tmp_path / "ck", partitions=1) as engine:
            engine.stream(S, tmp_path / "s.nt")
            engine.static(tmp_path / "k.nt", replaceable=True)
            register(engine, [joined])
            if flipped:
                place = StaticGraphs.place

                def damaged(self: StaticGraphs) -> None:
                    place(self)
                    (copy,) = (tmp_path / "ck" / "static").glob("[0-9a-f]*.nt")
                    flip(copy, 8 * 12)

                patch.setattr(StaticGraphs, "place", damaged)
            engine.start(once=True)
            engine.await_end()

    with pytest.MonkeyPatch.context() as patch, pytest.raises(CheckpointError, match="altered"):
        static(flipped=True)
    static(flipped=False)
    report = verify.verify(tmp_path / "ck")
    assert "static" in {f.item.kind for f in report.files}
    assert not report.damaged


def test_verify_looks_at_a_checkpoint_in_use(copy: Path) -> None:
    with Engine(spark=False, checkpoint=copy, epoch_rows=11, partitions=1) as engine:
        for name, options in SOURCES(copy.parent).items():
            engine.stream(
                name, options["path"], **{k: v for k, v in options.items() if k != "path"}
            )
        register(engine, QUERIES)
        engine.start(once=True)
        report = verify.verify(copy)
        engine.await_end()
        assert (report.running, report.damaged) == (True, [])
    assert verify.verify(copy).running is False
