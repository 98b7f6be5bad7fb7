"""A checkpoint on an object store (``tests/support/s3_server.py``): killed before each change of
the disk or of the store it is restored on an empty folder, results equal; two drivers; what is
refused.
"""

import os
import random
import re
import shutil
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.leadership.rollback import rollback, rollback_hint
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.object_store import folder_mirror
from levada.checkpoint.object_store.folder_mirror import mirror_of
from levada.checkpoint.object_store.object_client import Objects
from levada.checkpoint.object_store.store_url import Address, folder_of
from levada.checkpoint.verify import verify
from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.errors import CheckpointError, DamagedError, LevadaError, OvertakenError, UsageError
from levada.testing.compare import read_ndjson, same_queries
from levada.testing.stream_builders import write_lines
from support.fault_injection import Fate, published, survived
from support.interleaved_engines import Turns, told
from support.query_dsl import S, T, element, judge, query, register, step
from support.s3_server import (
    BUCKET,
    GATEWAY,
    KEY,
    SECRET,
    Moto,
    Server,
    passing,
    without_conditions,
)
from support.s3_server import server as started

EVERY = int(os.environ.get("LEVADA_STRIDE", "87"))  # 1: each change
KEYS = int(os.environ.get("LEVADA_KEYS", "25"))
CASES = int(os.environ.get("LEVADA_SCHEDULES", "2"))
LEFT = [element(250 * i, f"a{i % 3} p {i % 4}", f"a{i % 3} q b{i % 2}") for i in range(10)]
RIGHT = [element(400 * i, f"b{i % 2} r {i}") for i in range(6)]
STREAMS = {S: LEFT, T: RIGHT}
WINDOWS = {"w": (S, step(2000, 1000)), "v": (T, step(1500, 500))}
QUERIES = [
    query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :r ?n }",
        name="join",
        windows=WINDOWS,
    ),
    query(
        "SELECT ?a (SUM(?n) AS ?m)",
        "WINDOW :w { ?a :p ?n }",
        tail=" GROUP BY ?a",
        name="sum",
        windows={"w": WINDOWS["w"]},
    ),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = started()
    running.make_bucket()
    yield running
    running.close()


@pytest.fixture
def guarded() -> Iterator[Server]:
    """A server that asks who one is."""
    running = Moto(guarded=True)
    yield running
    running.close()


