"""``levada machine show``: files, what comes with Levada, what is wrong."""

import json
from pathlib import Path

import pytest

from levada.cli.main import main


def test_a_machine_is_shown_as_tables_and_as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["machine", "show", "server-a"]) == 0
    assert "server A: 8 places, 144 cores" in capsys.readouterr().out
    assert main(["machine", "show", "server-a", "--json"]) == 0
    told = capsys.readouterr().out
    (tmp_path / "again.json").write_text(told)
    assert main(["machine", "show", str(tmp_path / "again.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(told)


def test_a_wrong_machine_is_a_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "m.yaml").write_text(
        "places: [a]\nclock: 1\nline: 64\ncores: 0\nlatency: [[0]]\nbandwidth: [[1]]\n"
    )
    assert main(["machine", "show", str(tmp_path / "m.yaml")]) == 2
    assert "m.yaml gives the place a 0 cores." in capsys.readouterr().err
    assert main(["machine", "show", str(tmp_path / "none.yaml")]) == 2
