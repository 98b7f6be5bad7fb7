"""On Spark, what is published beside the next epoch is what is published before it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from levada.engine.engine import Engine
from levada.runtime.publication import publication
from levada.testing.memory_sink import MemorySink

pytestmark = pytest.mark.spark
TEXT = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w { ?a :p ?n } }"""


class Telling(MemorySink):
    """Says on which threads it was given something."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set()

    def publish(self, *given: Any) -> list[str]:
        self.threads.add(threading.current_thread().name)
        return super().publish(*given)


@pytest.mark.parametrize("delay", [None, "1h"])
def test_what_is_published_beside_is_the_same(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay: str | None
) -> None:
    stream = tmp_path / "s.nt"
    stream.write_text("".join(f'_:b{k % 3} <http://e/p> "{k}" {70 * k} .\n' for k in range(200)))
    found = []
    for least in (1 << 60, 1):
        monkeypatch.setattr(publication, "MIN_ASYNC_BYTES", least)
        sink = Telling()
        with Engine(
            spark=spark, checkpoint=tmp_path / str(least), sink=sink, partitions=2, epoch_rows=50,
            seed=7, delay=delay,
        ) as engine:  # fmt: skip
            engine.stream("http://e/s", stream)
            engine.register(TEXT, name="a")
            engine.start(once=True)
            assert engine.await_end()
        overlaps = least == 1 and delay is None
        assert sink.threads == {"levada publication" if overlaps else "levada loop"}
        found.append(sink.lines)
    assert found[0] == found[1] != []
