"""Configures librdkafka for a stream's connection, and describes its failures.

librdkafka logs nothing: the caller reports failures. The password is looked up when a client is
made, and is never printed or written.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from levada.connectors.config.kafka_config import KafkaConfig
from levada.core.distribution import install_command
from levada.errors import SourceError

_SASL = {"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"}


def library() -> ModuleType:
    """Imports confluent_kafka. Raises a ``SourceError`` that explains how to install it."""
    try:
        import confluent_kafka.admin
    except ImportError as error:
        raise SourceError(
            "Kafka needs the package confluent-kafka.",
            hint=f"Say {install_command('kafka')}.",
        ) from error
    module: ModuleType = confluent_kafka
    return module


def settings(config: KafkaConfig) -> dict[str, Any]:
    """Returns the settings of every client of a stream. Raises ``SourceError`` for a missing
    secret.
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
    """Returns the message of a KafkaError, in a line without a dot and without the name of the
    thread.
    """
    text = str(error.str()).splitlines()[0].strip().rstrip(".")
    return text.split("]: ", 1)[-1] or str(error.name())
