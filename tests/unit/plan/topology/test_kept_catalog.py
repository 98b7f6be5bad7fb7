"""A catalog that another process has written: texts have other hashes there, and its queries are
found all the same.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

from levada.plan.topology.topology import Topology
from levada.syntax import parse
from levada.translation.sparql.translate import translate

TEXT = """PREFIX : <http://e/> SELECT ?x ?y FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?x :p ?y . ?y :q ?z } }"""
WRITER = f"""
import pickle, sys
from levada.translation.sparql.translate import translate
from levada.plan.lowering.scans import StreamFacts
from levada.plan.topology.topology import Topology
from levada.syntax import parse
topology = Topology({{"http://e/s": StreamFacts()}})
text = {TEXT!r}
topology.add("q", translate(parse(text), text=text), 0)
sys.stdout.buffer.write(pickle.dumps(topology))
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_queries_share_and_go_across_processes(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITER],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
    )
    topology = pickle.loads(done.stdout)
    assert isinstance(topology, Topology)
    nodes = set(topology.nodes)
    topology.add("again", translate(parse(TEXT), text=TEXT), 0)
    assert set(topology.nodes) == nodes, "a query of the same shape makes no node"
    topology.remove("q")
    topology.remove("again")
    assert not topology.nodes
