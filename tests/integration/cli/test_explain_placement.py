"""How a run's epochs were spread, after the run: as text, as JSON, and as a picture in which each
operator has what was predicted beside what was measured.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from levada.checkpoint.manifest import Choice, Costs, Delayed
from levada.cli.main import main
from levada.cli.placement.epoch_plot import Flow, draw
from levada.engine.status.execution_status import sentences

QUERY = """PREFIX : <http://e/>
SELECT ?s (COUNT(?v) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?s :p ?v } } GROUP BY ?s
"""
SVG = "{http://www.w3.org/2000/svg}"
LAST = Choice(7, 5000, "spread", 2, {"one_task": 31.2, "spread": 24.0}, 30.0, 40.0, 42.0)
PARTS = {"Join 4": [0.1, 90.0, 1.0, 6.0, 12.0], "reading": [0.0, 50.0, 1.0, 4.0, 3.0]}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint after some epochs with a delay."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "q.rq").write_text(QUERY)
    lines = (f'<http://e/a{i % 9}> <http://e/p> "{i}" {i * 10} .\n' for i in range(2_000))
    (folder / "s.nt").write_text("".join(lines))
    given = ["run", f"{folder}/q.rq", "--stream", f"s={folder}/s.nt", "--once", "--master", "none"]
    more = ["--checkpoint", f"{folder}/ck", "--out", f"{folder}/out", "--partitions", "2"]
    assert main([*given, *more, "--delay", "5s", "--epoch-rows", "250"]) == 0
    return folder / "ck"


def told(ran: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["explain", "--placement", str(ran), *more]) == 0
    return capsys.readouterr().out


def test_text_and_json_say_the_same(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, found = told(ran, capsys), json.loads(told(ran, capsys, "--json"))
    assert found["last_epoch"]["epoch"] > 5 and found["last_epoch"]["predicted_task_cpu_ms"] > 0
    measured = sum(values[-1] for values in found["work_parts"].values())
    assert found["last_epoch"]["measured_task_cpu_ms"] == pytest.approx(measured)
    assert all(name in text for name in found["work_parts"])
    assert found["delay"]["delay_ms"] == 5000 and found["delay"]["epoch_rows"] == 250
    assert found["delay"]["is_met"]
    assert "Results are to come within 5,000 ms: epochs have up to 250 elements" in text
    assert found["partitions"] == 2


def test_a_picture_has_what_was_predicted_beside_what_was_measured(
    ran: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(told(ran, capsys, "--json", "--picture", str(tmp_path / "p.svg")))
    root = ET.parse(tmp_path / "p.svg").getroot()
    texts = [each.text or "" for each in root.iter(f"{SVG}text")]
    for name, values in found["work_parts"].items():
        assert name in texts
        assert f"predicted {values[-2]:,.2f} ms" in texts
        assert f"measured {values[-1]:,.2f} ms" in texts
    assert {e.get("class") for e in root.iter(f"{SVG}path")} <= {"near", "far"}


def test_bars_are_as_long_as_what_they_tell() -> None:
    flow = Flow(
        {"Scan 1": 0, "Join 4": 1, "Emit 9": 1}, [("Scan 1", "Join 4"), ("Join 4", "Emit 9")]
    )
    root = ET.fromstring(draw(Costs(LAST, {}, PARTS, partitions=2), flow))
    long = {
        kind: [float(r.get("width", 0)) for r in root.iter(f"{SVG}rect") if r.get("class") == kind]
        for kind in ("predicted", "measured")
    }
    assert long["measured"] == pytest.approx([55.0, 220.0]), "reading, then the join"
    assert long["predicted"] == pytest.approx([73.3, 110.0])
    far = [e for e in root.iter(f"{SVG}path") if e.get("class") == "far"]
    assert [e[0].text for e in far] == ["Scan 1 to Join 4"], "others stay in their task"
    heads = [e.text for e in root.iter(f"{SVG}text") if e.get("class") == "head"]
    assert heads == ["intake: 2 tasks", "stage 1: 2 tasks"]


def test_what_cannot_be_drawn(
    ran: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, said in (
        (["--placement", str(ran), "--picture", "p.png"], "p.png is no SVG by its ending"),
        (["--placement", str(ran), "--picture", f"{tmp_path}/no/p.svg"], "cannot be written"),
        (["--picture", "p.svg"], "--picture draws a placement"),
    ):
        assert main(["explain", *given]) == 2
        assert said in capsys.readouterr().err


def test_other_numbers_of_partitions_are_told() -> None:
    costs = Costs(LAST, {}, {}, {1: 41.25, 2: 30.0, 4: 28.5}, partitions=2)
    assert list(sentences(costs))[-1] == (
        "It would take 41.2 ms over 1 partition, 30.0 over 2 (as now), 28.5 over 4."
    )


def test_a_delay_that_is_not_kept_is_told() -> None:
    costs = Costs(LAST, {}, {}, delay=Delayed(50, 300, 180.0, is_met=False))
    assert "within 50 ms, and no epoch is that short" in list(sentences(costs))[-1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--delay", "250 parsecs"], "--delay: 250 parsecs is not a duration"),
        (["--delay", "250ms", "--epoch", "1s"], "Epochs begin 1,000 ms apart"),
        (["--delay", "5ms"], "The delay is 5 ms, and no result comes that soon"),
        (["--dealy", "250ms"], "--delay"),
    ],
)
def test_delays_that_cannot_be(
    given: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nt").write_text("")
    run = ["run", f"{tmp_path}/q.rq", "--stream", f"s={tmp_path}/s.nt", "--master", "none"]
    assert main([*run, "--once", *given]) == 2
    assert said in capsys.readouterr().err
