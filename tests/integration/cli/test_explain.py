"""``levada explain`` from the outside: which queries it shows, the operators of each, and what they
share.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from levada import Engine
from levada.cli.common_options import WORDS as MEANING
from levada.cli.common_options import takes_queries
from levada.cli.main import main
from levada.plan.logical.query_options import WORDS
from levada.plan.statistics.print_strategy import HEAD
from support.polling import PATIENCE

QUERY = """PREFIX : <http://e/>
SELECT ?s ?v FROM NAMED WINDOW :w ON :temp [RANGE PT10S STEP PT5S] WHERE { WINDOW :w { ?s :v ?v } }
"""
WIDE = QUERY.replace("PT10S", "PT20S")
MAKE = """PREFIX : <http://e/>
REGISTER RSTREAM :made AS CONSTRUCT { ?s :v ?v }
FROM NAMED WINDOW :w ON :temp [RANGE PT10S STEP PT5S] WHERE { WINDOW :w { ?s :v ?v } }
"""
READ = QUERY.replace(":temp", ":made")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("hot", QUERY), ("wide", WIDE), ("make", MAKE), ("read", READ)):
        Path(f"{name}.rq").write_text(text)
    Path("t.nt").touch()
    Path("app.yaml").write_text(
        "streams: {temp: {path: t.nt}}\n"
        "queries: {read: {file: read.rq}, make: {file: make.rq}, hot: {file: hot.rq}}\n"
    )
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


def test_queries_that_share_are_told_with_who_uses_what(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, "hot.rq", "wide.rq", "--stage", "topology").splitlines()
    assert lines[0] == (
        "2 queries: 4 nodes with 7 members; apart they would be 8 nodes with 8 members"
    )
    assert lines[1:6] == [
        "0 Match [ID+TEXT ID+TEXT] lo",
        "  0 of http://e/temp, (- <http://e/v> -): hot, wide",
        "1 Occur [ID+TEXT ID+TEXT] lo/prev <- Match by 0,1",
        "  0 of http://e/temp, [RANGE PT10S STEP PT5S close [)]: hot",
        "  1 of http://e/temp, [RANGE PT20S STEP PT5S close [)]: wide",
    ]


def test_what_joins_of_three_patterns_share_as_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their orders are told, too."""
    group = "?s :v ?v . ?s :u ?u . ?u :t ?t"
    Path("three.rq").write_text(QUERY.replace("{ ?s :v ?v }", f"{{ {group} }}"))
    Path("other.rq").write_text(QUERY.replace("{ ?s :v ?v }", f"{{ {group} FILTER(?t > 1) }}"))
    found = json.loads(shown(capsys, "three.rq", "other.rq", "--sharing", "relax", "--json"))
    looked = found["orders"]["three"]
    assert looked[0]["type"] == "ConsideredOrder" and "?s <http://e/v> ?v" in looked[0]["order"]
    assert any(one["chosen"] for one in looked)


def test_the_topology_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, "hot.rq", "wide.rq", "--stage", "topology", "--json"))
    assert (found["stage"], found["queries"]) == ("topology", ["hot", "wide"])
    first = found["nodes"][0]
    assert (first["name"], first["stage"], first["inputs"]) == ("Match", 0, [])
    assert [member["queries"] for member in first["members"]] == [["hot", "wide"]]


def test_a_topology_has_the_makers_of_what_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = shown(capsys, "read", "--app", "app.yaml", "--stage", "topology")
    assert one.startswith("2 queries: ")
    assert "of made" not in one and "of make, (- <http://e/v> -): read" in one
    every = shown(capsys, "--app", "app.yaml", "--stage", "topology")
    assert every.startswith("3 queries: ")
    assert "(- <http://e/v> -): make, hot" in every


def test_without_a_name_all_queries_of_the_application_are_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, "--app", "app.yaml").count("(emit)") == 3
    assert shown(capsys, "hot", "--app", "app.yaml").count("(emit)") == 1
    assert shown(capsys, "hot", "wide.rq", "--app", "app.yaml").count("(emit)") == 2
    assert shown(capsys, "hot.rq", "wide.rq").count("(emit)") == 2


def test_operators_are_of_one_query_each_with_flags_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("hot.rq").write_text(
        QUERY.replace("?s ?v FROM", "(COUNT(*) AS ?n) FROM") + "ORDER BY DESC(?n)"
    )
    Path("star.rq").write_text(QUERY.replace("?s :v ?v", "?s :v ?v . ?s :u ?w"))
    out = shown(capsys, "hot.rq", "--stage", "physical")
    assert "(panes ((COUNT)) enumerated)" in out and "(rorder (desc ?n) 0)" in out
    star = shown(capsys, "star.rq")
    assert "(join (s) raw left right" in star
    assert "True" not in out + star


