"""A checkpoint whose newest state is damaged goes back to the manifest before: the epoch is done
again, and what was published is published once, as it was.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint import live_files, verify
from levada.checkpoint.checkpoint_folder import Checkpoint, newest_manifest
from levada.checkpoint.file_inventory import names_of
from levada.checkpoint.leadership import rollback as module
from levada.checkpoint.leadership.rollback import rollback, rollback_hint
from levada.checkpoint.manifest import Manifest, read_manifest
from levada.cli.main import main
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.core import checkpoint_files
from levada.engine.engine import Engine
from levada.errors import CheckpointError, LevadaError, SourceError
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, T, element

PREFIX = "PREFIX : <http://e/>\n"
W = f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT0.5S]"
V = f"FROM NAMED WINDOW :v ON <{T}> [RANGE PT3S STEP PT1S]"
QUERIES = {
    "joined": f"{PREFIX}SELECT ?a ?n ?m {W} {V} {{ WINDOW :w {{ ?a :p ?n }} "
    "WINDOW :v { ?a :q ?m } }",
    "sum": f"{PREFIX}SELECT ?a (SUM(?n) AS ?s) {W} {{ WINDOW :w {{ ?a :p ?n }} }} GROUP BY ?a",
    "made": f"{PREFIX}REGISTER ISTREAM :made AS CONSTRUCT {{ ?a :r ?n }} {W} "
    "{ WINDOW :w { ?a :p ?n } }",
    "again": f"{PREFIX}SELECT ?a ?n ?f FROM NAMED WINDOW :x ON :made [RANGE PT4S STEP PT1S] "
    "{ WINDOW :x { ?a :r ?n } ?a :f ?f }",
}


class DiedError(Exception):
    """What a run sees in place of its end."""


def begun(folder: Path, *, partitions: int = 2, **options: Any) -> Engine:
    sink = FileSink(folder / "out", Format.NDJSON)
    engine = Engine(
        spark=False, checkpoint=folder / "ck", sink=sink, epoch_rows=13, partitions=partitions,
        seed=7, letters=folder / "letters", **options,
    )  # fmt: skip
    engine.stream(S, folder / "s.nt")
    engine.stream(T, folder / "t.nt", lateness="1s")
    engine.static([f"<http://e/a{i}> <http://e/f> <http://e/f{i % 2}>" for i in range(5)])
    for name, text in QUERIES.items():
        engine.register(text, name=name)
    return engine


def run(folder: Path, die: int = 0, **options: Any) -> None:
    """To the end, or until the epoch of this number is written ahead."""
    run_epoch = EpochRunner.run

    def dies(self: EpochRunner, intention: Any) -> None:
        if intention.epoch == die:
            raise DiedError
        run_epoch(self, intention)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochRunner, "run", dies)
        try:
            with begun(folder, **options) as engine:
                engine.start(once=True)
                engine.await_end()
        except LevadaError as error:
            if not isinstance(error.__cause__, DiedError):
                raise


def published(folder: Path) -> dict[str, list[str]]:
    """The lines of each file, and in each report the solutions, in an order of their own."""
    there = [p for p in folder.glob("*/*/*") if p.is_file() and p.parent.parent.name != "ck"]
    return {str(p.relative_to(folder)): sorted(map(_line, p.open())) for p in there}


def _line(text: str) -> str:
    found = json.loads(text)
    if "results" in found:
        found["results"]["bindings"].sort(key=str)
    if "graph" in found:
        found["graph"] = sorted(found["graph"].splitlines())
    return json.dumps(found)


def damage(ck: Path, how: Callable[[Path], None]) -> list[str]:
    """Damages what the newest manifest alone names."""
    last = newest_manifest(ck)
    assert last is not None
    before = read_manifest(ck / "manifests" / str(last.epoch - 1))
    own = sorted(names_of(ck, last).files - names_of(ck, before).files)
    for name in own:
        how(ck / name)
    return own


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def write(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    write_lines(folder / "s.nt", [element(200 * i, f"a{i % 5} p {i}") for i in range(70)])
    late = [element(300 * i - 2500 * (i % 17 == 9), f"a{i % 5} q b{i}") for i in range(45)]
    write_lines(folder / "t.nt", late)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What a run publishes that nothing happens to."""
    folder = tmp_path_factory.mktemp("whole")
    write(folder)
    run(folder)
    found = published(folder)
    assert {name.split("/")[1] for name in found} >= {*QUERIES} - {"made"}
    assert any(name.startswith("letters") for name in found)
    return found


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that died after epoch 6, with the next one written ahead."""
    folder = tmp_path_factory.mktemp("died")
    write(folder)
    run(folder, 7, keep="1h")
    return folder


@pytest.fixture
def copy(died: Path, tmp_path: Path) -> Path:
    """That run at another place: its streams stay where they were read."""
    found = Path(shutil.copytree(died, tmp_path / "copy"))
    for name in ("s.nt", "t.nt"):
        (found / name).unlink()
        (found / name).symlink_to(died / name)
    return found


@pytest.mark.parametrize(
    ("die", "how", "keep", "partitions", "few"),
    [(3, cut, None, 3, 1024), (8, Path.unlink, "1h", 2, 0)],
)
def test_results_are_those_of_a_run_that_nothing_happened_to(
    whole: dict[str, list[str]],
    tmp_path: Path,
    die: int,
    how: Any,
    keep: str | None,
    partitions: int,
    few: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also over another number of partitions from then on: the intention has its own. Also where
    names stand in an inventory, which is damaged, too.
    """
    monkeypatch.setattr(live_files, "MAX_INLINE_NAMES", few)
    write(tmp_path)
    run(tmp_path, die, keep=keep)
    was = published(tmp_path)
    own = damage(tmp_path / "ck", how)
    assert own
    with pytest.raises(CheckpointError, match="goes back to it") as told:
        run(tmp_path, keep=keep)
    assert any(name in str(told.value) for name in own)
    assert f"of epoch {die - 2}, is whole: `levada rollback" in str(told.value)
    assert rollback(tmp_path / "ck", None, wall=5) == die - 2
    assert published(tmp_path) == was
    run(tmp_path, keep=keep, partitions=partitions)
    assert published(tmp_path) == whole
    assert not verify.verify(tmp_path / "ck").damaged


