"""Checkpoints with damaged, lost and foreign files: the next run gives the results of a sound one,
or a sentence; never other results.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mutate import cases, mutated

from levada.checkpoint.epoch_context import cached_plan, load_setup
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.errors import LevadaError
from levada.runtime.epoch_pipeline import EpochRunner

ERROR = re.compile("[a-z]Error|Traceback|object has no attribute")
XSD = "<http://www.w3.org/2001/XMLSchema#"
QUERIES = {
    "beside": """PREFIX : <http://e/> SELECT ?a ?n ?m \
FROM NAMED WINDOW :w ON :S [RANGE PT3S STEP PT1S]
FROM NAMED WINDOW :v ON :T [RANGE PT2S STEP PT1S] \
WHERE { WINDOW :w { ?a :p ?n } OPTIONAL { WINDOW :v { ?a :q ?m } } \
GRAPH :g { ?a :r ?z } }""",
    "sum": """PREFIX : <http://e/> SELECT ?a (SUM(?n) AS ?s) FROM NAMED WINDOW :w ON :S [RANGE PT4S]
WHERE { WINDOW :w { ?a :p ?n } } GROUP BY ?a""",
    "last": "PREFIX : <http://e/> SELECT ?a ?n FROM NAMED WINDOW :w ON :S [TRIPLES 5] WHERE { "
        "WINDOW :w { ?a :p ?n } }",
}  # fmt: skip


class DiedError(Exception):
    """What the run that makes the checkpoint sees in place of its end."""


def write(folder: Path) -> None:
    def line(i: int, p: str, late: int = 0) -> str:
        return f'<http://e/a{i % 4}> <http://e/{p}> "{i}"^^{XSD}integer> {300 * i - late} .\n'

    (folder / "s.nt").write_text(
        "".join(line(i, "p", 3000 * (i % 17 == 9)) for i in range(60)) + "x\n"
    )
    (folder / "t.nt").write_text("".join(line(i, "q") for i in range(60)))
    (folder / "g.nt").write_text(
        "".join(f"<http://e/a{i}> <http://e/r> <http://e/z> .\n" for i in range(3))
    )


def run(data: Path, root: Path) -> None:
    """From the checkpoint below ``root`` to the end, results beside it."""
    cached_plan.cache_clear()
    load_setup.cache_clear()
    sink = FileSink(root / "out", Format.NDJSON)
    with Engine(spark=False, checkpoint=root / "ck", letters=root / "out", sink=sink,
                epoch_rows=11, partitions=1, keep_results=False) as engine:  # fmt: skip
        engine.stream("http://e/S", data / "s.nt")
        engine.stream("http://e/T", data / "t.nt", lateness="2s")
        engine.static(str(data / "g.nt"), graph="http://e/g", reload=True)
        for name, text in QUERIES.items():
            engine.register(text, name=name)
        engine.start(once=True)
        engine.await_end()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with data, a checkpoint that died in mid-run, and what was published until then."""
    folder = tmp_path_factory.mktemp("made")
    write(folder)
    run_epoch = EpochRunner.run

    def die(self: EpochRunner, intention: Any) -> None:
        if intention.epoch == 7:
            raise DiedError
        run_epoch(self, intention)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochRunner, "run", die)
        with pytest.raises(LevadaError, match="stopped in epoch 7"):
            run(folder, folder)
    yield folder
    shutil.rmtree(folder)


def copied(made: Path, to: Path) -> Path:
    for part in ("ck", "out"):
        shutil.copytree(made / part, to / part)
    return to


def published(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted((root / "out").rglob("*.ndjson"))
    }


def damage(seed: int, name: str, ck: Path) -> str:
    """Damages one or two files, or takes one away, or puts one in another's place."""
    rng = random.Random(f"{seed} {name}")
    files = sorted(str(p.relative_to(ck)) for p in ck.rglob("*") if p.is_file())
    # names of state files are drawn: what is chosen must not go by them
    files.sort(key=lambda n: (Path(n).parent.name, (ck / n).stat().st_size))
    done = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        path = ck / rng.choice(files)
        how = rng.choice(("mutate", "mutate", "mutate", "delete", "swap", "empty", "zero"))
        data = path.read_bytes() if path.exists() else b""
        match how:
            case "mutate":
                path.write_bytes(mutated(seed, name, data))
            case "delete":
                path.unlink(missing_ok=True)
            case "swap":
                other = ck / rng.choice(files)
                path.write_bytes(other.read_bytes() if other.exists() else b"")
            case "empty":
                path.write_bytes(b"")
            case "zero":
                path.write_bytes(bytes(len(data)))
        done.append(f"{how} {path.relative_to(ck)}")
    return ", ".join(done)


@pytest.mark.long
def test_damaged_checkpoints(made: Path, tmp_path: Path, seed: int) -> None:
    right_root = copied(made, tmp_path / "right")
    run(made, right_root)
    right = published(right_root)
    assert any("beside/" in name for name in right)
    assert any("late/" in name for name in right)
    refused = 0
    for k in range(cases("checkpoints", 1)):
        root = copied(made, tmp_path / str(k))
        what = damage(seed, str(k), root / "ck")
        try:
            refused += is_refused(made, root, right)
        except BaseException as error:
            error.add_note(f"LEVADA_SEED={seed}, case {k}: {what}")
            raise
        shutil.rmtree(root)
    assert refused, "some of it is found"


def is_refused(made: Path, root: Path, right: dict[str, bytes]) -> bool:
    """Whether the run ends with a sentence; what it has published is right in any case."""
    try:
        run(made, root)
    except LevadaError as error:
        assert str(error).rstrip()[-1] in ".?", error
        assert not ERROR.search(str(error)), error
        assert all(right.get(name) == data for name, data in published(root).items())
        return True
    found = published(root)
    assert found == right, sorted(set(found) ^ set(right))
    return False
