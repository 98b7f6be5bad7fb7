"""``levada explain --steps``: each rule, its time, and what it made."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from levada.cli.main import main
from levada.plan.optimizer.pipeline import RULES

QUERY = """PREFIX : <http://e/>
SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?s :p ?v . ?s :q ?x FILTER(?v > 1 && ?x < 5) } }"""


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(QUERY)
    return "q.rq"


def test_each_rule_stands_with_its_time_and_what_it_made(
    query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", query, "--steps"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^(\w+)  \d+\.\d\d ms$", out, re.MULTILINE) == [rule.name for rule in RULES]
    before, after = out.split("push_filters")
    assert "(filter (&& " in before and "(conjunction" not in before
    assert "(conjunction (> ?v " in after and "filter" not in after
    assert out.count("SELECT (?s)") == 3, "what changes nothing shows nothing"


def test_steps_as_json(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", query, "--steps", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [step["rule"] for step in found] == [rule.name for rule in RULES]
    changed, ordered = [step for step in found if "after" in step]
    assert ordered["rule"] == "canonical_order"
    assert changed["rule"] == "push_filters" and changed["before"] != changed["after"]
