"""What a status says that each query has taken: its part of what operators are charged."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada import Engine
from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import Manifest
from levada.core.checkpoint_files import facts_of
from levada.core.event_time import MAX
from levada.engine.status.status import QueryStatus, charges, read_status
from levada.runtime.cost_model import operator_cardinalities
from levada.server import status_routes
from levada.testing.stream_builders import write_lines
from support.query_dsl import element, query, step

S = "http://e/s"
PAIR = "?a :p ?n . ?a :q ?m"
TEXTS = {
    "one": PAIR,
    "same": PAIR,
    "dear": f'{PAIR} FILTER(REGEX(CONCAT(STR(?n), STR(?m)), "1.*2"))',
    "apart": "?a :r ?n",
}


def run(root: Path, *, until: int = 40) -> dict[str, QueryStatus]:
    """The queries of a run over so many elements, in several epochs."""
    path = write_lines(
        root / "s.nt", [element(100 * i, f"a{i} p {i}", f"a{i} q {i}") for i in range(until)]
    )
    with Engine(
        spark=False, checkpoint=root / "c", partitions=2, epoch_rows=10, sharing="exact"
    ) as engine:
        engine.stream(S, path)
        for name, group in TEXTS.items():
            text = query(
                "SELECT *", f"WINDOW :w {{ {group} }}", windows={"w": (S, step(2000, 500))}
            )
            engine.register(text.text, name=name)
        engine.start(once=True, keep_open=True)
        engine.await_end()
    return {q.name: q for q in read_status(root / "c").queries}


def last(root: Path) -> Manifest:
    found = newest_manifest(root / "c")
    assert found is not None
    return found


def test_the_parts_of_all_queries_add_up_to_what_operators_took(tmp_path: Path) -> None:
    found, manifest = run(tmp_path), last(tmp_path)
    assert manifest.node_charges
    seconds = sum(s for s, _ in manifest.node_charges.values())
    assert sum(q.cpu_seconds for q in found.values()) == pytest.approx(seconds, abs=1e-5)
    rows = sum(n for _, n in manifest.node_charges.values())
    assert sum(q.input_rows for q in found.values()) == pytest.approx(rows, abs=len(found))
    assert found["one"].input_rows == found["same"].input_rows > 0
    assert found["dear"].cpu_seconds > found["one"].cpu_seconds > 0
    assert found["apart"].input_rows == 0 and found["apart"].state_bytes == 0
    assert (found["one"].state_bytes or 0) > 0
    assert found["one"].state_bytes == found["same"].state_bytes


def test_what_was_taken_goes_on_after_a_restart(tmp_path: Path) -> None:
    before = run(tmp_path)
    after = run(tmp_path, until=80)
    assert all(after[name].input_rows > before[name].input_rows for name in ("one", "same", "dear"))
    assert after["one"].cpu_seconds > before["one"].cpu_seconds


def test_of_very_many_operators_the_dearest_are_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_cardinalities, "MAX_REPORTED_MEMBERS", 2)
    run(tmp_path)
    assert len(last(tmp_path).node_charges) == 2


def test_a_state_file_that_is_gone_leaves_the_rest_known(tmp_path: Path) -> None:
    run(tmp_path)
    root, manifest = tmp_path / "c", last(tmp_path)
    plan = plan_of(root, facts_of(root), manifest.plan)
    (root / next(iter(manifest.state.values()))).unlink()
    found = charges(root, manifest, plan)["one"]
    assert found.input_rows > 0 and found.state_bytes is None


def test_metrics_are_of_the_queries_with_most_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [
        QueryStatus(f"q{i}", 0, MAX, None, (), None, "", cpu_seconds=i / 10, state_bytes=None)
        for i in range(status_routes.MAX_CHARGED + 5)
    ]
    lines = list(status_routes._query_metrics(queries))
    seconds = [line for line in lines if line.startswith("levada_query_cpu_seconds{")]
    assert len(seconds) == status_routes.MAX_CHARGED and 'query="q4"' not in " ".join(seconds)
    assert not any(line.startswith("levada_query_state_bytes{") for line in lines)
