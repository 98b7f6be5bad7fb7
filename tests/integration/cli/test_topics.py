"""``levada help``: what it tells is what there is, and what the documentation says."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from levada.cli.help import help_topics as topics
from levada.cli.help.help_topics import OPTION_ROWS, TOPICS, WINDOWS, keys
from levada.cli.main import app, main
from levada.connectors.config.input_formats import NAMES
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import OPTIONS
from levada.core.event_time import Window, WindowKind
from levada.core.query_model import Output
from levada.core.user_functions import ValueType
from levada.language import parse
from levada.language.dialects.detect import DIALECTS, is_cql
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.plan.logical.nodes import Query, Scan
from levada.plan.logical.traversal import level

DOCUMENT = Path(__file__).parents[3] / "docs" / "cli" / "streams.md"
SHAPES = {
    "rspql": "PREFIX : <http://e/> SELECT ?a {} WHERE {{ WINDOW :w {{ ?a :p ?b }} }}",
    "csparql": "PREFIX : <http://e/> SELECT ?a {} WHERE {{ ?a :p ?b }}",
    "cqels": "PREFIX : <http://e/> SELECT ?a WHERE {{ {} }}",
    "cqels2": "PREFIX : <http://e/> SELECT ?a {} WHERE {{ ?a :p ?b }}",
    "sparqlstream": "PREFIX : <http://e/> SELECT ?a {} WHERE {{ ?a :p ?b }}",
    "cql": "Select * {}",
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
    words = {
        "streams": OPTIONS, "formats": NAMES, "dialects": DIALECTS, "windows": SHAPES,
        "functions": ValueType,
    }[topic]  # fmt: skip
    assert all(re.search(rf"^(?:.*, )?{word}\b", told, re.MULTILINE) for word in words)


def algebra(dialect: str, text: str) -> Query:
    """The algebra of a text, with the defaults of its dialect."""
    if is_cql(dialect):
        return translate_cql(text, {"S": {"k": "integer"}}, dialect=dialect)
    return translate(parse(text, dialect), text=text)


def kind_of(window: Window) -> str:
    """The kind of a window in the words of the table."""
    match window.kind:
        case WindowKind.CLOSE_OPEN | WindowKind.CLOSE_CLOSED | WindowKind.CHANGE:
            return topics.TUMBLING if window.step == window.range else topics.STEPS
        case WindowKind.COUNT:
            assert window.count == 10
            return topics.BATCHES if window.step == 10 else topics.LAST
        case WindowKind.RANGE:
            return topics.EACH
        case kind:
            words = {WindowKind.NOW: topics.NOW, WindowKind.ALL: topics.ALL}
            return {**words, WindowKind.ENDED: topics.SESSIONS}[kind]


@pytest.mark.parametrize(("dialect", "kind", "reports", "written"), WINDOWS)
def test_a_window_of_the_table_is_that_of_the_engine(
    dialect: str, kind: str, reports: str, written: str
) -> None:
    query = algebra(dialect, SHAPES[dialect].format(written))
    (on,) = query.windows
    assert kind_of(on.window) == kind.removesuffix(" of each key")
    is_session = on.window.kind is WindowKind.ENDED
    other = topics.END if is_session else topics.CHANGE
    assert reports == (topics.CLOSE if on.window.kind.on_close else other)
    scans = [node for node in level(query.pattern) if isinstance(node, Scan)]
    assert any(scan.partition for scan in scans) == kind.endswith(" of each key")
    if on.window.kind in (WindowKind.RANGE, WindowKind.CLOSE_OPEN, WindowKind.CHANGE):
        assert on.window.range == 600_000
        assert kind != topics.STEPS or on.window.step == 60_000


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_default_output_of_the_table_is_that_of_the_engine(
    dialect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoken = "cql" if dialect == "stream" else dialect
    written = next(row[3] for row in WINDOWS if row[0] == spoken)
    query = algebra(dialect, SHAPES[spoken].format(written))
    assert query.output.name == DIALECTS[dialect].output
    assert main(["help", "dialects"]) == 0
    (line,) = (x for x in capsys.readouterr().out.splitlines() if x.split()[0] == dialect)
    word = query.output.name if query.output is not Output.RELATION else "changes (+ and -)"
    assert line.rstrip().endswith(word)


WORDS: dict[str, str | int | None] = {
    "ISO 8601": "",
    "anywhere": "",
    "forever": None,
    "never": None,
    "none": "",
    "a day": None,
}
WORDS |= {"a comma": ",", "1,000,000": 1_000_000}
SENTENCES = {"the file extension; required for messages", "`column`; tuples `field:ts`"}
SENTENCES |= {
    "`line`; documents: `document`; messages: `message`",
    "required for CSV, NDJSON and JSON",
}
SENTENCES |= {"no TLS; the system's authorities"}


@pytest.mark.parametrize(("key", "default"), [(k, d) for k, _, d in OPTION_ROWS if d])
def test_the_default_of_an_option_of_streams_is_that_of_the_program(key: str, default: str) -> None:
    options: dict[str, Any] = {"format": "nt", "time": "arrival"}
    kafka = StreamConfig.from_options("s", "kafka://h:1/t", **options)
    mqtt = StreamConfig.from_options("s", "mqtt://h/t", **options)
    file = StreamConfig.from_options("s", "a.nt")
    table = StreamConfig.from_options("s", "a.csv", schema="k:integer")
    document = StreamConfig.from_options("s", "a.ttl", time="filename:(.*)")
    if default in SENTENCES:
        assert (file.time, table.time) == ("column", "field:ts")
        assert (file.element, document.element, kafka.element) == ("line", "document", "message")
        assert kafka.kafka is not None and not kafka.kafka.tls and not kafka.kafka.ca
        return
    name = key.strip("`")
    owner = next(each for each in (file, kafka.kafka, mqtt.feed) if hasattr(each, name))
    value = getattr(owner, name)
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    assert value == WORDS[default] if default in WORDS else f"`{shown}`" == default


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
