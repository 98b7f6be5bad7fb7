"""An engine from topics to topics, in a process of its own, that meets its fate at a step of its
own: a change of the disk, or something that it does in a transaction.

    python doomed.py FOLDER     world.json and fate.json are there; ends when all is delivered

At that step the engine is killed, or the broker is by whoever started it (the step waits for that:
the files ``there`` and ``on``), or both are. Before a broker goes, transactions are one after the
other, each to its markers (``committed.is_settled`` says why): so it goes between two, or in the
middle of one that is not committed.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from levada_kill import STEPS

from levada.connectors.sinks.kafka_sink import ANSWER, KafkaTarget
from levada.connectors.sinks.transactional_sink import Piece, Position
from levada.engine.engine import Engine
from support.kafka_consumer import is_settled

LOOKS = 500
"""How often one looks for markers. Those of others' transactions, which an engine before has left
open, come only when these are aborted.
"""
open_, write, produce = KafkaTarget.open, KafkaTarget.write, KafkaTarget._produce


class Fate:
    """``who``: engine, broker, both, or none; ``kind``: disk or topic; ``at``: which of these
    steps.
    """

    def __init__(self, folder: Path, who: str, kind: str, at: int) -> None:
        self.folder, self.who, self.kind, self.at = folder, who, kind, at
        self.steps = itertools.count(1)
        self.gate = threading.RLock()
        self.waits = who in ("broker", "both")

    def arm(self) -> None:
        """From now on steps count."""
        for name in STEPS if self.kind == "disk" else ():
            setattr(os, name, self.doomed(getattr(os, name)))

        def opening(target: KafkaTarget, known: Position | None) -> Position | None:
            with self.alone():
                return open_(target, known)

        def writing(target: KafkaTarget, piece: Piece) -> None:
            self.step("topic")
            with self.alone():
                write(target, piece)
                self.settle(target)
            self.step("topic")

        def producing(
            target: KafkaTarget,
            key: bytes | None,
            value: bytes | None,
            headers: list[tuple[str, bytes]],
        ) -> None:
            produce(target, key, value, headers)
            self.step("topic", target)

        for name, step in (("open", opening), ("write", writing), ("_produce", producing)):
            setattr(KafkaTarget, name, step)

    def doomed(self, call: Any) -> Any:
        """A change of the disk, as a step."""

        def step(*args: Any, **kwargs: Any) -> Any:
            self.step("disk")
            return call(*args, **kwargs)

        return step

    @contextmanager
    def alone(self) -> Iterator[None]:
        """As long as a broker is to go, one at a time has to do with transactions."""
        if self.waits:
            with self.gate:
                yield
        else:
            yield

    def settle(self, target: KafkaTarget) -> None:
        """Waits for the markers of a transaction."""
        looks = 0
        while self.waits and looks < LOOKS:
            if is_settled(target.config.servers, target.config.topic):
                return
            looks += 1

    def step(self, kind: str, target: KafkaTarget | None = None) -> None:
        """Counts a step; at the fatal one does what is to be done."""
        if kind != self.kind or next(self.steps) != self.at:
            return
        if target is not None:  # the broker has what is there of the transaction
            target._producer.flush(ANSWER)
        if self.waits:
            with self.gate:
                (self.folder / "there").touch()
                while not (self.folder / "on").exists():
                    time.sleep(0.005)
                self.waits = False
        if self.who in ("engine", "both"):
            os.kill(os.getpid(), signal.SIGKILL)


def run(folder: Path) -> None:
    """An engine from its start to where all is delivered; ``ends``: the streams end there."""
    world = json.loads((folder / "world.json").read_text())
    who, kind, at, ends = json.loads((folder / "fate.json").read_text())
    with Engine(
        spark=False, checkpoint=folder / "ck", epoch_rows=world["epoch_rows"],
        partitions=world["partitions"], seed=7, keep_results=False,
    ) as engine:  # fmt: skip
        for name, url, options in world["streams"]:
            engine.stream(name, url, **options)
        for path, graph in world["graphs"]:
            engine.static(path, graph)
        for name, text, dialect, options, url in world["queries"]:
            engine.register(text, name=name, dialect=dialect, **options).to(url)
        if who != "none":
            Fate(folder, who, kind, at).arm()
        engine.start(once=True, keep_open=not ends)
        engine.await_end()
        behind = [output for output in engine.status().outputs if output.pending_reports]
        assert not behind, f"all is delivered at the end: {behind}"


if __name__ == "__main__":
    run(Path(sys.argv[1]))