def test_what_is_told(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ck = copy / "ck"
    damage(ck, cut)
    assert main(["verify", str(ck)]) == 1
    assert "The manifest before, of epoch 5, is whole: `levada rollback" in capsys.readouterr().out
    assert main(["rollback", str(ck), "--to", "3"]) == 1
    said = "can go back to epoch 5 alone, not to 3. What older manifests name is deleted."
    assert said in capsys.readouterr().err.replace("\n", " ")
    assert main(["rollback", str(ck), "--to", "5"]) == 0
    assert "is as after epoch 5. The next run does epoch 6 again" in capsys.readouterr().out
    assert main(["verify", str(ck)]) == 0
    assert main(["rollback", str(ck)]) == 1
    assert "no whole manifest before that of epoch 5" in capsys.readouterr().err.replace("\n", " ")


def test_readers_see_each_report_once(copy: Path, whole: dict[str, list[str]]) -> None:
    """One that has read the index before goes on with what is new."""
    from levada.checkpoint.result_index import Cursor

    cursor = Cursor(copy / "ck")
    first = cursor.read_new()
    damage(copy / "ck", cut)
    rollback(copy / "ck", None, wall=5)
    run(copy, keep="1h")
    epochs = [entry.epoch for entry in first + cursor.read_new()]
    assert epochs == sorted(set(epochs))
    anew = Cursor(copy / "ck").read_new()
    assert [entry.epoch for entry in anew] == epochs
    assert all((copy / "ck" / name).exists() for entry in anew for name in entry.segments)
    assert published(copy) == whole


def test_a_death_between_the_steps_loses_nothing(
    copy: Path, whole: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise DiedError

    with monkeypatch.context() as patch:
        patch.setattr("levada.checkpoint.leadership.commit_log.Leadership.commit", dies)
        with pytest.raises(DiedError):
            rollback(copy / "ck", None, wall=5)
    run(copy, keep="1h")
    assert published(copy) == whole


REFUSALS: dict[str, tuple[Callable[[Path], object], str]] = {
    "the one before is damaged, too": (
        lambda ck: list(map(cut, (ck / name for name in names_of(ck, before(ck)).files))),
        "cannot go back to epoch 5: The checkpoint's file .* cannot be read",
    ),
    "the one before is missing": (
        lambda ck: (ck / "manifests" / "5").unlink(),
        "no whole manifest before that of epoch 6",
    ),
    "what was done is not known": (
        lambda ck: (ck / "intentions" / "done").unlink(),
        "it is not kept what epoch 6 has read",
    ),
}


def before(ck: Path) -> Manifest:
    return read_manifest(ck / "manifests" / "5")


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_done_is_refused(copy: Path, case: str) -> None:
    ck, (change, said) = copy / "ck", REFUSALS[case]
    damage(ck, cut)
    assert rollback_hint(ck)
    change(ck)
    is_refused(ck, said)


def is_refused(ck: Path, said: str) -> None:
    """And nothing changes."""
    assert not rollback_hint(ck)
    was = (sorted(p.name for p in (ck / "manifests").iterdir()), ends(ck))
    with pytest.raises(CheckpointError, match=said):
        rollback(ck, None, wall=5)
    assert (sorted(p.name for p in (ck / "manifests").iterdir()), ends(ck)) == was


def ends(ck: Path) -> bytes:
    return (ck / "intentions" / "open").read_bytes()


def test_without_the_newest_commit_nothing_is_offered(copy: Path) -> None:
    """Found: it was, and then refused."""
    ck = copy / "ck"
    max((ck / "commits").iterdir(), key=lambda p: int(p.name)).unlink()
    with pytest.raises(CheckpointError, match="the commit of epoch 6 is missing") as told:
        run(copy, keep="1h")
    assert "levada rollback" not in str(told.value)
    is_refused(ck, "the commit of epoch 6 is missing")


def test_nothing_to_go_back_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", str(tmp_path / "no")]) == 1
    assert "is not a checkpoint of Levada" in capsys.readouterr().err.replace("\n", " ")
    Checkpoint(tmp_path / "ck", partitions=1).close()
    with pytest.raises(CheckpointError, match="No epoch of the checkpoint"):
        rollback(tmp_path / "ck", None, wall=5)


def test_an_engine_at_work_is_not_disturbed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("levada.checkpoint.checkpoint_folder.LOOKED_AT", 0.0)
    at_work = Checkpoint(copy / "ck", partitions=2)
    try:
        with pytest.raises(CheckpointError, match="Another engine is running"):
            rollback(copy / "ck", None, wall=5)
    finally:
        at_work.close()


def test_a_source_that_is_another_is_no_dead_letter(tmp_path: Path) -> None:
    """What was published would be another thing: so it is refused, or ends the run."""
    write(tmp_path)
    run(tmp_path, 7)
    source, ck = tmp_path / "s.nt", tmp_path / "ck"
    text = source.read_text()
    damage(ck, cut)
    source.rename(tmp_path / "away")
    is_refused(ck, "cannot go back to epoch 5: The file .*s.nt cannot be read: No such file")
    source.write_text(text.replace("a1", "a2"))
    is_refused(ck, "s.nt was .* since it was read, and what came of it is published")
    source.write_text(text)
    rollback(ck, None, wall=5)
    source.write_text(text.replace("a1", "a2"))
    with pytest.raises(SourceError, match="since it was read, and what came of it is published"):
        run(tmp_path)
    source.write_text(text)
    run(tmp_path)
    assert published(tmp_path)


def test_an_older_format_is_refused(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    was = checkpoint_files.FORMAT
    monkeypatch.setattr(checkpoint_files, "FORMAT", was + 1)
    with pytest.raises(CheckpointError, match=f"has format {was}, and this version"):
        rollback(copy / "ck", None, wall=5)
    assert module.DONE_INTENT.startswith("intentions/")


def test_an_epoch_at_which_a_stream_came_is_done_again(tmp_path: Path) -> None:
    """It has another setup than the one before, and both are kept."""
    source = write_lines(tmp_path / "s.nt", [element(0, "a p 1")])
    with Engine(spark=False, checkpoint=tmp_path / "ck", partitions=2) as engine:
        engine.stream(S, source)
        engine.register(
            f"SELECT ?x FROM NAMED WINDOW <w> ON <{S}> [RANGE PT2S] {{ WINDOW <w> {{ ?x ?p ?y }} }}"
        )
        engine.start(once=True, keep_open=True)
        engine.await_end()
    with Engine(spark=False, checkpoint=tmp_path / "ck", partitions=2) as engine:
        engine.stream(S, source)
        engine.stream(T, write_lines(tmp_path / "t.nt", [element(0, "a p 2")]))
        engine.start(once=True, keep_open=True)
        engine.await_end()
        last = engine._open().last
    assert last is not None and rollback(tmp_path / "ck", None, wall=5) == last.epoch - 1
