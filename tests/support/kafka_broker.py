"""A broker of Kafka for tests and benchmarks: its jars come from Maven into Levada's cache folder,
once; it listens on free ports of this host, and is ended by its process id.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from levada.core.cache_folder import cache_folder
from levada.errors import JavaError
from levada.runtime.spark.spark_settings import find_java
from support.free_ports import free_port
from support.polling import PATIENCE, until

VERSION = "4.3.1"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>levada</groupId><artifactId>broker</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId>
<version>1.7.36</version></dependency></dependencies></project>
"""
_JAVA = [
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xmx400m",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
]
_SASL = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="{user}" password="{password}" user_{user}="{password}";'
)
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def jars(name: str = "kafka", artifact: str = "kafka_2.13") -> Path:
    """The folder of the broker's jars, or of its tools'; skips the test, and says why, if Maven or
    Java cannot be reached.
    """
    folder = cache_folder() / f"{name}-{VERSION}"
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None:
        pytest.skip("Kafka is NOT tested: there is no Maven (mvn) to fetch the broker with.")
    part = folder.with_name(f"{folder.name}.{os.getpid()}")
    part.mkdir(parents=True)
    (part / "pom.xml").write_text(_POM.format(artifact=artifact, version=VERSION))
    run = subprocess.run(
        ["mvn", "-q", "-B", "-ntp", "dependency:copy-dependencies", f"-DoutputDirectory={part}"],
        cwd=part, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    if run.returncode:
        shutil.rmtree(part)
        pytest.skip(f"Kafka is NOT tested: Maven gives no broker: {run.stdout[-500:]}")
    try:
        part.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(part)
    return folder


def _drawn() -> str:
    """The name of a cluster."""
    first, *others = uuid.uuid4().bytes
    drawn = bytes([first & 0x7F, *others])  # as a text it does not begin like an option
    return base64.urlsafe_b64encode(drawn).decode().rstrip("=")


class Broker:
    """One broker. ``sasl``: user and password of a further listener with SASL PLAIN; ``tls``: of
    one with TLS and every login there is, a folder with its own key and certificate
    (``store.pem``) and whom it believes (``ca.pem``); ``beside``: the first of the brokers, which
    is their controller, if it is the second; ``proxy``: is given the port of a further listener and
    gives the port that the broker names to clients in its place.
    """

    def __init__(
        self,
        folder: Path,
        sasl: tuple[str, str] | None = None,
        settings: Mapping[str, str] = {},
        *,
        tls: Path | None = None,
        beside: Broker | None = None,
        proxy: Callable[[int], int] | None = None,
    ) -> None:
        self.jars = jars()
        try:
            self.java = str(find_java().path / "bin" / "java")
        except JavaError as error:
            pytest.skip(f"Kafka is NOT tested: {error}")
        self.folder = folder
        self.port, self.control, self.secured = free_port(), free_port(), free_port()
        self.server = f"127.0.0.1:{self.port}"
        self.behind = free_port()
        self._proxy = None if proxy is None else proxy(self.behind)
        self.admin = AdminClient({"bootstrap.servers": self.server, "log_level": 0})
        self.process: subprocess.Popen[bytes] | None = None
        if beside is None:
            self.identity, second = _drawn(), {}
        else:
            self.identity, second = beside.identity, self._second(beside)
        self._write(sasl, {**settings, **second}, tls)
        users = []
        if sasl is not None and tls is not None:
            for mechanism in _MECHANISMS:
                users += ["--add-scram", f"{mechanism}=[name={sasl[0]},password={sasl[1]}]"]
        self._run(
            "kafka.tools.StorageTool", "format", "-t", self.identity, "-c", self._settings, *users
        )
        self.start()

    def _second(self, first: Broker) -> dict[str, str]:
        """What a further broker says otherwise."""
        return {
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": f"1@127.0.0.1:{first.control}",
            "listeners": f"PLAINTEXT://{self.server}",
        }

    def _write(
        self, sasl: tuple[str, str] | None, settings: Mapping[str, str], tls: Path | None
    ) -> None:
        listeners = f"PLAINTEXT://{self.server}"
        protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
        more = dict(settings)
        if sasl is not None:
            kind = "SASL_PLAINTEXT" if tls is None else "SASL_SSL"
            listeners += f",{kind}://127.0.0.1:{self.secured}"
            protocols += f",{kind}:{kind}"
            user, password = sasl
            mechanisms = ("PLAIN", *(_MECHANISMS if tls is not None else ()))
            more["sasl.enabled.mechanisms"] = ",".join(mechanisms)
            of = f"listener.name.{kind.lower()}"
            more[f"{of}.plain.sasl.jaas.config"] = _SASL.format(user=user, password=password)
            for each in mechanisms[1:]:
                more[f"{of}.{each.lower()}.sasl.jaas.config"] = _SCRAM
        if tls is not None:
            more["ssl.keystore.type"] = more["ssl.truststore.type"] = "PEM"
            more["ssl.keystore.location"] = str(tls / "store.pem")
            more["ssl.truststore.location"] = str(tls / "ca.pem")
            more["listener.name.sasl_ssl.ssl.client.auth"] = "required"
        advertised = listeners
        if self._proxy is not None:
            listeners += f",PROXIED://127.0.0.1:{self.behind}"
            advertised += f",PROXIED://127.0.0.1:{self._proxy}"
            protocols += ",PROXIED:PLAINTEXT"
        given = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.control}",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self.control}",
            "advertised.listeners": advertised,
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": protocols,
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "500",
            "auto.create.topics.enable": "false",
            "log.retention.ms": "-1",  # messages of 1970 are old
            "message.max.bytes": str(64 << 20),
            **more,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self._settings = str(self.folder / "server.properties")
        Path(self._settings).write_text("".join(f"{k}={v}\n" for k, v in given.items()))

    def _command(self, name: str, *arguments: str) -> list[str]:
        return [self.java, *_JAVA, "-cp", f"{self.jars}/*", name, *arguments]

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            self._command(name, *arguments), capture_output=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command("kafka.Kafka", self._settings), stdout=log, stderr=log
            )
        until(self._answers, "an answer of the broker", step=0.2)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "broker.log").read_text()[-2000:]
        try:
            self.admin.list_topics(timeout=2)
        except Exception:
            return False
        return True

    def stop(self, sign: int = signal.SIGTERM) -> None:
        """Ends it, and waits."""
        if self.process is not None:
            self.process.send_signal(sign)
            self.process.wait(PATIENCE)
            self.process = None

    def topic(self, name: str, partitions: int = 1, **config: str) -> str:
        """Makes a topic, and waits until the broker tells clients of it; its URL."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        made = NewTopic(name, partitions, 1, config=settings)
        self.admin.create_topics([made])[name].result(PATIENCE)
        until(lambda: name in self.admin.list_topics(timeout=PATIENCE).topics)
        return self.url(name)

    def delete_topics(self) -> None:
        """Deletes all topics but the broker's, and waits until it tells clients of none."""

        def topics() -> list[str]:
            known = self.admin.list_topics(timeout=PATIENCE).topics
            return [name for name in known if not name.startswith("__")]

        for deleted in self.admin.delete_topics(topics()).values() if topics() else ():
            deleted.result(PATIENCE)
        until(lambda: not topics())

    def set(self, topic: str, name: str, value: str) -> None:
        """Another setting of a topic."""
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE)

    def url(self, name: str) -> str:
        return f"kafka://{self.server}/{name}"

    def producer(self, **settings: Any) -> Producer:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        return Producer({"bootstrap.servers": self.server, "log_level": 0, **given})

    def send(
        self, topic: str, values: Iterable[bytes | str | None], partition: int = 0,
        times: Sequence[int] | None = None, **settings: Any
    ) -> None:  # fmt: skip
        """Writes messages to a partition, in order, also where the topic is so new that its first
        ones are sent twice.
        """
        producer = self.producer(enable_idempotence=True, **settings)
        for k, value in enumerate(values):
            more: dict[str, Any] = {} if times is None else {"timestamp": times[k]}
            while True:
                try:
                    producer.produce(topic, value, partition=partition, **more)
                    break
                except BufferError:  # it makes them faster than a busy broker takes them
                    producer.poll(1)
            producer.poll(0)
        assert producer.flush(PATIENCE) == 0

    def tool(self, name: str, *arguments: str, given: str | None = None) -> str:
        """What one of Kafka's own tools prints; ``given`` is its input."""
        tools = jars("kafka-tools", "kafka-tools")
        command = [self.java, *_JAVA, "-cp", f"{tools}/*", f"org.apache.kafka.tools.{name}"]
        done = subprocess.run(
            [*command, *arguments], input=given, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def ends(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """The first offset, and the one behind the last."""
        consumer = Consumer({"bootstrap.servers": self.server, "group.id": "test", "log_level": 0})
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 120)
            return low, high
        finally:
            consumer.close()
