"""A run that learns its placement gives what one without gives, sends less across machines, and
says what it predicted beside what came of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import levada
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.manifest import LearningStep, Manifest
from levada.cli.status import show
from levada.engine.placement.measured_send_graph import read_send_graph
from levada.engine.placement.placement_options import read_learning
from levada.engine.status.status import read_status
from levada.errors import UsageError
from levada.runtime.placement.send_graph import START

DAY = 86_400_000
KEYS, EACH = 60, 240
TEXT = "Istream(Select k, Count(*) As n From S [Range 1 Day Slide 1 Day] Group By k)"
VIEW = "Rstream(Select S.k, T.v From S [Now], S [Partition By k Rows 2] As T Where S.k = T.k)"


def write(
    folder: Path, days: range, *, turned: bool = False, halves: tuple[int, ...] = (0, 1)
) -> None:
    """Two files a stream: a key is in one of them; half of them in the other one, if ``turned``.
    On these days only those of ``halves`` have rows.
    """
    folder.mkdir(exist_ok=True)
    for half in halves:
        with (folder / f"{half}.csv").open("a") as file:
            if not file.tell():
                file.write("k,v,ts\n")
            for day in days:
                for i in range(EACH):
                    key = i * 7 % (KEYS // 2)
                    k = 2 * key + (half ^ (turned and key % 2))
                    file.write(f"{k},{i % 5},{day * DAY + i * DAY // EACH + half}\n")


def run(folder: Path, checkpoint: Path, **given: Any) -> tuple[set[tuple[Any, ...]], Manifest]:
    with levada.Engine(
        spark=False, checkpoint=checkpoint, partitions=4, epoch_rows=EACH, seed=3, **given
    ) as engine:
        schema = {"k": "integer", "v": "integer"}
        engine.stream("S", folder, schema=schema, files="parallel")
        queries = [
            engine.register(text, name=name, dialect="cql")
            for name, text in (("counts", TEXT), ("last", VIEW))
        ]
        engine.start(once=True, keep_open=True)
        engine.await_end()
        rows = {(q.name, *row) for q in queries for row in q.to_polars().rows()}
    manifest = newest_manifest(checkpoint)
    assert manifest is not None
    return rows, manifest


def lessons(manifest: Manifest) -> list[LearningStep]:
    assert manifest.placement is not None
    return manifest.placement.learning_steps


def test_a_run_learns_and_its_results_are_the_same(tmp_path: Path) -> None:
    write(tmp_path / "s", range(5))
    plain, _ = run(tmp_path / "s", tmp_path / "plain")
    learned, manifest = run(tmp_path / "s", tmp_path / "learned", place="learn:2")
    assert learned == plain and plain
    first, *others = lessons(manifest)
    assert 0.3 < first.share_before < 0.7, "keys are dealt out in turn"
    assert first.predicted_share < 0.05 and first.moved_groups
    assert first.measured_share == pytest.approx(first.predicted_share, abs=0.2), (
        "some epochs were before"
    )
    assert others and not any(lesson.moved_groups for lesson in others), "what is good stays"
    text = "\n".join(
        str(part) for part in show(read_status(tmp_path / "learned"), verbose=True).renderables
    )
    assert "readers moved at epoch" in text and "nothing much better was found" in text


def test_epochs_before_any_event_time_are_no_day_that_is_over(tmp_path: Path) -> None:
    """They are a slice of their own, whose name stands behind all dates."""
    write(tmp_path / "s", range(0))
    run(tmp_path / "s", tmp_path / "c", place="learn:2")
    write(tmp_path / "s", range(4))
    _, manifest = run(tmp_path / "s", tmp_path / "c", place="learn:2")
    assert next(iter(manifest.group_count_files)) == START
    days = [f"1970-01-0{day}" for day in (1, 2, 3)]
    assert [lesson.slice for lesson in lessons(manifest)] == days
    last = read_send_graph(tmp_path / "c", "1970-01-04")
    assert read_send_graph(tmp_path / "c", None).rows.tolist() == last.rows.tolist()


def test_a_run_that_goes_on_begins_with_what_was_learned(tmp_path: Path) -> None:
    write(tmp_path / "s", range(3))
    run(tmp_path / "s", tmp_path / "c", place="learn:2")
    write(tmp_path / "s", range(3, 6))
    _, manifest = run(tmp_path / "s", tmp_path / "c", place="learn:2")
    assert lessons(manifest) and all(lesson.share_before < 0.05 for lesson in lessons(manifest))
    assert not any(lesson.moved_groups for lesson in lessons(manifest))


def test_what_changes_is_learned_in_steps(tmp_path: Path) -> None:
    write(tmp_path / "s", range(3))
    write(tmp_path / "s", range(3, 9), turned=True)
    _, manifest = run(tmp_path / "s", tmp_path / "c", place="learn:2")
    moved = [lesson for lesson in lessons(manifest) if lesson.moved_groups]
    assert len(moved) > 2, "a later step does not move everything"
    assert all(lesson.predicted_share < 0.9 * lesson.share_before for lesson in moved)


def test_a_slice_that_a_step_cannot_make_even_ends_no_run(tmp_path: Path) -> None:
    """All rows of some days are of one machine's keys: a step moves a fifth, half would be even."""
    write(tmp_path / "s", range(2))
    write(tmp_path / "s", range(2, 6), halves=(0,))
    plain, _ = run(tmp_path / "s", tmp_path / "plain")
    learned, manifest = run(tmp_path / "s", tmp_path / "c", place="learn:2")
    assert learned == plain and plain
    assert "1970-01-03" in [lesson.slice for lesson in lessons(manifest)]


