"""Machine files: what comes with Levada, and what is wrong with others."""

import json
from pathlib import Path

import numpy as np
import pytest

from levada.core.machine_file import read_machine, shipped_machine
from levada.errors import UsageError

GOOD = {
    "clock": 2.0,
    "line": 64,
    "cores": [2, 3],
    "places": ["a", "b"],
    "latency": [[0, 100], [120, 0]],
    "bandwidth": [[1000, 10], [20, 2000]],
}


@pytest.mark.parametrize(("name", "cores"), [("server-a", 144), ("server-b", 64)])
def test_servers_are_there(name: str, cores: int) -> None:
    found = shipped_machine(name)
    assert sum(found.cores) == cores and len(found.places) == 8
    assert np.array_equal(found.latency, found.latency.T)
    within, across = found.latency[:4, :4].max(), found.latency[:4, 4:].min()
    assert within < across  # the trays
    for row in found.latency:
        assert sorted(row) == sorted(found.latency[0])


def test_json_is_read_as_well(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(GOOD))
    found = read_machine(tmp_path / "m.json")
    assert found.name == "m" and found.cores == (2, 3)
    assert found.bandwidth[1, 0] == 20e6 and found.latency[1, 0] == 120


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"latency": [[0, 1]]}, "has 1 rows of latency for 2 places"),
        ({"latency": [[0, 1], [1]]}, "has 1 numbers of latency from b for 2 places"),
        ({"latency": [[0, -1], [1, 0]]}, "has -1 as latency from a to b"),
        ({"latency": [[0, None], [1, 0]]}, "has no value as latency from a to b"),
        ({"latency": [[0, "x"], [1, 0]]}, "has x as latency from a to b"),
        ({"latency": [[5, 1], [1, 0]]}, "has latency 5 from a to itself"),
        ({"latency": 3}, "has no rows of latency"),
        ({"bandwidth": [[1, 0], [1, 1]]}, "has 0 as bandwidth from a to b"),
        ({"bandwidth": [[1, float("nan")], [1, 1]]}, "has nan as bandwidth from a to b"),
        ({"cores": 0}, "gives the place a 0 cores"),
        ({"cores": [1, 0]}, "gives the place b 0 cores"),
        ({"cores": [1, 2.5]}, "gives the place b 2.5 cores"),
        ({"cores": [1, True]}, "gives the place b True cores"),
        ({"cores": [1]}, "has 1 numbers of cores for 2 places"),
        ({"places": []}, "has places that are no list of names"),
        ({"places": ["a", "a"]}, "has the place a twice"),
        ({"processors": [[0]]}, "has 1 lists of processors for 2 places"),
        ({"processors": 4}, "has no lists of processors for 2 places"),
        ({"processors": [[0], []]}, "has no list of processors for b"),
        ({"processors": [[0], "1"]}, "has no list of processors for b"),
        ({"processors": [[0], [-1]]}, "gives b the processor -1"),
        ({"processors": [[0], [True]]}, "gives b the processor True"),
        ({"processors": [[0], [1, 0]]}, "gives processor 0 to a and to b"),
        ({"clock": 0}, "has 0 as clock"),
        ({"line": None}, "has no value as line"),
        ({"speed": 1}, "has an unknown field speed"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(tmp_path: Path, change: dict, says: str) -> None:
    (tmp_path / "wrong.yaml").write_text(json.dumps(GOOD | change).replace("NaN", ".nan"))
    with pytest.raises(UsageError, match=says) as told:
        read_machine(tmp_path / "wrong.yaml")
    assert "wrong.yaml" in str(told.value)


@pytest.mark.parametrize("field", sorted(GOOD))
def test_what_is_missing_is_named(tmp_path: Path, field: str) -> None:
    (tmp_path / "m.yaml").write_text(json.dumps({k: v for k, v in GOOD.items() if k != field}))
    with pytest.raises(UsageError, match=f"has no {field}"):
        read_machine(tmp_path / "m.yaml")


@pytest.mark.parametrize(
    ("text", "says"),
    [("- 1", "holds no fields"), ("a: [", "line 1, column 5 is neither YAML nor JSON")],
)
def test_what_is_no_machine_is_told(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(UsageError, match=says):
        read_machine(tmp_path / "m.yaml")


def test_no_file_and_no_such_server() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_machine(Path("nowhere.yaml"))
    with pytest.raises(UsageError, match="Did you mean server-a"):
        shipped_machine("servera")
