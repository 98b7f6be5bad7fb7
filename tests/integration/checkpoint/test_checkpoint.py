"""Starting again: what a checkpoint remembers, what it takes up, and what it refuses, each in a
sentence.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import cached_plan
from levada.checkpoint.leadership.commit_log import Leadership
from levada.checkpoint.state_files import map_
from levada.core.checkpoint_files import FORMAT
from levada.engine.engine import Engine
from levada.errors import CheckpointError, EngineError, OvertakenError
from levada.operators.state.state_parts import read_head
from levada.testing.compare import same
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.polling import PATIENCE
from support.query_dsl import S, T, element, expected, judge, query, run, step

W = {"w": (S, step(2000, 1000))}
SUM = query(
    "SELECT ?a (SUM(?n) AS ?m)",
    "WINDOW :w { ?a :p ?n }",
    tail=" GROUP BY ?a",
    name="sum",
    windows=W,
)
ALL = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="all", windows={"w": (S, Clause("range", 1500))}
)
ELEMENTS = [element(300 * i, f"a{i % 3} p {i}") for i in range(20)]


@pytest.fixture
def stream(tmp_path: Path) -> Any:
    return write_lines(tmp_path / "s.nt", ELEMENTS)


@pytest.fixture
def ck(tmp_path: Path) -> Any:
    return tmp_path / "ck"


def append(path: Any, elements: Any) -> None:
    more = write_lines(path.with_suffix(".more"), elements)
    with path.open("ab") as file:
        file.write(more.read_bytes())


def test_an_ended_checkpoint_publishes_what_is_missing_and_says_so(
    stream: Any, ck: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("levada.runtime.publication.publication.Publication.publish", _fail)
        with pytest.raises(EngineError):
            run(ck, {S: {"path": stream}}, [SUM])
    got, engine = run(ck, {S: {"path": stream}}, [SUM])
    assert engine.note == "This checkpoint had ended; its last results are published."
    judge([SUM], {S: ELEMENTS}, got)
    assert run(ck, {S: {"path": stream}}, [SUM])[0] == {}, "nothing is missing any more"


def test_an_ended_checkpoint_ends_without_once_too(stream: Any, ck: Any) -> None:
    run(ck, {S: {"path": stream}}, [SUM])
    with Engine(spark=False, checkpoint=ck) as engine:
        engine.stream(S, stream)
        engine.start()
        assert engine.await_end(PATIENCE)


def test_queries_and_streams_that_come_after_the_end_are_told_of(stream: Any, ck: Any) -> None:
    run(ck, {S: {"path": stream}}, [SUM])
    got, engine = run(ck, {S: {"path": stream}}, [SUM, ALL])
    assert got == {}
    assert engine.note.endswith("published. What it had not run before has no results: all.")
    with pytest.raises(
        CheckpointError, match=r"has ended, and has read nothing of the stream http://e/t"
    ):
        run(ck, {S: {"path": stream}, T: {"path": stream}}, [SUM])


def test_sources_that_have_grown_since_the_end_are_refused(stream: Any, ck: Any) -> None:
    run(ck, {S: {"path": stream}}, [SUM])
    append(stream, [element(9000, "a p 1")])
    with pytest.raises(
        CheckpointError, match=r"The stream http://e/s has grown behind s\.nt since"
    ):
        run(ck, {S: {"path": stream}}, [SUM])


def test_keep_open_goes_on_where_it_was(stream: Any, ck: Any) -> None:
    write_lines(stream, ELEMENTS[:7])
    first, _ = run(ck, {S: {"path": stream}}, [SUM, ALL], keep_open=True, epoch_rows=3)
    append(stream, ELEMENTS[7:12])
    second, _ = run(ck, {S: {"path": stream}}, [SUM, ALL], keep_open=True)
    append(stream, ELEMENTS[12:])
    third, _ = run(ck, {S: {"path": stream}}, [SUM, ALL])
    got = {n: [*first.get(n, []), *second.get(n, []), *third.get(n, [])] for n in ("sum", "all")}
    judge([SUM, ALL], {S: ELEMENTS}, got)


def test_keep_open_ends_although_a_stream_may_not_be_read_further(
    stream: Any, ck: Any, tmp_path: Path
) -> None:
    other = write_lines(tmp_path / "t.nt", ELEMENTS[:2])
    sources = {S: {"path": stream, "ahead": 3}, T: {"path": other}}
    on = {"w": (S, Clause("range", 1500)), "v": (T, Clause("range", 1500))}
    beside = query(
        "SELECT ?a ?n ?m",
        "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :p ?m }",
        name="beside",
        windows=on,
    )
    _, engine = run(ck, sources, [beside], keep_open=True, epoch_rows=2)
    assert engine._records()[S].elements < len(ELEMENTS)


def test_another_text_under_a_known_name_is_a_new_query(stream: Any, ck: Any) -> None:
    write_lines(stream, ELEMENTS[:10])
    run(ck, {S: {"path": stream}}, [SUM, ALL], keep_open=True)
    append(stream, ELEMENTS[10:])
    most = query(
        "SELECT ?a (MAX(?n) AS ?m)",
        "WINDOW :w { ?a :p ?n }",
        tail=" GROUP BY ?a",
        name="sum",
        windows=W,
    )
    got, _ = run(ck, {S: {"path": stream}}, [most, ALL])
    judge([most], {S: ELEMENTS[10:]}, {"sum": got["sum"]})
    rest = [r for r in expected([ALL], {S: ELEMENTS})["all"] if r.time >= ELEMENTS[9].ts]
    assert same(rest, got["all"]) is None, "the other query goes on"


def test_a_query_that_is_gone_reports_no_more_and_one_that_is_new_starts_after_what_was_seen(
    stream: Any, ck: Any
) -> None:
    write_lines(stream, ELEMENTS[:10])
    run(ck, {S: {"path": stream}}, [SUM], keep_open=True)
    append(stream, ELEMENTS[10:])
    got, _ = run(ck, {S: {"path": stream}}, [ALL])
    assert set(got) == {"all"}
    judge([ALL], {S: ELEMENTS[10:]}, got)


def test_a_new_stream_joins_a_checkpoint(stream: Any, ck: Any, tmp_path: Path) -> None:
    write_lines(stream, ELEMENTS[:10])
    run(ck, {S: {"path": stream}}, [ALL], keep_open=True)
    append(stream, ELEMENTS[10:])
    other = write_lines(tmp_path / "t.nt", ELEMENTS)
    on_t = query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :p ?n }",
        name="more",
        windows={"w": (T, Clause("range", 1500))},
    )
    got, _ = run(ck, {T: {"path": other}, S: {"path": stream}}, [on_t, ALL])
    judge([on_t], {T: ELEMENTS}, {"more": got["more"]})
    rest = [r for r in expected([ALL], {S: ELEMENTS})["all"] if r.time >= ELEMENTS[9].ts]
    assert same(rest, got["all"]) is None


def test_a_stream_that_is_not_named_any_more_is_refused(stream: Any, ck: Any) -> None:
    run(ck, {S: {"path": stream}}, [SUM], keep_open=True)
    with pytest.raises(CheckpointError, match="has a stream http://e/s, which is not named now"):
        run(ck, {T: {"path": stream}}, [])


def test_a_killed_change_of_queries_is_made_at_the_next_start(
    stream: Any, ck: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new plan is written, its epoch is not intended: the next start must not take the query
    for known.
    """
    write_lines(stream, ELEMENTS[:10])
    run(ck, {S: {"path": stream}}, [SUM], keep_open=True)
    append(stream, ELEMENTS[10:])
    with monkeypatch.context() as patch:
        patch.setattr("levada.engine.epoch_loop.EpochLoop._write", _fail)
        with pytest.raises(EngineError):
            run(ck, {S: {"path": stream}}, [ALL])
    got, _ = run(ck, {S: {"path": stream}}, [ALL])
    judge([ALL], {S: ELEMENTS[10:]}, got)


