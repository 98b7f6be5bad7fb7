"""``levada profile``: counts are exact, every operator is there, and what is predicted of an epoch
is what its lines say. No time is compared with a clock.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from levada import Engine
from levada.cli.app.profile.measure_profile import TimedEngine, profile
from levada.cli.app.profile.profile import Cost, Edge, Profile
from levada.cli.app.profile.recorder import Recorder
from levada.cli.app_builder import CommandArguments, assemble
from levada.cli.main import main
from levada.cli.profile.show_profile import print_tables

N = 1500
QUERY = """Rstream(Select A.k, Avg(A.v) As mean
From A [Range 500 ms Slide 500 ms], B [Range 1 Second] Where A.k = B.k And A.v < 50 Group By A.k)"""


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """Two streams, of one of which every second row passes; the arguments of a command."""
    for name, step in (("a", 1), ("b", 10)):
        rows = (f"{i % 10},{i % 100},{i}\n" for i in range(0, N, step))
        (tmp_path / f"{name}.csv").write_text("k,v,ts\n" + "".join(rows))
    (tmp_path / "q.cql").write_text(QUERY)
    streams = [f"--stream={n.upper()}={tmp_path}/{n}.csv,schema=k:integer;v:integer" for n in "ab"]
    return [str(tmp_path / "q.cql"), *streams]


def measured(given: list[str]) -> Profile:
    streams = tuple(text.removeprefix("--stream=") for text in given[1:])
    return profile(assemble(CommandArguments((given[0],), streams=streams)), N)


def test_a_profile_counts_rows_and_predicts_by_its_lines(given: list[str]) -> None:
    found = measured(given)
    costs = {cost.name: cost for cost in found.costs}
    assert N <= found.elements <= N + N // 10
    share = N / (N + N // 10)
    assert costs["read A"].rows == pytest.approx(share, rel=0.1)
    assert costs["read A"].rows + costs["read B"].rows == pytest.approx(1)
    filters = [edge for edge in found.edges if edge.producer.startswith("Filter")]
    assert any(e.selectivity == pytest.approx(0.5, rel=0.1) for e in filters)  # 50 of each 100
    assert all(e.bytes > 0 and e.rows > 0 for e in filters)
    for cost in found.costs:  # an operator takes in what comes along its edges
        into = [edge.rows for edge in found.edges if edge.consumer == cost.name]
        assert not into or sum(into) == pytest.approx(cost.rows)
    assert all(cost.fixed >= 0 and cost.each >= 0 for cost in found.costs)
    assert {"around 0", "around 1"} <= set(costs)
    for epoch in found.epochs:
        assert epoch.epochs >= 3 and epoch.measured > 0
        n = epoch.elements
        by_hand = sum(cost.predict_ns(n) for cost in found.costs)
        by_hand += found.driver[0] * 1e3 + found.driver[1] * n
        assert found.predict(n) == pytest.approx(by_hand / 1e6, rel=1e-6)
        assert set(costs["read A"].quantiles[n]) and sorted(costs["read A"].quantiles[n]) == list(
            costs["read A"].quantiles[n]
        )


def test_stages_as_a_dataflow() -> None:
    """Two stages by hand: an element is 0.5 rows to stage 1, each of which costs 300 ns."""
    costs = (
        Cost("read S", 0, 1.0, 10.0, 100.0, {}),
        Cost("Scan", 0, 1.0, 5.0, 50.0, {}),
        Cost("Panes", 1, 0.5, 20.0, 300.0, {}),
    )
    edges = (Edge("Scan", "Panes", 0.5, 0.5, 40.0),)
    found = Profile(1000, costs, edges, (15.0, 2.0), ())
    graph = found.graph()
    assert [op.cycles for op in graph.operators] == [150.0, 300.0]
    assert [(s.selectivity, s.size) for s in graph.streams] == [(0.5, 40.0)]
    shown = io.StringIO()
    print_tables(found, Console(file=shown, width=120))
    assert "Scan -> Panes" in shown.getvalue() and "1,000 elements" in shown.getvalue()
    ns = 10_000 * (150 + 150 + 2) + 1e3 * (10 + 5 + 20 + 15)
    assert found.predict(10_000) == pytest.approx(ns / 1e6)


def test_a_profiled_run_gives_what_a_run_gives(given: list[str], tmp_path: Path) -> None:
    tables = []
    for engine in (Engine(spark=False, partitions=1), TimedEngine(Recorder())):
        with engine:
            for name in "ab":
                engine.stream(name.upper(), tmp_path / f"{name}.csv", schema="k:integer;v:integer")
            query = engine.register(QUERY, name="q")
            engine.start(once=True)
            engine.await_end()
            tables.append(query.to_polars().rows())
    assert sorted(tables[0]) == sorted(tables[1]) != []


def test_the_command_prints_json(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *given, "--sample", "1500", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"elements", "operators", "edges", "driver", "epochs"} == set(told)
    assert [e["elements"] for e in told["epochs"]] == [15, 75, 300]
    assert all({"p5", "p50", "p95"} == set(q) for q in told["operators"][0]["sizes"].values())


@pytest.mark.parametrize(
    ("sample", "said"),
    [("some", "is no whole number"), ("0", "is no whole number"), ("50", "at least 100"),
     ("1M", "Only 1,650 elements were read")],
)  # fmt: skip
def test_a_wrong_sample_is_a_sentence(
    given: list[str], capsys: pytest.CaptureFixture[str], sample: str, said: str
) -> None:
    assert main(["profile", *given, "--sample", sample]) == 2
    assert said in capsys.readouterr().err


def test_what_cannot_be_measured(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", given[0]]) == 2
    assert "There is no stream" in capsys.readouterr().err
    assert main(["profile", *given[1:]]) == 2
    assert "There is no query" in capsys.readouterr().err
