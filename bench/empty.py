"""Epochs without data, on purpose: what an idle decision, a registration or a timer makes of an
epoch, without waiting for one.

The engine's own decision is replaced for a number of times by an intention that reads nothing. All
that follows is the engine's: Spark's offset log, one job through all stages of the plan on every
partition, the manifest, the publication.
"""

from __future__ import annotations

import math

from levada import Engine
from levada.checkpoint.manifest import EpochIntent, Manifest, StreamRecord
from levada.runtime.driver import derived_streams


def empty_after_first(engine: Engine, times: float = math.inf) -> None:
    """After its first epoch, ``times`` epochs of the engine read nothing; the data wait."""

    def first(manifest: Manifest) -> None:
        if manifest.epoch == 1:
            _force(engine, times)

    engine._on_epoch(first)


def _force(engine: Engine, times: float) -> None:
    assert engine._driver is not None, "the engine has been started"
    epochs = engine._driver.epochs
    decide = epochs.decide
    left = times

    def intend(*, flush: bool = False) -> EpochIntent | None:
        nonlocal left
        if flush:  # the loop asks for more until there is nothing
            return None
        if left <= 0:
            return decide(flush=flush)
        left -= 1
        last, plan = epochs.last, epochs.plan
        assert plan is not None, "a started engine has a plan"
        open_ = [
            last.streams.get(c.name, StreamRecord()).has_ended for c in epochs.sourcing.configs
        ]
        given, finished = epochs.sourcing.states(
            [], last.positions, last.streams, open_, frozenset()
        )
        states = [
            given[name] if name in given else derived_streams.state(name, plan, last)
            for name in plan.streams
        ]
        fresh = epochs.plan_is_new
        return EpochIntent(
            last.epoch + 1,
            plan.version,
            epochs.wall(),
            [],
            last.positions,
            states,
            finished,
            fresh,
            setup=epochs.setup(),
            group_table_version=last.group_table_version,
        )

    epochs.decide = intend  # type: ignore[method-assign]
