"""Parses the outputs of a query's reports besides files: a URL and options, as users write them.

    kafka://HOST:PORT[,HOST:PORT...]/TOPIC    format, tls, ca, cert, key, sasl, user, password
    postgresql://[USER@]HOST[:PORT]/DATABASE  table, as (changes, state), key, password
    delta://PATH, delta://s3://BUCKET/PATH    as, key, columns, datatypes, every, new_columns

All accept ``lost=stop|skip``, for reports that were dropped before they were delivered. A password
is a reference (``connectors.config.secret_reference``). Faults are reported before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from levada.connectors.config.kafka_config import hint_of
from levada.connectors.config.postgres_url import SCHEMES as POSTGRES
from levada.connectors.sinks.delta_sink import SCHEME as DELTA
from levada.connectors.sinks.delta_sink import DeltaTarget
from levada.connectors.sinks.kafka_sink import SCHEME as KAFKA
from levada.connectors.sinks.kafka_sink import KafkaTarget
from levada.connectors.sinks.postgres_sink import PostgresTarget
from levada.connectors.sinks.transactional_sink import Target
from levada.core.frozen import frozen
from levada.errors import UsageError

Make = Callable[[str, str, Mapping[str, Any], str], Target]
_MAKERS: dict[str, Make] = {
    KAFKA: KafkaTarget.from_url,
    **dict.fromkeys(POSTGRES, PostgresTarget.from_url),
    DELTA: DeltaTarget.from_url,
}
OPTIONS: dict[str, tuple[str, ...]] = {
    KAFKA: KafkaTarget.OPTIONS,
    **dict.fromkeys(POSTGRES, PostgresTarget.OPTIONS),
    DELTA: DeltaTarget.OPTIONS,
}


@frozen
class Destination:
    """A URL and its options.

    >>> Destination("kafka://a:9092/hot", {"format": "csv"}).target("hot", "").name
    'kafka://a:9092/hot'
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def target(self, query: str, owner: str) -> Target:
        """Makes the target of a query's reports; ``owner`` is the checkpoint's id. Does not
        connect. Raises ``UsageError``.
        """
        scheme = next((s for s in _MAKERS if self.url.startswith(s)), None)
        if scheme is None:
            known = ", ".join(f"{s}.." for s in (KAFKA, POSTGRES[0], DELTA))
            raise UsageError(
                f"The results of {query} cannot go to {self.url.partition('://')[0]}..: there is "
                "no such target.",
                hint=f"Say {known}; for files there is out.",
            )
        for key in self.options:
            if key not in OPTIONS[scheme]:
                raise UsageError(
                    f"The output of {query} has no option {key}.",
                    hint=hint_of(key, OPTIONS[scheme]),
                )
        return _MAKERS[scheme](query, self.url, self.options, owner)
