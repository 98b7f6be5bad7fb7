"""Sound files in the place of others, and files that are missing: a sentence, never other
results.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.state_files import map_
from levada.checkpoint.verify import verify
from levada.errors import CheckpointError
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, element, query, run

QUERY = query("SELECT ?a (SUM(?n) AS ?m)", "WINDOW :w { ?a :p ?n }", tail=" GROUP BY ?a",
              name="sum",
              windows={"w": (S, Clause("range", 4000))})  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint that died in its seventh epoch."""
    write_lines(tmp_path / "s.nt", [element(300 * i, f"a{i % 5} p {i}") for i in range(60)])
    run_epoch = EpochRunner.run

    def die(self: EpochRunner, intention: object) -> None:
        if intention.epoch == 7:  # type: ignore[attr-defined]
            raise ZeroDivisionError
        run_epoch(self, intention)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(EpochRunner, "run", die)
        with pytest.raises(Exception, match="stopped in epoch 7"):
            start(tmp_path)
    return tmp_path


def start(folder: Path) -> None:
    run(folder / "ck", {S: {"path": folder / "s.nt"}}, [QUERY], epoch_rows=5, partitions=2)


def test_a_state_file_in_the_place_of_another(folder: Path) -> None:
    files = sorted((folder / "ck" / "state").iterdir())
    assert len(files) > 2
    for i, path in enumerate(files):
        data = path.read_bytes()
        path.write_bytes(files[i - 1].read_bytes())
        with pytest.raises(
            CheckpointError, match=rf"{path.name} cannot be read: it is not what was"
        ):
            map_(str(folder / "ck"), f"state/{path.name}")
        path.write_bytes(data)
        map_(str(folder / "ck"), f"state/{path.name}")


def test_verify_tells_of_it(folder: Path) -> None:
    found = [f for f in verify(folder / "ck").files if f.item.kind == "state"]
    one, other = (folder / "ck" / found[i].item.name for i in (0, -1))
    one.write_bytes(other.read_bytes())
    assert one.name in [Path(f.item.name).name for f in verify(folder / "ck").damaged]


def test_an_intention_that_is_none(folder: Path) -> None:
    manifest = folder / "ck" / "manifests" / "6"
    (folder / "ck" / "intentions" / "open").write_bytes(manifest.read_bytes())
    (folder / "ck" / "intentions" / "notice").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="intentions/open cannot be read: it is no intention"):
        start(folder)


def test_an_intention_whose_manifest_is_missing(folder: Path) -> None:
    checkpoint = Checkpoint(folder / "ck", partitions=2)
    checkpoint.check_follows(7)
    with pytest.raises(CheckpointError, match="manifests/7 cannot be read: it is missing"):
        checkpoint.check_follows(8)
    checkpoint.close()
    newest = max((folder / "ck" / "commits").iterdir(), key=lambda p: int(p.name))
    newest.unlink()  # the takeover by which it was opened
    newest = max((folder / "ck" / "commits").iterdir(), key=lambda p: int(p.name))
    newest.unlink()
    with pytest.raises(CheckpointError, match=r"ck/commits cannot .*: the commit of epoch 6 is mi"):
        start(folder)