@pytest.fixture
def place(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    for name, value in server.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LEVADA_CHECKPOINTS", str(tmp_path / "work"))
    return f"s3://{BUCKET}/{uuid.uuid4()}"  # a later test may have the same folder


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Fate:
    """Changes of the store are changes, too."""
    found = Fate(monkeypatch)
    for name in ("create", "put", "delete"):
        monkeypatch.setattr(Objects, name, found._doomed(getattr(Objects, name)))
    return found


def data_in(folder: Path) -> Path:
    folder.mkdir()
    write_lines(folder / "s.nt", LEFT)
    write_lines(folder / "t.nt", RIGHT)
    return folder


def engine_on(data: Path, root: Path, checkpoint: str, **options: Any) -> Engine:
    engine = Engine(
        spark=False, checkpoint=checkpoint, epoch_rows=5, partitions=2, seed=7,
        sink=FileSink(root / "out", Format.NDJSON), letters=root / "out", keep_results=False,
        **options,
    )  # fmt: skip
    engine.stream(S, data / "s.nt")
    engine.stream(T, data / "t.nt")
    register(engine, QUERIES)
    return engine


def ran(data: Path, root: Path, checkpoint: str) -> None:
    with engine_on(data, root, checkpoint) as engine:
        engine.start(once=True)
        engine.await_end()


def reports(root: Path) -> Any:
    files = published(root)
    return read_ndjson(line for name in sorted(files) for line in files[name].splitlines())


@pytest.mark.long
def test_killed_before_any_change_and_restored_on_an_empty_folder(
    tmp_path: Path, place: str, fate: Fate, random_seed: int
) -> None:
    data = data_in(tmp_path / "data")
    ran(data, tmp_path / "whole", f"{place}/whole")  # kernels that are compiled are files, too
    whole = published(tmp_path / "whole")
    assert survived(engine_on(data, tmp_path / "again", f"{place}/again"), None, fate)
    points = fate.calls
    assert published(tmp_path / "again") == whole
    judge(QUERIES, STREAMS, reports(tmp_path / "whole"))
    assert points > 60, "there are several epochs with many steps each"
    for k in range(random_seed % EVERY, points, EVERY):
        root, there = tmp_path / str(k), f"{place}/{k}"
        assert not survived(engine_on(data, root, there), k, fate), f"the kill before {k} came"
        if k % 2:  # else on what the crash has left
            shutil.rmtree(folder_of(there))
        assert survived(engine_on(data, root, there), None, fate), f"after a kill before {k}"
        assert published(root) == whole, f"after a kill before {k}"
        assert not verify(folder_of(there)).damaged, f"after a kill before {k}"


def of_a_process(data: Path, root: Path, place: str, number: int) -> Any:
    """An engine with a local folder of its own, as on another host."""

    def run() -> None:
        os.environ["LEVADA_CHECKPOINTS"] = str(root / f"work{number}")
        ran(data, root, place)

    return run


def test_two_drivers_on_one_prefix(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch, random_seed: int
) -> None:
    """Each with a folder of its own; the first sleeps at a drawn change, and in a drawn order."""
    data = data_in(tmp_path / "data")
    ran(data, tmp_path / "whole", f"{place}/whole")
    whole = published(tmp_path / "whole")
    turns = Turns(monkeypatch)
    for name in ("create", "put", "get", "names", "delete"):
        monkeypatch.setattr(Objects, name, turns._a_step(getattr(Objects, name)))
    overtaken = 0
    for case in range(CASES):
        rng = random.Random(random_seed + case)
        root, there, left = tmp_path / str(case), f"{place}/{case}", [0, 0]
        sleeps = rng.randrange(20, 200) if case else 100  # amid its epochs

        def asleep(steps: int, alive: Any, sleeps: int = sleeps) -> int:
            return 0 if steps < sleeps and 0 in alive else alive[-1]

        def drawn(steps: int, alive: Any, rng: Any = rng, left: Any = left) -> int:
            if steps >= left[0] or left[1] not in alive:
                left[:] = steps + rng.choice((1, 2, 5, 40)), rng.choice(alive)
            return int(left[1])

        engines = [of_a_process(data, root, there, n) for n in range(2)]
        turns.run(engines, drawn if case % 2 else asleep)
        epochs = [epoch for _, epoch in turns.committed]
        assert len(set(epochs)) == len(epochs), (case, turns.committed)
        assert all(map(told, turns.ended.values())), (case, turns.ended)
        overtaken += any(isinstance(e, OvertakenError) for e in turns.ended.values())
        turns.run([of_a_process(data, root, there, 2)], lambda steps, alive: alive[0])
        assert turns.ended == {0: None}, (case, turns.ended)
        assert published(root) == whole, case
    assert overtaken, "who was overtaken says so"


def test_a_race_of_conditional_puts(place: str) -> None:
    """8 threads: each key is created once, and has what its creator wrote."""
    objects, won = Objects(of(place)), list[tuple[int, int]]()

    def race(who: int) -> None:
        mine = [key for key in range(KEYS) if objects.create(f"race/{key}", b"%d" % who)]
        won.extend((key, who) for key in mine)

    threads = [threading.Thread(target=race, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key for key, _ in won) == [*range(KEYS)]
    for key, who in won[::10]:
        assert objects.get(f"race/{key}") == b"%d" % who


def of(place: str) -> Address:
    found = Address.parse(place)
    assert found is not None
    return found


def test_a_driver_that_creates_a_forgotten_number_commits_nothing(
    tmp_path: Path, place: str
) -> None:
    mirrors = []
    for name in ("one", "two"):
        (tmp_path / name / "commits").mkdir(parents=True)
        mirrors.append(mirror_of(tmp_path / name, Objects(of(place)), name))
    first, second = mirrors
    assert first is not None
    assert second is not None
    assert first.create(1, b"1")
    second.restore()
    for number in range(2, 18):  # those before are deleted with the 16th
        assert second.create(number, b"%d" % number)
    assert Objects(of(place)).names("commits") == ["commits/000000000000016", f"commits/{17:015}"]
    assert not first.create(2, b"another 2")
    assert first.newer() == "two"


def test_what_is_on_the_store_is_what_is_named(
    tmp_path: Path, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is left of former epochs but what waits for the next deletion, nothing large twice,
    and nowhere a credential.
    """
    data, objects, local = data_in(tmp_path / "data"), Objects(of(place)), folder_of(place)
    ran(data, tmp_path, place)
    shutil.rmtree(local)
    with engine_on(data, tmp_path, place) as engine:
        engine._open()
        names = objects.names("data")
    assert len(objects.names("commits")) == 1, "a start deletes what is not named"
    stored = b"".join(objects.get(name) for name in [*names, *objects.names("commits")])
    there = b"".join(path.read_bytes() for path in local.rglob("*") if path.is_file())
    shown = "".join(capfd.readouterr()).encode()
    for secret in (KEY.encode(), SECRET.encode()):
        assert secret not in stored + there + shown


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("gs://bucket/a", "A checkpoint is a folder or s3://BUCKET/PREFIX, and not gs://"),
        ("s3://levada-tests", "s3://levada-tests is not s3://BUCKET/PREFIX"),
        ("s3://key:word@bucket/a", "nothing of who may read it"),
    ],
)
def test_an_address_that_is_none(wrong: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        Engine(spark=False, checkpoint=wrong)
    assert "word" not in str(caught.value)


def test_without_the_library(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UsageError, match=r"needs obstore, which is not installed\. pip install"):
        Objects(of(place))


def test_a_wrong_bucket(tmp_path: Path, place: str) -> None:
    wrong = place.replace(BUCKET, "nobody-made-it")
    with pytest.raises(CheckpointError, match=r"there is no bucket nobody-made-it\. Make it"):
        ran(data_in(tmp_path / "data"), tmp_path, wrong)


def test_no_permission(
    tmp_path: Path, place: str, guarded: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server knows no such key."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", guarded.url)
    with pytest.raises(CheckpointError, match="these credentials may not") as caught:
        ran(data_in(tmp_path / "data"), tmp_path, place)
    assert KEY not in str(caught.value)


FAULTS = ["reset", "cut", "500 InternalError", "503 SlowDown", "409 ConditionalRequestConflict"]
REQUESTS = {
    "create": "PUT .*/commits/0*2$",
    "put": r"PUT /[^?]*/(?!commits/|probe/)\w+/[^/?]*$",
    "probe": "PUT .*/probe/",
    "list": "GET .*list-type",
    "delete": "POST .*delete",
}


@pytest.mark.long
@pytest.mark.skipif(bool(GATEWAY), reason="It would find that its requests are not what was signed")
@pytest.mark.parametrize("request_kind", REQUESTS)
def test_a_fault_of_the_store_is_tried_again(
    tmp_path: Path, place: str, server: Server, monkeypatch: pytest.MonkeyPatch, request_kind: str
) -> None:
    """Each fault meets the next requests of a kind, before the store does them and afterwards."""
    pattern, left = re.compile(REQUESTS[request_kind]), [(f, d) for f in FAULTS for d in (0, 1)]
    met: list[str] = []
    monkeypatch.setattr("levada.checkpoint.object_store.folder_mirror.SWEPT", 1)
    monkeypatch.setattr("levada.checkpoint.object_store.object_client.LONGEST_PAUSE", 0.1)

    def fault(request: str, done: bool) -> str:
        if not left or not pattern.search(request) or left[0][1] != done:
            return ""
        met.append(left.pop(0)[0])
        return met[-1]

    with passing(server.url, fault=fault) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        ran(data_in(tmp_path / "data"), tmp_path, place)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("LEVADA_CHECKPOINTS", str(other))
    ran(tmp_path / "data", other, f"{place}-whole")
    wanted = [wrong for wrong in FAULTS for _ in (0, 1)]
    assert met == wanted[: len(met)]
    assert len(met) >= 9, "a conflict behind what was done is its end"
    assert reports(tmp_path) == reports(other)


@pytest.mark.skipif(bool(GATEWAY), reason="It would find that its requests are not what was signed")
def test_a_store_without_conditional_put(
    tmp_path: Path, place: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with without_conditions(server.url) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with pytest.raises(CheckpointError, match="knows no conditional put"):
            ran(data_in(tmp_path / "data"), tmp_path, place)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    assert not Objects(of(place)).names("commits")


def test_what_is_damaged_there(tmp_path: Path, place: str) -> None:
    """Named in a sentence, and nothing runs; whole again, it is the checkpoint."""
    data = data_in(tmp_path / "data")
    ran(data, tmp_path, place)
    objects = Objects(of(place))
    for harm in ("deleted", "truncated", "altered", "commit"):
        name = objects.names("commits" if harm == "commit" else "data")[-1]
        body = objects.get(name)
        if harm == "deleted":
            objects.delete([name])
        else:
            half = body[: len(body) // 2]
            objects.put(name, bytes(255 - byte for byte in body) if harm == "altered" else half)
        shutil.rmtree(folder_of(place), ignore_errors=True)
        with pytest.raises(DamagedError, match=name) as caught:
            engine_on(data, tmp_path, place)._open()
        assert ("lacks" if harm == "deleted" else "cut short") in str(caught.value), harm
        objects.put(name, body)
    ran(data, tmp_path, place)


def test_what_is_damaged_in_the_folder_is_brought_again(tmp_path: Path, place: str) -> None:
    """Found: the commit of the next start said that it was gone, and it was deleted from the store,
    too: the checkpoint could be opened nowhere any more.
    """
    data, alone = data_in(tmp_path / "data"), tmp_path / "alone"
    ran(data, alone, str(alone / "ck"))
    with engine_on(data, tmp_path, place) as engine:
        engine.start(once=True, keep_open=True)
        engine.await_end()
    state = sorted((folder_of(place) / "state").iterdir())
    plans = sorted((folder_of(place) / "plans").iterdir())
    assert len(state) >= 3
    for i, path in enumerate([*state, *plans]):
        was = path.read_bytes()
        path.unlink()  # this process has maps of it
        if i % 3:
            path.write_bytes(was[:-9] if i % 3 == 1 else bytes(255 - byte for byte in was))
    ran(data, tmp_path, place)
    assert same_queries(reports(alone), reports(tmp_path)) is None
    said = rollback_hint(folder_of(place))
    assert f"Start again with --checkpoint {place}" in said


def test_what_is_deleted_while_it_runs_is_brought_again(tmp_path: Path, place: str) -> None:
    """Found: the next commit said that it was gone, and its object was deleted."""
    data, alone = data_in(tmp_path / "data"), tmp_path / "alone"
    ran(data, alone, str(alone / "ck"))
    deleted = set()
    with engine_on(data, tmp_path, place) as engine:
        commit, root = engine._open().commit, folder_of(place)

        def deleting(manifest: Manifest) -> None:
            for folder in ("state", "plans") if manifest.epoch == 3 else ():
                for path in (root / folder).iterdir():
                    if folder == "plans" or int(path.name.partition("-")[0]) < 3:
                        deleted.add(path.relative_to(root).as_posix())
                        path.unlink()
            commit(manifest)
            assert manifest.epoch != 3 or any((root / name).exists() for name in deleted)

        engine._open().commit = deleting
        engine.start(once=True, keep_open=True)
        engine.await_end()
    assert {name.partition("/")[0] for name in deleted} == {"state", "plans"}
    shutil.rmtree(folder_of(place))
    ran(data, tmp_path, place)
    assert same_queries(reports(alone), reports(tmp_path)) is None


def test_what_is_deleted_before_its_commit_is_told(tmp_path: Path, place: str) -> None:
    data, alone = data_in(tmp_path / "data"), tmp_path / "alone"
    ran(data, alone, str(alone / "ck"))
    with engine_on(data, tmp_path, place) as engine:
        commit, root = engine._open().commit, folder_of(place)

        def deleting(manifest: Manifest) -> None:
            if manifest.epoch == 3:
                for path in (root / "state").glob("3-*"):
                    path.unlink()
            commit(manifest)

        engine._open().commit = deleting
        engine.start(once=True)
        with pytest.raises(LevadaError, match=r"/state/3-.* deleted before it was committed"):
            engine.await_end()
    ran(data, tmp_path, place)
    assert same_queries(reports(alone), reports(tmp_path)) is None


def test_a_store_that_has_lost_everything(tmp_path: Path, place: str) -> None:
    data, objects = data_in(tmp_path / "data"), Objects(of(place))
    ran(data, tmp_path, place)
    objects.delete(objects.names("commits"))
    with pytest.raises(CheckpointError, match=f"There is nothing at {place}, but .* was kept"):
        ran(data, tmp_path, place)


def test_the_local_folder_is_no_checkpoint_of_its_own(tmp_path: Path, place: str) -> None:
    data = data_in(tmp_path / "data")
    ran(data, tmp_path, place)
    for act in (
        lambda root: ran(data, tmp_path, str(root)),
        lambda root: rollback(root, None, wall=0),
    ):
        with pytest.raises(CheckpointError, match=f"is where the checkpoint {place} is worked on"):
            act(folder_of(place))


def test_a_stream_that_is_sent_once(tmp_path: Path, place: str) -> None:
    with (
        Engine(spark=False, checkpoint=place) as engine,
        pytest.raises(UsageError, match=f"stream s is sent once, .* not in the checkpoint {place}"),
    ):
        engine.stream("s", columns=("s", "p", "o", "ts"))


def test_large_files_are_objects_of_their_own(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones are together, and written anew when most of their object is dead."""
    monkeypatch.setattr(folder_mirror, "LARGE_FILE_BYTES", 1000)
    (tmp_path / "one" / "commits").mkdir(parents=True)
    one = tmp_path / "one"
    mirror = mirror_of(one, Objects(of(place)), "one")
    assert mirror is not None
    (one / "state").mkdir()
    for name, size in {"a": 2500, "b": 10, "c": 400, "d": 0}.items():
        (one / "state" / name).write_bytes(name.encode() * size)
    assert mirror.create(1, b"1")
    assert sorted(len(Objects(of(place)).get(n)) for n in mirror._packs.objects()) == [410, 2500]
    (one / "state" / "c").unlink()
    assert mirror.create(2, b"2")
    assert sorted(len(Objects(of(place)).get(n)) for n in mirror._packs.objects()) == [10, 2500]
    (tmp_path / "two").mkdir()
    assert mirror_of(tmp_path / "two", Objects(of(place)), "two") is not None
    there = {p.name: p.read_bytes() for p in (tmp_path / "two" / "state").iterdir()}
    assert there == {"a": b"a" * 2500, "b": b"b" * 10, "d": b""}
