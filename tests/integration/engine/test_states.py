"""``--as state``: the file is the relation as the reference has it, after restarts, kills and a
query's change; it is written only when the relation has changed.
"""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import levada
from levada.checkpoint.verify import verify
from levada.cli.main import main
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import Roll
from levada.core.event_time import Window, WindowKind
from levada.errors import CheckpointError, UsageError
from levada.runtime.publication import relation_files
from levada.runtime.publication.relation_files import PAUSE_RATIO, StateFiles
from levada.testing.read_published import read_published
from levada.testing.reference import evaluate
from levada.testing.reference_model import ReferenceSql, Report, Row
from support.polling import PATIENCE

SCHEMA = {"k": "integer", "v": "integer"}
TYPES = {
    "totals": {"k": "integer", "total": "integer"},
    "keys": {"k": "integer"},
}
TEXTS = {
    "totals": "Select k, Sum(v) As total From A{} Group By k",
    "keys": "Select k From A{} Where v > 2",
}
WINDOW = " [Range 3 s]"
SPEC = "k:integer;v:integer"
Solution = frozenset[tuple[str, str]]


def rows_of(seed: int, count: int = 90) -> list[Row]:
    drawn = random.Random(seed)
    times = sorted(drawn.randrange(70 * count) // 100 * 100 for _ in range(count))
    return [Row(t, (drawn.randrange(3), drawn.randrange(6))) for t in times]


def write(path: Path, rows: Sequence[Row]) -> None:
    lines = "".join(f"{row.values[0]},{row.values[1]},{row.ts}\n" for row in rows)
    path.write_text("k,v,ts\n" + lines)


def reports_of(name: str, rows: Sequence[Row]) -> list[Report]:
    window = Window(WindowKind.RANGE, range=3000)
    question = ReferenceSql(
        TEXTS[name].format(""), {"A": ("A", window)}, {"A": SCHEMA}, TYPES[name]
    )
    return evaluate(question, {"A": rows})


def states(reports: Sequence[Report]) -> Iterator[tuple[int, Counter[Solution]]]:
    """The relation after each report; at one instant what goes comes first."""
    found = Counter[Solution]()
    for report in sorted(reports, key=lambda r: (r.time, r.change != "delete")):
        sign = 1 if report.change == "insert" else -1
        for solution, times in report.solutions.items():
            found[solution] += sign * times
        found = +found if min(found.values(), default=0) >= 0 else found
        yield report.time, Counter(found)


def state_at(name: str, rows: Sequence[Row], until: float = float("inf")) -> Counter[Solution]:
    found = Counter[Solution]()
    for time, after in states(reports_of(name, rows)):
        found = after if time < until else found
    return +found


def shown(out: Path, name: str, form: Format = Format.NDJSON) -> Counter[Solution]:
    [report] = read_published(out / name, form) or [Report(0)]
    return +Counter(report.solutions)


def go(
    root: Path, *names: str, form: str = "ndjson", once: bool = True, as_: str = "state"
) -> None:
    """A run over what is there; ``once`` ends the stream, else its windows stay open."""
    with levada.Engine(spark=False, checkpoint=root / "ck", epoch_rows=7, partitions=2) as engine:
        engine.stream("A", root / "a.csv", schema=SPEC)
        for name in names:
            text = TEXTS[name].format(WINDOW)
            engine.register(text, name=name, out=root / "out", format=form, as_=as_, terms=True)
        engine.start(once=True, keep_open=not once)
        engine.await_end()


@pytest.mark.parametrize("form", ["ndjson", "parquet", "arrow"])
def test_the_state_is_the_references_after_each_run(
    tmp_path: Path, form: str, random_seed: int
) -> None:
    rows = rows_of(random_seed)
    for count in (30, 60, 90):
        write(tmp_path / "a.csv", rows[:count])
        go(tmp_path, "totals", "keys", form=form, once=False)
        for name in ("totals", "keys"):
            right = state_at(name, rows[:count], rows[count - 1].ts)
            assert shown(tmp_path / "out", name, Format(form)) == right, f"{name} after {count}"
    go(tmp_path, "totals", "keys", form=form)
    for name in ("totals", "keys"):
        assert not state_at(name, rows) and not shown(tmp_path / "out", name, Format(form))


@pytest.mark.parametrize(("form", "head"), [("csv", "report,k"), ("tsv", "report\t?k")])
def test_tables_of_text_have_a_line_for_each_row_and_time_that_it_is_there(
    tmp_path: Path, form: str, head: str
) -> None:
    comma = head[len("report")]
    write(tmp_path / "a.csv", [Row(0, (1, 3)), Row(10, (2, 1)), Row(20, (1, 4)), Row(30, (2, 1))])
    go(tmp_path, "keys", form=form, once=False)
    first, *lines = (tmp_path / "out" / "keys" / f"state.{form}").read_text().splitlines()
    assert first == head
    assert [line.split(comma)[0] for line in lines] == ["20", "20"]


def test_a_damaged_state_is_told(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [Row(0, (1, 3)), Row(10, (2, 5))])
    go(tmp_path, "keys", once=False)
    assert not verify(tmp_path / "ck").damaged
    path = tmp_path / "ck" / "tables" / "keys"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    assert [f.item.name for f in verify(tmp_path / "ck").damaged] == ["tables/keys"]
    write(tmp_path / "a.csv", [Row(0, (1, 3)), Row(10, (2, 5)), Row(20, (2, 6))])
    with pytest.raises(CheckpointError, match="tables/keys"):
        go(tmp_path, "keys", once=False)


def test_the_file_is_written_only_when_the_relation_has_changed(tmp_path: Path) -> None:
    rows = [Row(0, (1, 3)), Row(100, (2, 1))]
    write(tmp_path / "a.csv", rows)
    go(tmp_path, "keys", once=False)
    path = tmp_path / "out" / "keys" / "state.ndjson"
    before = path.stat()
    rows += [Row(200, (2, 0)), Row(300, (2, 0))]
    write(tmp_path / "a.csv", rows)
    go(tmp_path, "keys", once=False)
    assert path.stat().st_ino == before.st_ino
    path.unlink()
    write(tmp_path / "a.csv", [*rows, Row(400, (2, 0)), Row(500, (2, 0))])
    go(tmp_path, "keys", once=False)
    assert shown(tmp_path / "out", "keys"), "what was deleted is written anew, as epochs go on"


def test_changes_are_held_back_until_a_writing_is_worth_it(tmp_path: Path) -> None:
    now = [100.0]
    files = StateFiles(tmp_path, Format.CSV, roll=Roll(bytes=50, age=20), clock=lambda: now[0])
    assert files.is_due(1, 20) and not files.is_due(1, 19) and files.is_due(50, 0)
    files._rests_until = 100.0 + PAUSE_RATIO
    assert not files.is_due(1, 20) and files.is_due(50, 20), "so much is never held back"
    now[0] += PAUSE_RATIO
    assert files.is_due(1, 20)


def test_a_state_that_rolls_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, random_seed: int
) -> None:
    rows = rows_of(random_seed)
    write(tmp_path / "a.csv", rows)
    (tmp_path / "totals.cql").write_text(TEXTS["totals"].format(WINDOW))
    monkeypatch.chdir(tmp_path)
    written: list[Path] = []
    monkeypatch.setattr(relation_files, "write_atomic", lambda path, data: written.append(path))
    given = ["run", "totals.cql", "--stream", f"A=a.csv,schema={SPEC}", "--out", "out"]
    given += ["--as", "state", "--once", "--keep-open", "--master", "none", "--roll", "1h"]
    assert main([*given, "--epoch-rows", "7", "--checkpoint", "ck", "--no-progress"]) == 0
    assert len(written) == 2, "empty at first, then as it is"


