"""The notebooks run from top to bottom in a kernel of their own, without Spark, and show what they
should. They are kept without outputs.
"""

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="pip install nbclient ipykernel")
nbformat = pytest.importorskip("nbformat", reason="pip install nbclient ipykernel")

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SHOWN = {
    "first-query.ipynb": (
        ("2024-03-01 01:00:00 UTC", "attic"),
        ("image/png",),
        ("True",),
        ("2024-03-02 00:00:00+00:00",),
        ("GRUOP cannot stand here.", "Did you mean GROUP?"),
    ),
    "pushed-rows.ipynb": (
        ("http://e/s1 ┆ 23",),
        ("high", "means"),
        ("[(20000, ['http://e/s1']), (40000, ['http://e/s2'])]",),
    ),
}
"""Of each notebook, what stands in the outputs, in this order."""


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_it_should(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    shown = [str(output) for cell in notebook.cells for output in cell.get("outputs", ())]
    place = iter(shown)
    for wanted in SHOWN[path.name]:
        assert any(all(part in output for part in wanted) for output in place), (wanted, shown)


def test_each_notebook_is_known() -> None:
    assert [path.name for path in NOTEBOOKS] == sorted(SHOWN)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    notebook: Any = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