def test_queries_in_a_circle_are_refused_as_a_run_would(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.rq").write_text(MAKE.replace(":made AS", ":a AS").replace(":temp", ":b"))
    Path("b.rq").write_text(MAKE.replace(":made AS", ":b AS").replace(":temp", ":a"))
    assert main(["check", "a.rq", "b.rq"]) == 2
    assert "in a circle" in capsys.readouterr().err
    assert main(["explain", "a.rq", "b.rq", "--stage", "topology"]) == 2


def test_every_command_takes_the_options_of_queries_by_their_words() -> None:
    assert tuple(MEANING) == WORDS

    def command(arguments: object, *, own: int = 0) -> None:
        raise AssertionError("is not called here")

    names = list(inspect.signature(takes_queries(command)).parameters)
    assert [name for name in names if name in WORDS] == list(WORDS)
    assert "own" in names and "arguments" not in names


def test_the_form_of_joins_shows_and_what_stays_of_two(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "?s :v ?v . ?s :w ?w . ?s :x ?x . ?x :y ?y"
    Path("star.rq").write_text(QUERY.replace("?s :v ?v }", body + " }"))
    text = shown(capsys, "star.rq", "--join", "multiway")
    assert "(multiwayjoin (s) raw 0 1 2)" in text
    assert "The join by ?x has a join as input: they are by other variables." in text
    assert "multiway" not in shown(capsys, "star.rq")
    assert "MultiwayJoin" in shown(capsys, "star.rq", "--join", "multiway", "--stage", "topology")
    Path("app.yaml").write_text("streams: {temp: {path: t.nt}}\noptions: {join: multiway}\n")
    assert "(multiwayjoin (s) raw 0 1 2)" in shown(capsys, "star.rq", "--app", "app.yaml")
    assert main(["explain", "star.rq", "--join", "multiwey"]) == 2
    assert "There is no form of joins multiwey. Did you mean multiway?" in capsys.readouterr().err


def test_all_forms_of_a_chain_are_told_with_what_they_cost(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many rows as the first of the stream say; nothing is said of a stream without any."""
    chain = "?s :v ?v . ?v :w ?w . ?w :x ?x"
    Path("chain.rq").write_text(QUERY.replace("?s :v ?v }", chain + " }").replace(":temp", "<t>"))
    Path("app.yaml").write_text(
        "streams: {t: {path: t.nt}}\noptions: {join: auto, partitions: 4}\n"
    )
    Path("t.nt").write_text("")
    assert "why not" not in shown(capsys, "chain.rq", "--app", "app.yaml")
    lines = [f"<http://e/s{i}> <http://e/v> <http://e/a{i % 9}> {i} ." for i in range(3000)]
    lines += [f"<http://e/a{i % 9}> <http://e/w> <http://e/b{i}> {3000 + i} ." for i in range(3000)]
    lines += [f"<http://e/b{i}> <http://e/x> <http://e/c{i}> {6000 + i} ." for i in range(30)]
    Path("t.nt").write_text("".join(f"{line}\n" for line in lines))
    told, *table = shown(capsys, "chain.rq", "--app", "app.yaml").splitlines()[-7:]
    assert "over 4 partitions" in told
    assert re.split("  +", table[0].strip()) == list(HEAD)
    assert table[1].endswith("chosen")
    forms = {re.split("  +", line.strip())[0].partition(":")[0] for line in table[1:]}
    assert forms == {"replicated", "staged, two at a time"}
    assert all(line.endswith(("chosen", "as much", "no better")) for line in table[1:])
    assert not list(Path().glob("levada-look*"))


def test_what_both_forms_of_a_join_cost_is_told_where_it_has_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = QUERY.replace("?s :v ?v }", "?s :v ?v . ?s :w ?w . ?s :x ?x }").replace(":temp", "<t>")
    Path("star.rq").write_text(query)
    triples = [f'<http://e/s> <http://e/{p}> "{i}" {1000 * i} .' for i in range(8) for p in "vwx"]
    Path("t.nt").write_text("".join(f"{triple}\n" for triple in triples))
    with Engine(spark=False, checkpoint="c", epoch_rows=6, join="auto") as engine:
        engine.stream("t", "t.nt")
        engine.register(query, name="star")
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    options = "options: {join: auto, checkpoint: c}\n"
    Path("app.yaml").write_text("streams: {t: {path: t.nt}}\n" + options)
    text = shown(capsys, "star.rq", "--app", "app.yaml")
    assert "The join of 3 parts by ?s is in one step or two at a time, as costs less" in text
    assert re.search(r"Join \d+ of the run: .*; one step costs [1-9][0-9,]* us", text)
    assert main(["status", "c", "--json"]) == 0
    (join,) = json.loads(capsys.readouterr().out)["join_strategies"]
    assert join["queries"] == ["star"]
    assert min(join["one_step_cpu_us"], join["two_at_a_time_cpu_us"]) > 0