def test_an_open_intention_runs_with_its_own_plan(
    stream: Any, ck: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in an epoch of a new query set, started with another one: the epoch first, then the
    change.
    """
    write_lines(stream, ELEMENTS[:10])
    run(ck, {S: {"path": stream}}, [SUM], keep_open=True)
    append(stream, ELEMENTS[10:12])
    with monkeypatch.context() as patch:
        patch.setattr("levada.runtime.executor.LocalExecutor.run", _fail)
        with pytest.raises(EngineError):
            run(ck, {S: {"path": stream}}, [ALL], keep_open=True)
    append(stream, ELEMENTS[12:])
    got, _ = run(ck, {S: {"path": stream}}, [SUM, ALL])
    judge([ALL], {S: ELEMENTS[10:]}, {"all": got["all"]})
    judge([SUM], {S: ELEMENTS[12:]}, {"sum": got["sum"]})


def _fail(*args: Any) -> None:
    raise RuntimeError("killed")


def test_a_checkpoint_made_anew_in_the_same_place_is_another(stream: Any, ck: Any) -> None:
    import shutil

    run(ck, {S: {"path": stream}}, [SUM])
    shutil.rmtree(ck)
    got, _ = run(ck, {S: {"path": write_lines(stream, ELEMENTS[5:])}}, [ALL])
    judge([ALL], {S: ELEMENTS[5:]}, got)


def test_a_second_run_may_cut_the_stream_elsewhere(stream: Any, ck: Any) -> None:
    run(ck, {S: {"path": stream, "limit": 5}}, [ALL], keep_open=True)
    got, _ = run(ck, {S: {"path": stream, "limit": 8}}, [ALL])
    rest = [r for r in expected([ALL], {S: ELEMENTS[:8]})["all"] if r.time >= ELEMENTS[4].ts]
    assert same(rest, got["all"]) is None


def open_and_close(root: Any) -> None:
    Checkpoint(Path(root), partitions=1).close()


def test_two_engines_do_not_share_a_checkpoint(ck: Any) -> None:
    held = Checkpoint(ck, partitions=1)
    with pytest.raises(CheckpointError, match="Another engine is running on the checkpoint"):
        open_and_close(ck)
    held.close()
    open_and_close(ck)


def test_a_second_engine_that_evaded_the_lock_takes_over(
    stream: Any, ck: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Leadership.commit

    def late(reign: Leadership, manifest: Any, *needed: Any) -> None:
        open_and_close(ck)
        commit(reign, manifest, *needed)

    monkeypatch.setattr(Checkpoint, "lock", lambda self, patience, needed: None)
    monkeypatch.setattr(Leadership, "commit", late)
    told = rf"Another engine has taken over the checkpoint {ck}: process {os.getpid()} on "
    with pytest.raises(OvertakenError, match=told) as caught:
        run(ck, {S: {"path": stream}}, [SUM])
    assert caught.value.exit_code == 4
    assert not list((ck / "manifests").iterdir())


def test_a_folder_with_strangers_is_no_checkpoint(ck: Any) -> None:
    ck.mkdir()
    (ck / "holiday.jpg").touch()
    with pytest.raises(
        CheckpointError, match=r"is not a checkpoint of Levada: it holds holiday\.jpg"
    ):
        open_and_close(ck)


def test_a_half_made_checkpoint_is_made_again(ck: Any) -> None:
    ck.mkdir()
    (ck / ".levada.json.123").write_text("{")
    open_and_close(ck)


def test_another_format_is_refused(ck: Any) -> None:
    open_and_close(ck)
    facts = (ck / "levada.json").read_text()
    (ck / "levada.json").write_text(json.dumps({"format": FORMAT + 1, "other": True}))
    with pytest.raises(
        CheckpointError,
        match=(
            f"has format {FORMAT + 1}, and this version of Levada reads format {FORMAT}: go on with"
        ),
    ):
        open_and_close(ck)
    (ck / "levada.json").write_text(facts[:-9])
    with pytest.raises(CheckpointError, match=r"levada\.json cannot be read: it is cut short"):
        open_and_close(ck)


@pytest.mark.parametrize("content", [b"", b"{", b'{"epoch": "x"}', b"\xff\xfe"])
def test_a_damaged_manifest_is_told(stream: Any, ck: Any, content: bytes) -> None:
    run(ck, {S: {"path": stream}}, [SUM])
    last = max((ck / "commits").iterdir(), key=lambda p: int(p.name))
    last.write_bytes(content)
    with pytest.raises(
        CheckpointError, match=r"The checkpoint's file .*/commits/\d+ cannot be read"
    ):
        open_and_close(ck)


@pytest.mark.parametrize(("ending", "queries"), [("plan", [SUM]), ("catalog", [SUM, ALL])])
def test_a_damaged_plan_is_told(stream: Any, ck: Any, ending: str, queries: Any) -> None:
    run(ck, {S: {"path": stream}}, [SUM], keep_open=True)
    for path in (ck / "plans").glob(f"*.{ending}"):
        path.write_bytes(path.read_bytes()[:40])
    cached_plan.cache_clear()
    with pytest.raises(CheckpointError, match=r"cannot be read"):
        run(ck, {S: {"path": stream}}, queries)


def test_a_missing_state_file_is_told(stream: Any, ck: Any) -> None:
    run(ck, {S: {"path": stream}}, [SUM], keep_open=True)
    for path in (ck / "state").iterdir():
        path.unlink()
    with pytest.raises(
        CheckpointError, match=r"The checkpoint's file .* cannot be read: No such file or directory"
    ):
        run(ck, {S: {"path": stream}}, [SUM])


@pytest.mark.parametrize("call", ["writev", "fsync", "link"])
def test_a_full_disk_is_a_sentence_and_nothing_is_lost(
    stream: Any, ck: Any, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _full)
        with pytest.raises(
            CheckpointError,
            match=r"The checkpoint .* cannot be (made|written): No space left on device",
        ):
            run(ck, {S: {"path": stream}}, [SUM])
    got, _ = run(ck, {S: {"path": stream}}, [SUM])
    judge([SUM], {S: ELEMENTS}, got)


def _full(*args: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_checkpoint_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="cannot be made"):
        open_and_close(tmp_path / "file" / "ck")


def test_a_temporary_checkpoint_goes_with_its_engine(
    stream: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    with Engine(spark=False) as engine:
        engine.stream(S, stream)
        engine.static(["<a:a> <a:b> <a:c> ."])
        engine.register(SUM.text)
        engine.start(once=True)
        engine.await_end()
        assert engine.root.exists()
    Engine(spark=False).close()
    assert not list((tmp_path / "tmp").iterdir())


def test_nothing_stays_of_queries_that_are_gone(stream: Any, ck: Any) -> None:
    """Neither their nodes' rows nor the plans in which they were."""
    write_lines(stream, ELEMENTS[:6])
    last = query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :p ?n }",
        name="last",
        windows={"w": (S, Clause("count", count=4))},
    )
    opened, at = [], 6
    for queries in ([SUM, last], [SUM, ALL], [SUM]):
        options: Any = {"partitions": 1, "seed": 7, "keep_results": False}
        # one may go back to the epoch before, so each run has more than one
        with Engine(spark=False, checkpoint=ck, epoch_rows=2, **options) as engine:
            engine.stream(S, stream)
            for asked in queries:
                engine.register(asked.text, name=asked.name)
            engine.start(once=True, keep_open=True)
            engine.await_end()
            checkpoint = engine._open()
            manifest, facts = checkpoint.last, checkpoint.facts
            kept = read_head(map_(str(ck), checkpoint.names.state["1.0"])[1]).pieces
            opened.append({int(key.split(".")[0]) for key in kept if key[0].isdigit()})
            assert opened[-1] <= set(checkpoint.load_plan(manifest.plan).nodes)
        plans = {p.name for p in (ck / "plans").glob("[0-9]*")}
        assert plans == {f"{manifest.plan}-{facts.id}.{end}" for end in ("plan", "catalog")}
        append(stream, ELEMENTS[at : at + 3])
        at += 3
    assert opened[0] - opened[1] and opened[1] - opened[2], "something was there to be forgotten"


