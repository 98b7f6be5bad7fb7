"""``levada shell`` on a terminal of its own (a pty), as one uses it: type, complete, make a
mistake, see a result, stop a query with Ctrl-C, go on; and over a pipe.
"""

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import polars as pl
import pytest
from rich.console import Console

from levada.cli.app.app_file import App, QuerySource, StaticSource
from levada.cli.shell.complete import candidates
from levada.cli.shell.describe import look
from levada.cli.shell.session import Session
from levada.cli.shell.start import statements_of
from levada.cli.shell.statements import is_whole, query_of
from levada.connectors.config.stream_config import StreamConfig
from support.polling import PATIENCE

TEMP = """<http://e/hall> <http://e/t> "20"^^<http://www.w3.org/2001/XMLSchema#integer> 1000 .
<http://e/hall> <http://e/t> "21"^^<http://www.w3.org/2001/XMLSchema#integer> 2500 .
<http://e/lab> <http://e/t> "22"^^<http://www.w3.org/2001/XMLSchema#integer> 3000 .
"""
HOT = """PREFIX : <http://e/>
SELECT ?room ?t
FROM NAMED WINDOW :w ON :temp [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?room :t ?t FILTER(?t > 21) } }"""
CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]")
ANSWERED = r"in \d+ reports?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "temp.nt").write_text(TEMP)
    (tmp_path / "rooms.ttl").write_text('<http://e/lab> <http://e/name> "Laboratory" .\n')
    (tmp_path / "trips.csv").write_text("k,v,ts\n1,2.5,1000\n2,3.5,2000\n")
    (tmp_path / "hot.rq").write_text(HOT)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    more = {"PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm"}
    return {**os.environ, **more}


class Terminal:
    """A shell on a pty; what it shows is looked at without colours and movements."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "levada", "shell", *arguments],
            cwd=str(folder),
            env=environment(folder),
            encoding="utf-8",
            codec_errors="replace",  # the echo of a key may stand within a character
            dimensions=(40, 80),
        )
        self.shown = ""
        self.sees("levada>")

    def types(self, text: str) -> None:
        self.child.send(text)

    def enters(self, text: str) -> None:
        """Types lines, each with Enter."""
        for line in text.split("\n"):
            self.child.send(line + "\r")

    def sees(self, pattern: str) -> str:
        """Waits for a text; gives what has been shown since the last one that was waited for."""
        until = time.monotonic() + PATIENCE
        while (found := re.search(pattern, plain(self.shown))) is None:
            assert time.monotonic() < until, f"{pattern} is not shown: {plain(self.shown)}"
            try:
                self.shown += self.child.read_nonblocking(4096, timeout=0.2)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                self.child.close()
                ends = f"exit code {self.child.exitstatus}, signal {self.child.signalstatus}"
                pytest.fail(f"The shell ended ({ends}): {plain(self.shown)}")
        seen, self.shown = plain(self.shown)[: found.end()], plain(self.shown)[found.end() :]
        return seen


def plain(shown: str) -> str:
    """What a terminal shows, without its colours; a movement to the right is a blank."""
    return ESCAPES.sub("", re.sub(r"\x1b\[\d*C", " ", shown))


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    found = Terminal(folder, "--stream", "temp=temp.nt", "--static", "rooms.ttl")
    yield found
    found.child.close(force=True)


def test_type_complete_mistake_result_interrupt_resume_and_end(
    terminal: Terminal, folder: Path
) -> None:
    # a mistake: the place, and what was meant
    terminal.enters("SELECT ?s WERE { } ;")
    assert re.search(r"SELECT \?s WERE \{ \}\s+\^", terminal.sees("Did you mean WHERE"))
    # completed keywords and a result; the first one compiles what the cache lacks
    first, *middle, last = HOT.split("\n")
    terminal.enters(first)
    terminal.types("SELE" + TAB)
    terminal.sees("SELE ?CT")
    terminal.types(" ?room ?t\r")
    terminal.enters("\n".join(middle[1:]))
    terminal.enters(last + " ;")
    shown = terminal.sees(ANSWERED)
    assert re.search(r"1970-01-01T00:00:04Z\s+:lab\s+22", shown), shown
    assert "hall" not in shown.rpartition("report ")[2]
    # followed: windows close as data come, until Ctrl-C
    terminal.enters("\\follow")
    terminal.sees(r"\\follow")
    with (folder / "temp.nt").open("a") as more:
        more.write(TEMP.replace("1000", "5000").replace("2500", "5500").replace("3000", "9000"))
    terminal.sees("1970-01-01T00:00:04Z +:lab")
    terminal.types(CTRL_C)
    # and the shell goes on
    terminal.enters("\\run")
    shown = terminal.sees(ANSWERED)
    assert "1970-01-01T00:00:10Z" in shown
    terminal.sees(r"\(\d+\.\d+ s\)")
    # what has been typed and is given up with Ctrl-C
    terminal.types("SELECT nonsense")
    terminal.types(CTRL_C)
    terminal.enters("\\d")
    shown = terminal.sees("rooms.ttl")
    row = r"temp\s+temp.nt\s+nt\s+6\s+1970-01-01T00:00:01Z\s+1970-01-01T00:00:09Z"
    assert re.search(row, shown), shown
    terminal.types(CTRL_D)
    terminal.child.expect(pexpect.EOF)
    terminal.child.close()
    assert terminal.child.exitstatus == 0
    assert "SELECT ?room ?t" in (folder / "state" / "levada" / "history").read_text()


def test_watch_draws_a_table_until_it_is_stopped(terminal: Terminal, folder: Path) -> None:
    terminal.enters(HOT + " ;")
    terminal.sees(ANSWERED)
    terminal.enters("\\watch")
    terminal.sees(r"q1 · 0")
    with (folder / "temp.nt").open("a") as more:
        more.write(TEMP.replace("1000", "5000").replace("2500", "5500").replace("3000", "9000"))
    terminal.sees(r"q1 · [1-9]")
    terminal.types(CTRL_C)
    terminal.enters("ASK { <http://e/lab> ?p ?o }\n")
    terminal.sees("true")


def pipe(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "levada", "shell", *arguments],
        input=text,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_a_pipe_has_every_dialect_and_every_command(folder: Path) -> None:
    said = f"""
