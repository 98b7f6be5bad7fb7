"""What commands load: modules are counted, not time. A command that looks at queries waits for
nothing that only a run needs.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numba", "pyspark", "polars", "pyarrow", "pandas", "numpy")
ROOMS = (
    "levada.plan.topology.topology",
    "levada.plan.encoding",
    "levada.checkpoint.checkpoint_folder",
)
"""What plans are shared, sealed and kept with; a query that is checked needs none of it."""
MOST_MODULES = 193
"""Of Levada's own, in a check of SPARQL, which loads no translation of CQL; there were 203 when it
took 0.75 s, and 178 at 0.56 s."""
LOADED = """
import json, sys
from levada.cli.main import main
code = main(sys.argv[1:])
print(json.dumps([name for name in {heavy} if name in sys.modules]), file=sys.stderr)
sys.exit(code)
"""
NAMES = """
import json, sys
from levada.__main__ import main
code = main()
print(json.dumps(list(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
QUERY = """PREFIX : <http://e/>
SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT2S] WHERE { WINDOW :w { ?s :p ?v } }
"""


@pytest.mark.parametrize("more", [[], ["--stream", "s=s.nt", "--static", "rooms.ttl"]])
def test_a_check_loads_nothing_that_a_run_plans_and_keeps_with(
    folder: Path, more: list[str]
) -> None:
    given = [sys.executable, "-c", NAMES, "check", "q.rq", *more]
    done = subprocess.run(given, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = set(json.loads(done.stderr.splitlines()[-1]))
    assert not names & {*ROOMS, "yaml"}
    own = [name for name in names if name.startswith("levada")]
    assert len(own) <= MOST_MODULES, "more is loaded than before"


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The heavy modules that a command has loaded when it ends well."""
    script = LOADED.format(heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nt").write_text('<http://e/a> <http://e/p> "1" 1000 .\n')
    (tmp_path / "rooms.ttl").write_text("<http://e/a> <http://e/in> <http://e/b> .\n")
    return tmp_path


@pytest.mark.parametrize("command", [["--help"], ["version"], ["run", "--help"]])
def test_help_loads_nothing_heavy(folder: Path, command: list[str]) -> None:
    assert loaded(folder, *command) <= {"numpy"}


@pytest.mark.parametrize(
    "command",
    [
        ["check", "q.rq"],
        ["check", "q.rq", "--stream", "s=s.nt", "--static", "rooms.ttl"],
        ["explain", "q.rq"],
        ["explain", "q.rq", "--stage", "topology"],
    ],
)
def test_looking_at_queries_loads_no_data_path(folder: Path, command: list[str]) -> None:
    assert loaded(folder, *command) <= {"numpy"}


def test_a_run_in_this_process_loads_neither_spark_nor_pandas(folder: Path) -> None:
    run = ["run", "q.rq", "--stream", "s=s.nt", "--once", "--master", "none", "--no-progress"]
    assert loaded(folder, *run) == {"numba", "polars", "pyarrow", "numpy"}
