"""A placement that is learned on a cluster of four processes: readers and groups move, what was
predicted comes true, and results stay the same, also when an executor dies on the way. Takes a
minute: ``make long`` runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.long,
]

DAY, DAYS, FILES = 86_400_000, 4, 4
QUERY = """PREFIX : <http://e/>
SELECT ?c (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE P1D STEP P1D]
WHERE { WINDOW :w { ?k :p ?c . ?k :q ?v } } GROUP BY ?c"""


def write(folder: Path) -> None:
    """Four files: who is in one has a class that is in this one alone, the same day after day."""
    folder.mkdir()
    for file in range(FILES):
        lines = []
        for i in range(DAYS * 160):
            who = i % 160 // 2 % 40
            key = f"<http://e/k{file}-{who}>"
            value = f'"{i}"' if i % 2 else f"<http://e/c{file}-{who % 12}>"
            at = i * DAY // 160 + file
            lines.append(f"{key} <http://e/{'pq'[i % 2]}> {value} {at} .\n")
        (folder / f"{file}.nt").write_text("".join(lines))


def test_a_placement_is_learned_on_executors(tmp_path: Path) -> None:
    write(tmp_path / "s")
    command = [sys.executable, str(Path(__file__).with_name("learning.py")), QUERY]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=800
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] > 50 and found["same"] == [True, True]
    for told in (found["learned"], found["after"]):
        first, *others = told["learning_steps"]
        assert first["moved_groups"] + first["moved_readers"] and first["share_before"] > 0.5
        assert first["predicted_share"] < 0.25 * first["share_before"]
        assert abs(first["measured_share"] - first["predicted_share"]) <= 0.01
        assert others, "it goes on learning"
        assert told["preferred_tasks"] > told["displaced_tasks"]
    assert found["killed"], "an executor has been killed behind the first step"