def test_what_was_held_of_a_query_that_is_gone_does_not_touch_its_successor(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.csv", [Row(0, (1, 3)), Row(100, (2, 5)), Row(200, (2, 6))])
    with levada.Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=1) as engine:
        engine.stream("A", tmp_path / "a.csv", schema=SPEC)
        files: dict[str, Any] = {"name": "keys", "out": tmp_path / "out", "as_": "state"}
        engine.register(TEXTS["keys"].format(WINDOW), **files)
        sink = engine._outputs.sinks["keys"]
        assert isinstance(sink, StateFiles)
        sink.roll = Roll(age=10**9)
        engine.start()
        while engine._records().get("A") is None or engine._records()["A"].elements < 3:
            assert not engine.await_end(0.02)
        engine.unregister("keys")
        engine.register("Select v From A [Range 9 s] Where v > 99", **files)
        (tmp_path / "a.csv").open("a").write("1,1,300\n1,1,400\n")
        while engine._records()["A"].elements < 5:
            assert not engine.await_end(0.02)
        engine.stop()
    assert not shown(tmp_path / "out", "keys")


def test_another_query_of_the_name_begins_with_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [Row(0, (1, 3)), Row(100, (2, 5))])
    go(tmp_path, "keys", once=False)
    assert shown(tmp_path / "out", "keys")
    write(tmp_path / "a.csv", [Row(0, (1, 3)), Row(100, (2, 5)), Row(200, (7, 9))])
    with levada.Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("A", tmp_path / "a.csv", schema=SPEC)
        text = "Select v From A [Range 9 s] Where v > 99"
        with pytest.warns(UserWarning, match="another one"):
            engine.register(text, name="keys", out=tmp_path / "out", as_="state")
            engine.start(once=True, keep_open=True)
            engine.await_end()
    assert not shown(tmp_path / "out", "keys")


