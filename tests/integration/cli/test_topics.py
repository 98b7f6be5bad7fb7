"""``levada help``: what it tells is what there is, and what the documentation says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from levada.cli.help.help_topics import OPTION_ROWS, TOPICS, WINDOWS, keys
from levada.cli.main import app, main
from levada.connectors.config.input_formats import NAMES
from levada.connectors.config.stream_options import OPTIONS
from levada.language import parse
from levada.language.cql.parser import parse_script
from levada.language.dialects.detect import DIALECTS

DOCUMENT = Path(__file__).parents[3] / "docs" / "cli" / "streams.md"
SHAPES = {
    "rspql": "PREFIX : <http://e/> SELECT ?a {} WHERE {{ WINDOW :w {{ ?a :p ?b }} }}",
    "csparql": "PREFIX : <http://e/> SELECT ?a {} WHERE {{ ?a :p ?b }}",
    "cqels": "PREFIX : <http://e/> SELECT ?a WHERE {{ {} }}",
    "sparqlstream": "PREFIX : <http://e/> SELECT ?a {} WHERE {{ ?a :p ?b }}",
}


def test_the_options_of_streams_are_those_of_the_documentation_and_of_the_program() -> None:
    found = re.search(
        r"\| key \| values \| default \|\n\|[-|]+\|\n((?:\|.*\n)+)", DOCUMENT.read_text()
    )
    assert found is not None
    rows = [
        tuple(c.strip() for c in line.strip("|").split(" | ")) for line in found[1].splitlines()
    ]
    assert [*rows] == [*OPTION_ROWS]
    assert sorted(keys()) == sorted(OPTIONS)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_is_told(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", topic]) == 0
    told = capsys.readouterr().out
    words = {"streams": OPTIONS, "formats": NAMES, "dialects": DIALECTS, "windows": SHAPES}[topic]
    assert all(re.search(rf"^(?:.*, )?{word}\b", told, re.MULTILINE) for word in words)


@pytest.mark.parametrize(("dialect", "kind", "written"), WINDOWS)
def test_a_window_is_written_so(dialect: str, kind: str, written: str) -> None:
    if dialect == "cql":
        assert parse_script(f"Select * {written}").queries
    else:
        assert parse(SHAPES[dialect].format(written), dialect)


def test_help_on_a_command_is_its_own_and_a_near_miss_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["help", "run"]) == 0
    assert "--watch" in capsys.readouterr().out
    assert main(["help"]) == 0
    assert "sample" in capsys.readouterr().out
    assert main(["help", "stream"]) == 2
    assert "Did you mean streams?" in capsys.readouterr().err


def test_the_version_is_an_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    first = capsys.readouterr().out
    assert main(["version"]) == 0
    assert capsys.readouterr().out == first


def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str) -> str:
        asked = {"_LEVADA_COMPLETE": "complete_bash", "COMP_WORDS": words}
        done = subprocess.run(
            [sys.executable, "-m", "levada"],
            env={**os.environ, **asked, "COMP_CWORD": str(words.count(" "))},
            capture_output=True,
            text=True,
        )
        return done.stdout

    assert completed("levada sam").split() == ["sample"]
    assert "--watch" in completed("levada run --wa").split()
    assert app.info.name == "levada"
