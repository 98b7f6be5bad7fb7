"""The driver of a started engine: what the epoch loop is told to do next, and when it is over.

    next   -> the plan for the queries as they are now, then the epoch that is due, if one is
    run    -> that epoch, to its publication
    over   -> everything that was to be read is read and published

The loop's thread asks and runs; users' threads change the ``Registry`` and wake it. An engine that
has not been started has none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from levada.engine.registry import Registry
from levada.errors import EngineError, LevadaError
from levada.runtime.driver.catalog import Catalog
from levada.runtime.driver.epoch import Epochs
from levada.runtime.driver.loop import Loop
from levada.runtime.driver.publication import Publication
from levada.runtime.driver.sourcing import Sourcing
from levada.runtime.driver.spools import Spools
from levada.runtime.driver.statics import Statics
from levada.runtime.local import Executor
from levada.runtime.store.checkpoint import Checkpoint
from levada.runtime.store.manifest import Intention, Manifest
from levada.streams.stream_config import StreamConfig

Tell = Callable[[Manifest], None]


@dataclass(frozen=True, slots=True)
class Tempo:
    """How epochs follow each other. ``interval``: the least time between the starts of two, ms;
    ``epoch_rows``: the most elements in one. ``once``: what is there is read and the streams end,
    unless they are to be kept open.
    """

    interval: int
    epoch_rows: int
    once: bool = False
    keep_open: bool = False


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a driver reads: the queries and streams, the static data, the spools of DataFrames."""

    registry: Registry
    statics: Statics
    spools: Spools


class Driver:
    """Runs the epochs of one engine on its checkpoint; ``tell`` is called with the manifest of each
    after its publication. ``executor`` is asked for once nothing speaks against a start.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        inputs: Inputs,
        tempo: Tempo,
        publication: Publication,
        *,
        executor: Callable[[], Executor],
        tell: Sequence[Tell] = (),
    ) -> None:
        self.began = time.monotonic()
        self.publication = publication
        self._registry, self._statics, self._spools = (
            inputs.registry,
            inputs.statics,
            inputs.spools,
        )
        self._tempo, self._tell = tempo, tell
        self._last_start = 0.0
        self._full = False  # the last epoch took so much that there may be a backlog
        streams = self._registry.streams
        configs = [streams[name] for name in checkpoint.ordered(streams)]
        self._spools.start(once=tempo.once)
        scratch = checkpoint.root / "scratch"
        sourcing = Sourcing(configs, scratch, once=tempo.once, keep_open=tempo.keep_open)
        self.note = self._check_ended(sourcing, checkpoint)
        self._catalog = Catalog(checkpoint, configs, self._statics.replaceable)
        self._statics.place()
        self.epochs = self._epochs_of(checkpoint, configs, sourcing, executor())
        self.loop = Loop(
            checkpoint.root / "intentions", self._next, self._run, last_intention=self.epochs.flush
        )

    def _epochs_of(
        self,
        checkpoint: Checkpoint,
        configs: Sequence[StreamConfig],
        sourcing: Sourcing,
        executor: Executor,
    ) -> Epochs:
        return Epochs(
            checkpoint,
            configs,
            self._statics,
            sourcing,
            executor,
            publish=self._publish,
            epoch_rows=self._tempo.epoch_rows,
            wall=_wall,
            due=self.publication.due,
        )

    def _check_ended(self, sourcing: Sourcing, checkpoint: Checkpoint) -> str:
        """A checkpoint whose streams have ended: what is missing is published; new data are
        refused, new queries told of.
        """
        last = checkpoint.last
        if last is None or not last.ended:
            return ""
        for name, source in sourcing.sources.items():
            source.check_grown(last.positions.get(name, {}))
        known = checkpoint.load_topology(last.plan)[1] if last.plan else {}
        queries = self._registry.queries
        new = [name for name, query in queries.items() if known.get(name) != query.identity]
        note = "This checkpoint had ended; its last results are published."
        if new:
            note += f" What it had not run before has no results: {', '.join(new)}."
        return note

    @property
    def last(self) -> Manifest:
        """The last manifest."""
        return self.epochs.last

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the epochs end; raises what made them fail."""
        ended = self.loop.await_end(timeout)
        failure = self.loop.failure
        if not ended or failure is None:
            return ended
        if isinstance(failure, LevadaError):
            raise failure
        epoch = self.last.epoch + 1
        raise EngineError(f"The engine stopped in epoch {epoch}: {failure}") from failure

    def _next(self, last: str | None) -> str | None:
        """The loop's question: what comes next? Under backlog at once, else not before the least
        interval is over.

        What was there to read is looked up after the plan: queries that came between the two would
        miss elements that came after them. Then the answer is dropped, and the question asked again
        with their plan.
        """
        self._spools.check()
        self._statics.reload()
        if self._registry.changed:
            self._replan()
        now = time.monotonic() * 1000
        hurries = self._tempo.once or self._full
        if not hurries and now - self._last_start < self._tempo.interval:
            return None
        intention = self.epochs.intend()
        if intention is None:
            if self._over():
                self.loop.request_stop()
            return None
        if self._registry.changed:
            return None
        self._last_start = now
        elements = sum(r.elements for r in intention.references)
        self._full = elements >= self._tempo.epoch_rows // 2
        return msgspec.json.encode(intention).decode()

    def _replan(self) -> None:
        """The plan for the queries as they are now. At the first time the open intention, if any,
        has been run.
        """
        registry, epochs = self._registry, self.epochs
        if epochs.last.ended:
            self._catalog.stand(registry.queries, epochs.last)
            return
        with registry.lock:
            plan = self._catalog.follow(registry.queries, registry.dropped, epochs.checkpoint.last)
            registry.changed = False
            registry.dropped.clear()
        if plan is not None:
            epochs.use(plan)
        elif epochs.plan is None:
            epochs.plan = self._catalog.plan(epochs.last.plan)

    def _over(self) -> bool:
        """Whether everything is read and published; only with ``once``, or if the run had ended."""
        last = self.last
        if last.ended or not self._tempo.once:
            return last.ended
        sourcing = self.epochs.sourcing
        return sourcing.keep_open and not sourcing.backlog(last.positions, last.streams)

    def _run(self, text: str) -> None:
        self.epochs.run(msgspec.json.decode(text, type=Intention))

    def _publish(self, manifest: Manifest) -> None:
        self.publication.publish(manifest)
        self._spools.forget(manifest.positions)
        for tell in list(self._tell):
            tell(manifest)


def _wall() -> int:
    return time.time_ns() // 1_000_000