\\stream trips=trips.csv,schema=k:integer;v:double
\\stream temp=temp.nt
\\format ndjson
{HOT} ;
Register Stream Far (k Integer) As
Rstream(Select k From trips [Range 5 s] Where v > 3);
Istream(Select k From Far [Now]);
\\save pairs.cql
\\format csv
PREFIX : <http://e/>
REGISTER QUERY q AS
SELECT ?r FROM STREAM :temp [RANGE 4s STEP 2s] WHERE {{ ?r :t 22 }}

SELECT ?r WHERE {{ STREAM <http://e/temp> [RANGE 4s] {{ ?r <http://e/t> 22 }} }} ;
\\save rows.parquet
\\explain algebra
"""
    done = pipe(folder, said)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"report": 4000' in done.stdout
    assert (folder / "pairs.cql").read_text().startswith("Register Stream Far")
    assert "(bgp (window 0)" in done.stdout
    assert pl.read_parquet(folder / "rows.parquet")["r"].to_list() == ["http://e/lab"]


def test_a_mistake_in_a_pipe_is_told_and_the_rest_is_done(folder: Path) -> None:
    done = pipe(folder, "\\foo\nASK { ?s ?p ?o };\n", "--static", "rooms.ttl")
    assert done.returncode == 1
    assert "There is no command \\foo." in done.stdout
    assert "true" in done.stdout


def test_queries_of_files_are_known_by_their_names(folder: Path) -> None:
    done = pipe(folder, "\\run hot\n\\run hott\n", "hot.rq", "--stream", "temp=temp.nt")
    assert ":lab" in done.stdout
    assert "Did you mean hot?" in done.stdout


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("\\d", True),
        ("SELECT * {", False),
        ("SELECT * { ?s ?p ?o ;", False),
        ("SELECT * { ?s ?p ?o } ;", True),
        ("SELECT * { ?s ?p ';' }", False),
        ("ASK { } # ;", False),
        ("ASK { } ; # so", True),
        ("PREFIX : <http://e/;>", False),
        ("Select k From S [Now];", True),
        ("Register Stream V (k Integer) As Select k From S;", False),
        ("Register Stream V (k Integer) As Select k From S; Select k From V;", True),
        ("Select k From S [Now]\n", True),
    ],
)
def test_what_is_typed_is_whole_or_goes_on(text: str, whole: bool) -> None:
    assert is_whole(text) is whole


def test_the_semicolon_that_ends_a_query_is_none_of_it() -> None:
    assert query_of("SELECT * { ?s :a 1 ; :b 2 } ;\n") == "SELECT * { ?s :a 1 ; :b 2 }"


def test_statements_of_a_file_are_cut_where_they_end() -> None:
    lines = ["\\d\n", "\n", "ASK {\n", " ?s ?p ?o ;\n", " ?q ?r } ;\n", "ASK { }\n", "\n", "ASK {}"]
    assert [text.strip() for text in statements_of(Session(), lines)] == [
        "\\d", "ASK {\n ?s ?p ?o ;\n ?q ?r } ;", "ASK { }", "ASK {}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("SEL", "SELECT"),
        ("sel", "select"),
        ("SELECT ?room WHERE { ?r", "?room"),
        ("SELECT (STRL", "STRLEN"),
        ("PREFIX x: <http://e/> SELECT * FROM NAMED WINDOW :w ON x:te", "x:temp"),
        ("SELECT * FROM NAMED WINDOW :w ON <http://e/l", "<http://e/line>"),
        ("PREFIX sosa", "sosa: <http://www.w3.org/ns/sosa/>"),
        ("Select k From tr", "trips"),
        ("Select k From trips Where spe", "speed"),
        ("Select Co", "COUNT"),
        ("\\fo", "\\follow"),
        ("\\format nd", "ndjson"),
        ("\\dialect cqe", "cqels"),
        ("\\explain top", "topology"),
        ("\\stream a=b.csv,sep", "separator="),
    ],
)
def test_a_word_is_completed(before: str, expected: str) -> None:
    streams = (
        StreamConfig.from_options("temp", "temp.nt"),
        StreamConfig.from_options("http://e/line", "line.nt"),
        StreamConfig.from_options("trips", "trips.csv", schema="k:integer;speed:double"),
    )
    session = Session(App(streams=streams))
    assert expected in candidates(before, session, ("\\follow", "\\format"))[1]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_what_is_there_breaks_no_word_and_no_time(folder: Path, width: int) -> None:
    deep = folder / "a-folder-with-a-long-name" / "and-another-one-below-it"
    deep.mkdir(parents=True)
    (deep / "trips.csv").write_text("line,km,left\nU4,1.5,2024-01-31T09:00:00Z\n")
    trips = {"schema": "line:string;km:double", "time": "field:left"}
    app = App(
        (
            StreamConfig.from_options("temp", folder / "temp.nt"),
            StreamConfig.from_options("trips", deep / "trips.csv", **trips),
            StreamConfig.from_options("gone", folder / "no.nt"),
        ),
        (StaticSource(str(deep / "rooms.ttl"), "http://e/graph-of-the-rooms"),),
        (QuerySource("hot", HOT),),
    )
    console = Console(width=width, file=io.StringIO(), color_system=None)
    for table in look(app, "iso"):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    times = r"1970-01-01T00:00:01Z +1970-01-01T00:00:03Z"
    assert re.search(rf"^temp +\S+temp\.nt +nt +3 +{times}", shown, re.MULTILINE), shown
    at = "2024-01-31T09:00:00Z"
    assert re.search(rf"^trips +\S*trips\.csv +csv +1 +{at} +{at}", shown, re.MULTILINE), shown
    assert re.search(r"^trips .*line string, km double", shown, re.MULTILINE), shown
    assert re.search(r"^hot +rspql +PREFIX : <http://e/> SELECT", shown, re.MULTILINE), shown
    assert re.search(r"^gone: The stream gone is not there", shown, re.MULTILINE), shown


def test_crash_in_native_code_prints_the_stacks(terminal: Terminal) -> None:
    terminal.child.kill(signal.SIGSEGV)
    shown = terminal.sees("Fatal Python error: Segmentation fault(.|\n)*prompt_toolkit")
    assert "levada/cli/shell" in shown
