"""Data, paths and names that look like a task's error are text: nothing in them is run."""

import re
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from support.hostile_texts import markers

pytestmark = pytest.mark.spark
QUERY = """PREFIX : <http://e/>
SELECT ?a ?b FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT10S STEP PT10S]
WHERE { WINDOW :w { ?a :t ?b ; :u ?c } }"""


def element(subject: str, time: int) -> str:
    return "".join(f'<{subject}> <http://e/{p}> "1" {time} .\n' for p in "tu")


@pytest.mark.parametrize("number", [0, 1, 3])
def test_hostile_subjects_and_files_run_nothing(tmp_path: Path, spark: Any, number: int) -> None:
    """The subject comes in two elements of a stream that is declared closed by element, so the
    engine quotes it and the file.
    """
    marker = markers(tmp_path / "ran")[number].replace("/", "_").replace("\0", "0")
    subject = "http://e/" + re.sub(r"[^\w:=+.,-]", "_", marker)
    (tmp_path / "in").mkdir()
    lines = [element(f"http://e/s{i}", 1000 + i) for i in range(60)]
    lines[10:10], lines[50:50] = [element(subject, 1010)], [element(subject, 1050)]
    (tmp_path / "in" / f"{marker[:60]}.nt").write_text("".join(lines))
    with Engine(spark=spark, checkpoint=tmp_path / "ck", epoch_rows=500, partitions=2) as engine:
        engine.stream(
            "http://e/s", tmp_path / "in", format="nt", element="subject", closed="element"
        )
        engine.register(QUERY, name="q")
        with pytest.warns(UserWarning, match="is not closed by element") as warned:
            engine.start(once=True)
            engine.await_end()
    assert any(subject in str(each.message) for each in warned)
    assert not (tmp_path / "ran").exists()