def test_a_query_whose_streams_are_declared_otherwise_starts_anew(tmp_path: Path) -> None:
    """Rows that were kept under another promise, or as another type, are not what a fresh run would
    have.
    """
    triples, found = tmp_path / "s.nt", []
    count = (
        f"SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <http://e/w> ON <{S}> [RANGE PT4S STEP PT4S] "
        f"{{ WINDOW <http://e/w> {{ ?s ?p ?o }} }}"
    )
    for unique, times in ((True, (1000,)), (False, (1000, 5000, 6000))):
        triples.write_text(
            "".join(f"<http://e/a> <http://e/p> <http://e/b> {t} .\n" for t in times)
        )
        with Engine(spark=False, partitions=1, checkpoint=tmp_path / "ck") as engine:
            engine.stream(S, triples, unique=unique)
            query = engine.register(count, name="q")
            engine.start(once=True, keep_open=unique)
            engine.await_end(PATIENCE)
            found += [(report.time, report.rows.rows()) for report in query.results()]
    assert found == [(8000, [('"1"^^<http://www.w3.org/2001/XMLSchema#integer>',)])]


def test_a_column_of_another_type_is_read_as_such(tmp_path: Path) -> None:
    rows, found = tmp_path / "a.csv", []
    for schema, text in (
        ("k:integer;v:integer", "k,v,ts\n1,2,1000\n"),
        ("k:integer;v:double", "k,v,ts\n1,2,1000\n1,2.5,5000\n1,3.5,6000\n"),
    ):
        rows.write_text(text)
        with Engine(spark=False, partitions=1, checkpoint=tmp_path / "ck") as engine:
            engine.stream("A", rows, schema=schema)
            query = engine.register(
                "Rstream(Select k, Sum(v) As t From A [Range 4 s Slide 4 s] Group By k)", name="q"
            )
            engine.start(once=True, keep_open="integer;v:i" in schema)
            engine.await_end(PATIENCE)
            found += [(report.time, report.rows.get_column("t")[0]) for report in query.results()]
    assert found == [(8000, '"6"^^<http://www.w3.org/2001/XMLSchema#double>')]