def test_of_a_query_that_is_gone_nothing_is_learned(tmp_path: Path) -> None:
    write(tmp_path / "s", range(2))
    with levada.Engine(
        spark=False, checkpoint=tmp_path / "c", partitions=4, epoch_rows=EACH, place="learn:2"
    ) as engine:
        engine.stream(
            "S", tmp_path / "s", schema={"k": "integer", "v": "integer"}, files="parallel"
        )
        engine.register("Select v From S Where v > 9", name="none", dialect="cql")
        engine.start(once=True, keep_open=True)
        engine.await_end()
    manifest = newest_manifest(tmp_path / "c")
    assert manifest is not None
    assert [lesson.moved_groups for lesson in lessons(manifest)] in ([], [0])


def test_of_a_slice_that_was_counted_by_few_groups_nothing_is_learned(tmp_path: Path) -> None:
    """As where a run that learns goes on behind one that has only counted."""
    write(tmp_path / "s", range(2))
    run(tmp_path / "s", tmp_path / "ck", slices="1d,groups=64")
    write(tmp_path / "s", range(2, 5))
    _, manifest = run(tmp_path / "s", tmp_path / "ck", place="learn:2")
    first, *others = lessons(manifest)
    assert first.slice == "1970-01-02"
    assert first.message == ("The slice 1970-01-02 was counted by 64 groups: nothing is learned.")
    assert others and not any("counted by" in lesson.message for lesson in others)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("learn", r"does not follow from local\[2\]"),
        ("learn:1", "'1' machines cannot be learned"),
        ("learn:many", "'many' machines cannot be learned"),
        ("learn:", "'' machines cannot be learned"),
    ],
)
def test_a_wish_that_is_wrong_says_so(place: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_learning(place, "local[2]")


def test_machines_follow_from_a_local_cluster_and_need_partitions(tmp_path: Path) -> None:
    found = read_learning("learn", "local-cluster[3,1,1024]")
    assert found is not None and found.machines == 3 and found.partitions(4) == 6
    assert read_learning("off", "local[2]") is None
    write(tmp_path / "s", range(1))
    with pytest.raises(UsageError, match="some machines would have none"):
        run(tmp_path / "s", tmp_path / "c", place="learn:5")
