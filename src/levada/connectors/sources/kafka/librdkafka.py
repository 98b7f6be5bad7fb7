"""How librdkafka is told what a stream says of its connection, and what it says of failures.

It logs nothing: what goes wrong is told by who asked. The password is looked up when a client is
made, and is in nothing that is printed or written.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from levada.connectors.config.kafka_config import KafkaConfig
from levada.errors import SourceError

_SASL = {"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"}


def library() -> ModuleType:
    """confluent_kafka; a ``SourceError`` that says how to get it."""
    try:
        import confluent_kafka.admin
    except ImportError as error:
        raise SourceError(
            "Kafka needs the package confluent-kafka.",
            hint="Say pip install 'levada[kafka]'.",
        ) from error
    module: ModuleType = confluent_kafka
    return module


def settings(config: KafkaConfig) -> dict[str, Any]:
    """What every client of a stream is made with. Raises ``SourceError`` for a secret that is not
    there.
    """
    secure = "sasl_" if config.sasl else ""
    options: dict[str, Any] = {
        "bootstrap.servers": config.servers,
        "client.id": "levada",
        "log_level": 0,
        "security.protocol": secure + ("ssl" if config.tls else "plaintext"),
        "reconnect.backoff.max.ms": 2000,
    }
    if config.sasl:
        options |= {
            "sasl.mechanism": _SASL[config.sasl],
            "sasl.username": config.user,
            "sasl.password": config.secret,
        }
    files = {
        "ssl.ca.location": config.ca,
        "ssl.certificate.location": config.cert,
        "ssl.key.location": config.key,
    }
    return options | {name: path for name, path in files.items() if path}


def error_text(error: Any) -> str:
    """What a KafkaError says, in a line without a dot; not which thread said it."""
    text = str(error.str()).splitlines()[0].strip().rstrip(".")
    return text.split("]: ", 1)[-1] or str(error.name())
