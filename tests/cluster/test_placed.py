"""Tasks on the executors where they are wanted, on a cluster of four processes: the same outcomes,
what was missed is counted, and the bytes that cross executors are those of our blobs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from levada.core.key_groups import group_of
from levada.placement.placement_file import FINEST, group_name

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

MACHINES = 4
HEAD = 125  # bytes that Spark and a blob's tail add to a blob
PLANS = int(os.environ.get("LEVADA_CASES", "0")) or 3
QUERY = """PREFIX : <http://e/>
SELECT ?k ?v ?w FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?k :p ?v . ?k :q ?w } }"""


def write(folder: Path) -> None:
    """Four files of triples, each with keys of its own, and the placement that follows."""
    (folder / "s").mkdir()
    lines: list[list[str]] = [[] for _ in range(4)]
    machine = {f"http://e/s {i}.nt": i for i in range(4)}
    for i in range(600):
        key = f"<http://e/k{i // 2 % 50}>"
        file = i // 2 % 50 % 4
        machine[group_name(group_of(key), FINEST)] = file
        lines[file].append(f'{key} <http://e/{"pq"[i % 2]}> "{i}" {10 * i} .\n')
    for i, own in enumerate(lines):
        (folder / "s" / f"{i}.nt").write_text("".join(own))
    placement = {"levada": "placement", "machines": 4, "machine": machine}
    (folder / "p.json").write_text(json.dumps(placement))


@pytest.mark.long
def test_placed_tasks(tmp_path: Path) -> None:
    write(tmp_path)
    command = [sys.executable, str(Path(__file__).with_name("placing.py")), str(PLANS), QUERY]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=800
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["plans"]) == PLANS
    for plan in found["plans"]:
        assert plan["same"]
        ours = plan["sent"] + HEAD * plan["blobs"]
        assert abs(ours - plan["remote"]) <= 0.01 * plan["remote"], plan
    wanted, missed = (sum(plan["seen"][i] for plan in found["plans"]) for i in (0, 1))
    assert missed < wanted / 2, "most tasks ran where they were wanted"
    near = found["by file"]
    assert near["same"] == [True] * 3
    assert max(near["remote"][1:]) < 0.1 * near["remote"][0], "most bytes go by file on one host"
    assert near["left"] == ["1"], "a job takes away what those before it have left"
    assert near["lost"] == [True, True], "a job whose files are lost is run again by value"
    assert near["missed"] == [1, 16], "which is told"
    assert near["after"], "and so are the next"
    formed = found["formed"]
    assert formed["rows"][0] == formed["rows"][1], "one step says what joins of two say"
    assert min(map(len, formed["rows"][0])) > 3
    assert "LinkedJoin" in formed["steps"][1], "with a part at all partitions"
    assert "LinkedJoin" not in formed["steps"][0]
    probed = found["probe"]
    assert [place.partition("/")[2] for place in probed["places"]] == list("0123")
    assert probed["cores"] == [1] * MACHINES
    assert any(map(any, probed["latency"])), "it takes time to get to another executor"
    assert all(width > 0 for row in probed["bandwidth"] for width in row)
    without = found["without"]
    assert without["same"]
    assert without["there"] == [True] * 4 + [False] * 2
    engine = found["engine"]
    assert engine["same"]
    assert engine["rows"] > 100
    assert engine["tasks"][0] > engine["tasks"][1] >= 0
    assert 0 <= engine["bytes"][0] < engine["bytes"][1]
    each = (engine["remote"] - engine["bytes"][0]) / engine["blobs"]
    # a small blob has a shorter head in Java's serialization: 114 bytes each, exactly
    assert HEAD - 15 <= each <= HEAD + 5, "Spark sees what tasks tell, and what it adds to a blob"
    carried = engine["carried"]
    assert carried["shuffle_blobs"] >= engine["blobs"] > 0
    assert carried["file_blobs"] == carried["repeated_jobs"] == 0
    assert carried["shuffle_bytes"] >= engine["bytes"][1]
    assert engine["edges"] == ["fused", "network"]
    executors, cores, tasks, stayed = engine["homes"]
    assert (executors, cores) == (MACHINES, MACHINES)
    assert tasks >= 2 * MACHINES
    assert stayed == tasks, "who waits for room for long stays where it ran in the epoch before"
