"""Builds the wheels of the two distributions: ``python -m tools.wheels FOLDER`` (``make wheels``).

``levada`` has PySpark among its requirements, ``levada-core`` has neither PySpark nor pandas. Both
have the same code and documentation, so an environment has one of them. The project file of
``levada-core`` is made from that of ``levada``, which is the only one in the tree.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = "levada-core"
SPARK_ONLY = ("pyspark", "pandas")
_SDIST = "import sys, setuptools.build_meta as build; build.build_sdist(sys.argv[1])"


def core_project(text: str) -> str:
    """Returns the project file of ``levada-core``, made from that of ``levada``."""
    text = text.replace('name = "levada"', f'name = "{CORE}"', 1)
    begin = text.index("\ndependencies = [")
    end = text.index("\n]", begin)
    kept = [
        line
        for line in text[begin:end].splitlines()
        if not line.strip().lstrip('"').startswith(SPARK_ONLY)
    ]
    return text[:begin] + "\n".join(kept) + text[end:]


def build_sdist(root: Path, folder: Path) -> Path:
    """Builds the source distribution of a tree, in a copy of which setuptools leaves files."""
    subprocess.run(
        [sys.executable, "-c", _SDIST, folder], cwd=root, check=True, capture_output=True
    )
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


def build_wheels(sdist: Path, folder: Path) -> tuple[Path, Path]:
    """Builds the wheels of ``levada`` and ``levada-core`` from a source distribution."""
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(sdist) as archive:
            archive.extractall(name, filter="data")
        (tree,) = Path(name).iterdir()
        full = _build_wheel(tree, folder / "levada")
        project = tree / "pyproject.toml"
        project.write_text(core_project(project.read_text()))
        shutil.rmtree(tree / "build", ignore_errors=True)
        return full, _build_wheel(tree, folder / CORE)


def _build_wheel(tree: Path, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", folder, tree], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _ignored(folder: str, names: list[str]) -> set[str]:
    """Returns what is made by builds and by tests in a folder of the tree."""
    made = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")(folder, names)
    return made | ({"build", "dist"} if Path(folder) == ROOT else set())


def main() -> None:
    """Builds both wheels into a folder and prints their paths."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "tree"
        shutil.copytree(ROOT, copy, ignore=_ignored)
        (Path(name) / "sdist").mkdir()
        sdist = build_sdist(copy, Path(name) / "sdist")
        for wheel in build_wheels(sdist, Path(name) / "wheels"):
            print(shutil.copy(wheel, folder))


if __name__ == "__main__":
    main()
