"""The documentation as a site: each page is in its contents, each public name in its reference, and
Sphinx, where it is installed, has nothing to complain of.
"""

import doctest
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import levada
import levada.testing

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONTENTS = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def listed(page: Path) -> set[Path]:
    """The pages that stand in the contents of a page, and in theirs."""
    found = {page}
    for block in CONTENTS.findall(page.read_text()):
        for entry in (line for line in block.splitlines() if line and not line.startswith(":")):
            for path in sorted(page.parent.glob(f"{entry}.md")):
                found |= listed(path)
    return found


def test_each_page_is_in_the_contents() -> None:
    assert set(DOCS.rglob("*.md")) == listed(DOCS / "index.md")


@pytest.mark.parametrize("package", [levada, levada.testing], ids=lambda package: package.__name__)
def test_each_public_name_is_in_the_reference(package: ModuleType) -> None:
    said = re.findall(
        r"^\.\. auto\w+:: ([\w.]+)$", (DOCS / "reference.md").read_text(), re.MULTILINE
    )
    names = {f"{package.__name__}.{name}" for name in package.__all__ if not name.startswith("_")}
    assert names == {name for name in said if name.rpartition(".")[0] == package.__name__}


def test_pages_are_given_captions_for_their_files() -> None:
    settings = runpy.run_path(str(DOCS / "conf.py"))
    example = settings["with_captions"]
    (test,) = doctest.DocTestFinder(recurse=False).find(example, "with_captions", globs=settings)
    assert doctest.DocTestRunner().run(test).failed == 0
    assert example('<a id="times"></a>**Times**') == "(times)=\n**Times**"
    assert example("```python\n1\n```") == "```python\n1\n```"


@pytest.mark.long
def test_the_site_is_made_without_a_warning(tmp_path: Path) -> None:
    for part in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(part, reason="pip install 'levada[docs]'")
    sphinx = (sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html")
    done = subprocess.run([*sphinx, DOCS, tmp_path / "site"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = (tmp_path / "site" / "reference.html").read_text()
    assert 'id="levada.Engine.register"' in shown, "members of the engine are in the reference"
