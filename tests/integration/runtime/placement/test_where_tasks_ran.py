"""Tasks tell where they ran and what they got from where: what a placement's tally and a slice have
of it is what went from task to task, counted by who ran the tasks; and it is told who bounds a run.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import levada
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import Manifest
from levada.cli.main import main
from levada.cli.placement.traffic_text import MAX_TABLE_LINES
from levada.engine.placement.traffic_report import flows_of, read_flows
from levada.plan.execution.plan import Plan
from levada.runtime.driver import parallelism
from levada.runtime.executor import Job, deliver, outcome, resolve
from levada.runtime.placement.send_graph import SentCounts, read_slice
from levada.runtime.placement.task_placement import record_locality
from levada.runtime.preferred_locations import NOWHERE, LocalityStats

EXECUTORS = ("executor_h_5", "executor_h_2", "")
NUMBERS = ("5", "2", "9")  # the last one stands for no machine
QUERY = """PREFIX : <http://e/>
SELECT ?c (COUNT(?v) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?s :p ?v . ?s :c ?c } } GROUP BY ?c"""


class ByLot:
    """Runs each task at an executor by lot, and counts what goes from where to where."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._rng, self._now = np.random.default_rng(seed), ""
        self.sent: Counter[tuple[str, str]] = Counter()
        self.blobs: Counter[tuple[str, str]] = Counter()
        self.wanted = self.missed = 0
        for module in ("exchange", "stage_task"):
            where = f"levada.runtime.task.{module}.executor_here"
            monkeypatch.setattr(where, lambda: self._now)
        monkeypatch.setattr(
            "levada.runtime.executor.LocalExecutor.run", lambda _, job: self.run(job)
        )

    def run(self, job: Job) -> list[bytes]:
        """The outcomes of a job."""
        intake, stage = (resolve(name) for name in job.functions)
        assert job.places is not None, "it is placed, and not one task"
        job.places.tally.executors = EXECUTORS
        sent = []
        for payload, machine in zip(job.payloads, job.places.payloads, strict=True):
            self._goes(machine)
            sent += [(self._now, pair) for pair in intake(job.context, payload)]
        for number, machines in enumerate(job.places.stages, 1):
            inboxes = deliver([pair for _, pair in sent], job.partitions)
            froms = [[at for at, (p, _) in sent if p == own] for own in range(job.partitions)]
            sent = []
            for p, machine in enumerate(machines):
                self._goes(machine)
                for source, blob in zip(froms[p], inboxes[p], strict=True):
                    self.sent[source, self._now] += len(bytes(blob))
                    self.blobs[source, self._now] += 1
                made = stage(job.context, number, p, inboxes[p])
                sent += [(self._now, pair) for pair in made]
        return [outcome(target, blob) for _, (target, blob) in sent]

    def _goes(self, machine: int) -> None:
        at = int(self._rng.integers(len(NUMBERS)))
        self._now = NUMBERS[at]
        self.wanted += machine != NOWHERE
        self.missed += machine != NOWHERE and (machine != at or not EXECUTORS[machine])


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ByLot]:
    """A checkpoint of a placed run that has counted, and what went where."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "s").mkdir()
    for file in range(3):
        lines = [
            f'<http://e/a{i // 2 % 7 * 3 + file}> <http://e/{"pc"[i % 2]}> "{i % 11}" {i * 9} .\n'
            for i in range(300)
        ]
        (folder / "s" / f"{file}.nt").write_text("".join(lines))
    machine = {f"http://e/s {i}.nt": i % 2 for i in range(2)} | {"group 0/1": 1, "1.2": 2}
    between = [[0.1, 0.2, 0.0], [0.3, 0.4, 0.0], [0.0, 0.0, 0.0]]
    whole = {"levada": "placement", "machines": 3, "machine": machine, "between": between}
    (folder / "p.json").write_text(json.dumps(whole))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parallelism, "MOST_BYTES", -1)
        lot = ByLot(7, patched)
        run(folder)
    return folder / "ck", lot


def run(folder: Path) -> None:
    with levada.Engine(
        spark=False, checkpoint=folder / "ck", partitions=3, seed=5, slices="1d",
        epoch_rows=200, place=folder / "p.json", keep_results=False,
    ) as engine:  # fmt: skip
        engine.stream("http://e/s", folder / "s", files="parallel")
        engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()


def test_a_tally_is_what_went_where(ran: tuple[Path, ByLot]) -> None:
    root, lot = ran
    manifest = newest_manifest(root)
    assert manifest is not None and manifest.placement is not None
    told = manifest.placement
    far = {pair: n for pair, n in lot.sent.items() if pair[0] != pair[1]}
    assert (told.preferred_tasks, told.displaced_tasks) == (lot.wanted, lot.missed)
    assert 0 < told.displaced_tasks < told.preferred_tasks
    assert (told.remote_bytes, told.read_bytes) == (sum(far.values()), lot.sent.total())
    assert told.remote_blobs == sum(lot.blobs[pair] for pair in far)


def test_a_slice_has_what_executors_sent_each_other(ran: tuple[Path, ByLot]) -> None:
    root, lot = ran
    manifest = newest_manifest(root)
    assert manifest is not None
    (sent,) = (read_slice(str(root), manifest, name) for name in manifest.slices)
    pairs = {(a, b): n for a, to in sent.executor_links.items() for b, n in to.items()}
    assert {pair: size for pair, (_, size, _) in pairs.items()} == lot.sent
    assert {pair: blobs for pair, (_, _, blobs) in pairs.items()} == lot.blobs
    rows = sum(n for to in sent.links.values() for b, (n, *_) in to.items() if b != "output")
    assert sum(n for n, _, _ in pairs.values()) == rows
    assert sum(sent.cpu_by_executor.values()) == pytest.approx(sum(sent.cpu_by_task.values()))


def test_who_sends_to_whom_is_told(
    ran: tuple[Path, ByLot], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, lot = ran
    flows = read_flows(root)
    assert flows is not None and flows.bottleneck is not None
    said = [str(root), "--picture", str(tmp_path / "p.svg")]
    assert main(["explain", "--placement", *said]) == 0
    text, drawn = capsys.readouterr().out, (tmp_path / "p.svg").read_text()
    assert main(["explain", "--placement", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["traffic"]
    assert flows.bottleneck.sentence in text and flows.bottleneck.sentence in drawn
    assert f"and {len(flows.edges) - MAX_TABLE_LINES:,} more" in text
    for edge in flows.edges[:MAX_TABLE_LINES]:
        assert any(
            line.split()[-4:-1] == [f"{edge.rows:,}", f"{edge.bytes:,}", f"{edge.blobs:,}"]
            for line in text.splitlines()
        )
    assert sum(e["share"] for e in found["edges"]) == pytest.approx(1.0)
    names = {"5": "machine 0 (executor 5)", "2": "machine 1 (executor 2)", "9": "executor 9"}
    predicted = {(p["source"], p["target"]): p["predicted"] for p in found["pairs"]}
    assert predicted[names["2"], names["5"]] == 0.3
    assert predicted[names["5"], names["9"]] == -1.0
    sizes = {(p["source"], p["target"]): p["bytes"] for p in found["pairs"]}
    assert sizes == {(names[a], names[b]): n for (a, b), n in lot.sent.items()}
    assert all(f"{a} to {b}" in drawn for a, b in sizes)


def sent_by(cpu: dict[str, float], rows: dict[str, int]) -> SentCounts:
    return SentCounts({"s a.nt": {task: [n, 9 * n, 1] for task, n in rows.items()}}, cpu)


@pytest.mark.parametrize(
    ("cpu", "rows", "said"),
    [
        (
            {"s a.nt": 1.0, "1.0": 6.0, "1.1": 2.0},
            {"1.0": 90, "1.1": 10},
            "The bottleneck is 1.0, with 6.00 s of CPU time, 1.5 times the mean of its stage: it "
            "got 90% of their rows, where an even share is 50%; stage 1 has 89% of all CPU time in "
            "2 tasks.",
        ),
        (
            {"s a.nt": 1.0, "1.0": 6.0, "1.1": 2.0},
            {"1.0": 50, "1.1": 50},
            "The bottleneck is 1.0, with 6.00 s of CPU time, 1.5 times the mean of its stage: it "
            "got 50% of their rows, where an even share is 50%: its rows cost more than those of "
            "others; stage 1 has 89% of all CPU time in 2 tasks.",
        ),
        (
            {"s a.nt": 3.0, "1.0": 1.0, "1.1": 1.0},
            {"1.0": 50, "1.1": 50},
            "The bottleneck is s a.nt, with 3.00 s of CPU time: reading has 60% of all CPU time in "
            "1 task.",
        ),
    ],
)
def test_why_a_task_is_the_bottleneck(
    cpu: dict[str, float], rows: dict[str, int], said: str
) -> None:
    plan = Plan(1, {}, (), (), {}, 1)  # who takes most of a stage is not told
    found = flows_of("2004-08-08", sent_by(cpu, rows), plan, Manifest(1, 1)).bottleneck
    assert found is not None and found.sentence == said


def test_a_run_that_has_not_counted_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.nt").write_text('<http://e/a> <http://e/p> "1" 10 .\n')
    (tmp_path / "q.rq").write_text(QUERY)
    given = ["run", f"{tmp_path}/q.rq", "--stream", f"s={tmp_path}/s.nt", "--close"]
    more = ["--master", "none", "--checkpoint", f"{tmp_path}/ck", "--out", f"{tmp_path}/out"]
    assert main([*given, *more]) == 0
    capsys.readouterr()
    assert main(["explain", "--placement", f"{tmp_path}/ck"]) == 0
    assert "was not counted: run with --slice 1d" in capsys.readouterr().out
    assert main(["explain", "--placement", f"{tmp_path}/ck", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["traffic"] is None


def test_a_partition_that_came_since_is_wanted_nowhere() -> None:
    tally = LocalityStats(executors=("executor_h_0",), asked=((), (0,)))
    done = [
        TaskOutcome(1, p, executor="0", received_by_executor={"0": [1, 10, 1], "1": [1, 5, 2]})
        for p in range(2)
    ]
    record_locality(tally, done)
    assert (tally.wanted, tally.missed) == (1, 0)
    assert (tally.read, tally.remote, tally.blobs) == (30, 10, 4)
    tally.asked = ()  # the next job is one task
    record_locality(tally, done)
    assert (tally.wanted, tally.read) == (1, 30)
