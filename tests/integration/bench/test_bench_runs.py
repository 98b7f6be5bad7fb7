"""Each benchmark at a tiny size, stepped: the whole way with counts checked. No time is
asserted.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import aggregate, isolation, join, planning, sharing, slices, srbench_q3, static
from bench.__main__ import Name

ROOT = Path(__file__).parents[3]
SIDE = {"count", "rows", "rows_per_s", "rows_per_cpu_s", "cpu_s", "cpu", "peak_memory_mb"}
TINY_W1 = join.Shape(n=1500, keys=150, epoch=500, warm=2, rounds=1)
TINY_W2 = aggregate.Shape(n=1500, keys=20, epoch=500, warm=2, rounds=1)


def bench(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench", *arguments, "--json"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # exactly one object


def test_w1_stepped_has_its_results_and_measures_what_follows_the_warm_up() -> None:
    side = join.both(TINY_W1, ("levada",), stepped=True)["levada"]
    assert set(side) >= SIDE
    assert side["rows"] == 3000 and side["epochs"] == 6 and side["count"] > 1000


@pytest.mark.long
def test_w2_stepped_has_its_results() -> None:
    side = aggregate.both(TINY_W2, ("levada",), stepped=True)["levada"]
    assert side["rows"] == 1500 and side["epochs"] == 3 and side["count"] > 1500


@pytest.mark.long
def test_w3_stepped_and_pyoxigraph_agree() -> None:
    ours, open_, theirs = srbench_q3.compare(srbench_q3.Size(4, 1, 240, 2, 4), stepped=True)
    assert theirs["count"] == 6 and theirs["rows"] == 2 * 4 * 3 * 1440 and theirs["hours"] >= 30
    for side in (ours, open_):
        assert side["count"] == 6 * side["rounds_in_all"]
        assert side["rows"] == 4 * 3 * 1440 * side["rounds"]


@pytest.mark.long
def test_the_command_prints_one_json_object() -> None:
    told = bench("epoch", "--scale", "0.004", "--stepped")
    assert told["bench"] == "epoch" and {"levada", "baseline", "ratio_cpu"} <= set(told)
    assert told["median_ms"] > 0 and set(told["levada"]["cpu"]) == {
        "driver",
        "jvm",
        "workers",
        "compiler",
    }


@pytest.mark.long
@pytest.mark.skipif(
    not planning.DATA.is_dir(), reason=f"The texts of CityBench are not there: {planning.DATA}"
)
def test_published_queries_of_three_languages_are_planned() -> None:
    told = planning.run(0.1, stepped=True)
    assert {name.split()[0] for name in told.more["each"]} == set(planning.TEXTS)
    assert told.levada["count"] > 30 and told.more["worst_ms"] == told.levada["most_ms"]


@pytest.mark.parametrize("workload", list(sharing.QUERIES))
@pytest.mark.parametrize("mode", ["off", "relax"])
def test_queries_share_and_have_all_results(mode: str, workload: str, tmp_path: Path) -> None:
    path = tmp_path / "s.nt"
    expected = sharing.write(path, 100, 5, workload)
    told = sharing.side(str(path), mode, 5, 100, workload)
    assert told["count"] == expected and told["state_kb"] > 0


def test_shapes_share_what_they_have_in_common(tmp_path: Path) -> None:
    path = tmp_path / "s.nt"
    sharing.write_shapes(path, 100)
    off, relax = (sharing.shapes_side(str(path), mode, 30, 100) for mode in ("off", "relax"))
    assert relax["count"] == off["count"] > 0
    assert (off["joins"], relax["joins"]) == (60, 31)


@pytest.mark.parametrize("workload", list(slices.COUNTS))
def test_aggregates_share_and_have_all_results(workload: str, tmp_path: Path) -> None:
    path = tmp_path / "s.nt"
    slices.write(path, 1000)
    told = slices.side(str(path), "relax", 3, workload, 1000)
    assert told["count"] == slices.expected(workload, 3, 1000)


def test_every_benchmark_is_a_module() -> None:
    assert all((ROOT / "bench" / f"{name.value}.py").exists() for name in Name)


@pytest.mark.long
@pytest.mark.spark
def test_a_baseline_on_spark_has_the_same_results() -> None:
    side = aggregate.both(TINY_W2, ("spark",))["spark"]
    assert side["rows"] == 1500 and not side["steady"]
    assert side["cpu"]["jvm"] > 0


def test_static_data_are_joined_whether_they_may_be_replaced_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In this process: two of its sides are the same code."""
    monkeypatch.setattr(
        static, "apart", lambda side, **given: getattr(static, side.split(":")[1])(**given)
    )
    shape = static.Shape(sensors=2000, places=50, n=4000, epoch=1000, stored=500, asked=20_000)
    ours, open_, theirs = static.compare(shape, stepped=True)
    assert ours["rows"] == open_["rows"] and ours["load_s"] > 0 and theirs["probes_per_cpu_s"] > 0


@pytest.mark.long
def test_each_client_of_the_server_has_each_report_once() -> None:
    told = bench("serve", "--scale", "0.005")["levada"]
    assert (told["clients"], told["count"]) == (5, 100)
    assert 300 < told["bytes_a_report"] < 500


@pytest.mark.long
def test_isolation_measures_each_text() -> None:
    sides = bench("isolation", "--scale", "0.1")["levada"]
    for name in ("alone", *isolation.TEXTS):
        assert sides[name]["delay_count"] > 0 and sides[name]["answer_count"] > 0
    assert all(sides[name]["statuses"] for name in isolation.TEXTS)
    for name, (media, _) in isolation.TEXTS.items():
        assert sides[name]["statuses"] and media