def test_a_state_that_is_not_known_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", rows_of(1))
    go(tmp_path, "keys", once=False)
    go(tmp_path, "keys", once=False, as_="changes")
    write(tmp_path / "a.csv", [*rows_of(1), Row(9000, (1, 4)), Row(9100, (1, 4))])
    with pytest.raises(UsageError, match="is not known"):
        go(tmp_path, "keys", once=False)


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        ("Istream(Select k From A [Range 3 s])", "csv", "are no relation"),
        ("Select k From A [Range 3 s]", "srj", "cannot hold the state"),
    ],
)
def test_what_has_no_state_is_refused(tmp_path: Path, text: str, form: str, said: str) -> None:
    write(tmp_path / "a.csv", rows_of(1))
    with levada.Engine(spark=False) as engine:
        engine.stream("A", tmp_path / "a.csv", schema=SPEC)
        with pytest.raises(UsageError, match=said):
            engine.register(text, out=tmp_path / "out", format=form, as_="state")
        with pytest.raises(UsageError, match="Did you mean state"):
            engine.register("Select k From A [Range 3 s]", out=tmp_path / "out", as_="stat")
        with pytest.raises(UsageError, match="A state is a file"):
            engine.register("Select k From A [Range 3 s]", as_="state")


RUN = """
import sys
from levada.cli.main import main
from levada_kill import arm
point, *arguments = sys.argv[1:]
if int(point):
    arm(int(point))
sys.exit(main(arguments))
"""


@pytest.mark.long
def test_kills_at_any_change_of_the_disk_leave_the_state_right(
    tmp_path: Path, random_seed: int
) -> None:
    rows = rows_of(random_seed)
    write(tmp_path / "a.csv", rows)
    (tmp_path / "totals.cql").write_text(TEXTS["totals"].format(WINDOW))
    run = [
        "run",
        "totals.cql",
        "--stream",
        f"A=a.csv,schema={SPEC}",
        "--out",
        "out",
        "--as",
        "state",
    ]
    run += ["--once", "--keep-open", "--master", "none", "--checkpoint", "ck", "--epoch-rows", "7"]
    known = [Counter[Solution](), *(after for _, after in states(reports_of("totals", rows)))]
    drawn, kills, code = random.Random(random_seed), 0, 86
    fuse = Path(__file__).parents[2] / "cluster"
    while code:
        point = drawn.randint(15, 50) if kills < 3 else 0
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(point), *run],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(fuse)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        code = done.returncode
        assert code in (0, 86), done.stderr
        kills += code == 86
        if (tmp_path / "out" / "totals" / "state.ndjson").exists():
            assert shown(tmp_path / "out", "totals") in known, f"seed {random_seed}, {kills} kills"
    assert kills >= 2, "it is killed in the middle"
    right = state_at("totals", rows, rows[-1].ts)
    assert shown(tmp_path / "out", "totals") == right, f"seed {random_seed}"
