"""``Engine.stop``: what has been read is said to its end, also by those who read what
others make.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levada.connectors.serialization.serialize import Batch
from levada.engine.engine import Engine
from levada.testing import MemorySink
from support.polling import PATIENCE

PREFIX = "PREFIX : <http://e/>\n"
WINDOW = "FROM NAMED WINDOW :w ON :{} [RANGE PT2S STEP PT2S]"


def maker(name: str, stream: str) -> str:
    return (
        f"{PREFIX}REGISTER RSTREAM :{name} AS CONSTRUCT {{ ?s :p ?v }}\n{WINDOW.format(stream)}\n"
        "WHERE { WINDOW :w { ?s :p ?v } }"
    )


READER = f"{PREFIX}SELECT ?v\n{WINDOW.format('twice')}\nWHERE {{ WINDOW :w {{ ?s :p ?v }} }}"


class StoppingSink(MemorySink):
    """Asks the engine to stop when the first maker has said something."""

    engine: Engine

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        if query == "once":
            assert self.engine._driver is not None
            self.engine._driver.loop.request_stop()
        return super().publish(query, variables, epoch, batch)


def test_readers_say_what_follows_from_what_was_made(tmp_path: Path) -> None:
    """The maker's reports come with one epoch, those of its readers with the next ones."""
    path = tmp_path / "s.nt"
    path.write_text(
        "".join(f"<http://e/a> <http://e/p> <http://e/{t}> {t} .\n" for t in (1000, 9000))
    )
    sink = StoppingSink()
    with Engine(spark=False, checkpoint=tmp_path / "checkpoint", sink=sink) as engine:
        sink.engine = engine
        engine.stream("s", path)
        engine.register(maker("once", "s"), name="once")
        engine.register(maker("twice", "once"), name="twice")
        engine.register(READER, name="reader")
        engine.start()
        assert engine.await_end(PATIENCE)
    said = {name: [r.time for r in reports] for name, reports in sink.reports.items()}
    assert said == {"once": [2000], "twice": [4000], "reader": [6000]}


COUNTS = (
    f"{PREFIX}SELECT (COUNT(*) AS ?n)\n{WINDOW.format('s')}\nWHERE {{ WINDOW :w {{ ?s :p ?v }} }}"
)


def counted(root: Path, sink: MemorySink, *, again: bool = False) -> Engine:
    """An engine that counts; ``again``: behind its first epoch the query is taken out and comes
    again, and the engine is stopped before another one.
    """
    engine = Engine(spark=False, checkpoint=root / "checkpoint", sink=sink)
    engine.stream("s", root / "s.nt")
    engine.register(COUNTS, name="counts")

    def come_again() -> None:
        engine.unregister("counts")
        engine.register(COUNTS, name="counts")
        assert engine._driver is not None
        engine._driver.loop.request_stop()

    if again:
        engine._on_epoch(lambda manifest: come_again() if manifest.epoch == 1 else None)
    return engine


def test_a_query_that_came_again_before_a_stop_is_the_new_one_afterwards(tmp_path: Path) -> None:
    """It counts what came after it, at the next start, too."""
    path, sink = tmp_path / "s.nt", MemorySink()
    path.write_text("".join(f"<e:a> <http://e/p> <e:{t}> {t} .\n" for t in (1000, 1200)))
    with counted(tmp_path, sink, again=True) as engine:
        engine.start()
        assert engine.await_end(PATIENCE)
    with path.open("a") as file:
        file.write("".join(f"<e:a> <http://e/p> <e:{t}> {t} .\n" for t in (1300, 3000)))
    with counted(tmp_path, sink) as engine:
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    first = sink.reports["counts"][0]
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert (first.time, list(first.solutions)) == (2000, [frozenset({("n", one)})])
