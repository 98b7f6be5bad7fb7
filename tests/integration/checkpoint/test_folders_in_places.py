"""A folder in the place of a file of a checkpoint, of whatever kind: a sentence with its path."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from levada.cli.main import main
from levada.engine.engine import Engine
from levada.engine.query_request import QueryRequest
from levada.errors import LevadaError
from levada.testing.stream_builders import lines, write_lines
from support.query_dsl import S, element

ELEMENTS = [element(250 * i, f"a{i % 5} p b{i % 3}", f"b{i % 3} q a{i % 2}") for i in range(30)]
QUERY = (
    f"PREFIX : <http://e/>\nSELECT ?a ?c FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT1S] "
    "WHERE { WINDOW :w { ?a :p ?b . ?b :q ?c } }"
)
UNREAD = {"pulse", "dead-letter", "late"}  # a mark that may be missing; letters to people


def run(root: Path, data: Path, *, keep_open: bool) -> None:
    with Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=8, partitions=2, seed=7, keep_results=False
    ) as engine:
        engine.stream(S, data)
        engine.register_all([QueryRequest(QUERY, "q")])
        engine.start(once=True, keep_open=keep_open)
        engine.await_end()


def kinds(checkpoint: Path) -> list[Path]:
    """A file of each kind, the newest; where old ones are deleted at a start also the oldest."""
    found: dict[str, list[Path]] = {}
    for path in sorted(p for p in checkpoint.rglob("*") if p.is_file()):
        name = path.relative_to(checkpoint)
        plain = "".join(c for c in name.name if not c.isdigit()).partition("-")[0]
        key = str(name) if len(name.parts) == 1 else f"{name.parts[0]}/{plain + name.suffix}"
        found.setdefault(key, []).append(name)
    old = [own[0] for key, own in found.items() if key.startswith(("commits", "state"))]
    return [*dict.fromkeys([*(own[-1] for own in found.values()), *old])]


def test_a_folder_in_the_place_of_a_file_is_told_by_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[Any]
) -> None:
    whole = tmp_path / "whole"
    data = tmp_path / "s"
    data.mkdir()
    (data / "0.nt").write_text("".join(f"{line}\n" for line in [*lines(ELEMENTS[:22]), "none"]))
    run(whole, data, keep_open=True)
    write_lines(data / "1.nt", ELEMENTS[22:])
    names = [name for name in kinds(whole / "ck") if name.parts[0] not in UNREAD]
    folders = {name.parts[0] for name in names}
    assert folders >= {"commits", "intentions", "manifests", "plans", "results", "side", "state"}
    for name in names:
        root = tmp_path / name.name
        shutil.copytree(whole, root)
        (root / "ck" / name).unlink()
        (root / "ck" / name).mkdir()
        with pytest.raises(LevadaError) as caught:
            run(root, data, keep_open=False)
            pytest.fail(f"{name} is a folder, and nobody says so")
        assert str(root / "ck" / name) in str(caught.value), f"{name}: {caught.value}"
        for command in ("verify", "rollback"):
            assert main([command, str(root / "ck")]) in (0, 1, 2), f"{command} at {name}"
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        shutil.rmtree(root)
