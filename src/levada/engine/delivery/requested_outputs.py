"""The outputs of requests, as recorded in the ledger of a checkpoint.

An output begins and ends with its query, in the same write of the ledger, so no crash separates
them. It stays in the ledger until it has all reports of its query. The ledger has URL and options
unchanged, without passwords: ``env:NAME`` or ``file:PATH`` names the place of a password, which the
engine's process reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.checkpoint.manifest import Manifest
from levada.checkpoint.request_files import Ledger, OutputSpec, Sent
from levada.core.event_time import MAX
from levada.engine.delivery.delivery_manager import Deliveries, Shape
from levada.runtime.publication.registered_query import Registered

Kept = tuple[list[Sent], list[tuple[Shape, Sent]], list[Sent]]


class Requested:
    """The outputs of a ledger, and their changes for the running engine."""

    def __init__(self, ledger: Ledger, deliveries: Deliveries) -> None:
        self._ledger, self._deliveries = ledger, deliveries
        self._new: list[tuple[Shape, Sent]] = []
        self._ended: list[Sent] = []

    @property
    def restore_point(self) -> Kept:
        """Returns the state to restore if the request that changes it is refused."""
        return self._ledger.outputs, self._new, self._ended

    @restore_point.setter
    def restore_point(self, before: Kept) -> None:
        self._ledger.outputs, self._new, self._ended = before

    def check(self, query: Registered, to: Sequence[OutputSpec]) -> None:
        """Checks that the query's results can go to the outputs. Raises ``UsageError``."""
        self._deliveries.check(Shape.from_query(query), [(one.url, one.options) for one in to])

    def add(self, query: Registered, to: Sequence[OutputSpec], last: Manifest) -> None:
        """Records the outputs of a query that was added after an epoch."""
        for one in to:
            sent = Sent(query.name, one, last.epoch)
            self._ledger.outputs = [*self._ledger.outputs, sent]
            self._new = [*self._new, (Shape.from_query(query), sent)]

    def end(self, name: str, epoch: int) -> list[str]:
        """Ends the outputs of a query that was dropped after an epoch. Returns their URLs without
        secrets.
        """
        urls, kept = [], []
        for sent in self._ledger.outputs:
            if sent.query == name and sent.last_epoch == MAX:
                ended = msgspec.structs.replace(sent, last_epoch=epoch)
                urls.append(self._deliveries.display_url(sent))
                self._new = [new for new in self._new if new[1] is not sent]
                if sent.after_epoch == epoch:
                    continue  # no epoch has had it
                self._ended = [*self._ended, ended]
                sent = ended
            kept.append(sent)
        self._ledger.outputs = kept
        return urls

    def settle(self) -> bool:
        """Removes finished outputs from the ledger. Returns whether there were any."""
        over = self._deliveries.take_finished()
        left = [s for s in self._ledger.outputs if not any(_is_same(s, one) for one in over)]
        changed = len(left) < len(self._ledger.outputs)
        self._ledger.outputs = left
        return changed

    def follow(self) -> None:
        """Begins and ends outputs after the ledger was written durably."""
        new, ended, self._new, self._ended = self._new, self._ended, [], []
        for shape, sent in new:
            self._deliveries.ask(shape, sent)
        for sent in ended:
            self._deliveries.end(sent)


def _is_same(one: Sent, other: Sent) -> bool:
    return (one.query, one.output, one.after_epoch) == (
        other.query,
        other.output,
        other.after_epoch,
    )
