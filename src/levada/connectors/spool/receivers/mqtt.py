"""Receives topics of MQTT (3.1.1 and 5) in a persistent session. Messages are acknowledged when
they are durable.

The client's id depends on the checkpoint, the stream and its filter: so a later engine finds its
session, with the messages received meanwhile. The receiver subscribes unless the session exists and
its subscription was confirmed once (the file ``subscribed``), so retained messages arrive once. An
acknowledgement belongs to the connection of its message: over another connection the broker sends
unacknowledged messages again. A client cannot recognize a repeated message (its packet number may
be that of another one by then, with equal content), so it is taken again: at least once, as QoS 1
promises. The password is never printed or written.
"""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import xxhash

from levada.connectors.sources.file_errors import reason
from levada.connectors.spool.feed_spool import FeedSpool
from levada.connectors.spool.message_log import Message
from levada.connectors.spool.receivers.pull_loop import tls_of
from levada.core.checkpoint_files import create
from levada.core.clock import CLOCK
from levada.core.distribution import install_command
from levada.errors import SourceError

FIRST_RETRY_PAUSE, MAX_RETRY_PAUSE = 1, 32  # s between two attempts
ALIVE = 30  # s of silence after which the broker is pinged
FOREVER = 0xFFFFFFFF  # s that the session lasts, if the broker allows it
BRIEFLY = 600  # s, for a temporary checkpoint
MARK = "subscribed"


class MqttReceiver:
    """One client of a broker."""

    def __init__(self, line: FeedSpool) -> None:
        self._line, self._feed = line, line.feed
        self._paho = _library()
        self._lock = threading.Lock()
        self._connection = 0  # the number of the connection; 0: none
        self._made = 0
        self._refused = False
        self._identity = f"{self._feed.topic}\0{self._feed.qos}\0{line.identity}\0{line.stream}"
        self._mark = line.folder / MARK
        self._client = self._made_client()

    def start(self) -> None:
        """Connects on the library's thread."""
        feed = self._feed
        more: dict[str, Any] = {}
        if feed.version == "5":
            properties = self._paho.Properties(self._paho.PacketTypes.CONNECT)
            properties.SessionExpiryInterval = FOREVER if self._line.kept else BRIEFLY
            more = {"properties": properties, "clean_start": False}
        self._client.connect_async(feed.host.strip("[]"), feed.port, keepalive=ALIVE, **more)
        self._client.loop_start()

    def acknowledge(self, messages: list[Message]) -> None:
        """Acknowledges messages of the present connection."""
        with self._lock:
            for message in messages:
                connection, mid, qos = message.receipt
                if qos and connection == self._connection:
                    self._client.ack(mid, qos)

    def stop(self) -> None:
        """Disconnects after the pending acknowledgements, and leaves the session."""
        self._client.disconnect()
        self._client.loop_stop()

    def _made_client(self) -> Any:
        paho, feed = self._paho, self._feed
        five = feed.version == "5"
        name = xxhash.xxh3_64_hexdigest(self._identity.encode())
        more: dict[str, Any] = {} if five else {"clean_session": not self._line.kept}
        client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            client_id=f"levada{name}",
            protocol=paho.MQTTv5 if five else paho.MQTTv311,
            manual_ack=True,
            **more,
        )
        client.reconnect_delay_set(FIRST_RETRY_PAUSE, MAX_RETRY_PAUSE)
        if feed.user:
            client.username_pw_set(feed.user, feed.secret)
        if feed.tls:
            client.tls_set_context(tls_of(feed))
        client.on_connect, client.on_connect_fail = self._on_connect, self._on_fail
        client.on_disconnect, client.on_subscribe = self._on_disconnect, self._on_subscribe
        client.on_message = self._on_message
        return client

    # -- on the library's thread --

    def _on_connect(self, client: Any, _: Any, flags: Any, reason: Any, __: Any) -> None:
        if reason.is_failure:
            self._refused = True
            self._line.down(f"it says {reason}", refused=True)
            return
        self._refused = False
        with self._lock:
            self._made += 1
            self._connection = self._made
        if flags.session_present and self._is_subscribed():
            self._line.up()
            return
        self._mark.unlink(missing_ok=True)
        feed = self._feed
        if feed.version == "5":
            kept = {"take": 0, "skip": 2}[feed.retained]
            options = self._paho.SubscribeOptions(qos=feed.qos, retainHandling=kept)
            client.subscribe(feed.topic, options=options)
        else:
            client.subscribe(feed.topic, qos=feed.qos)

    def _is_subscribed(self) -> bool:
        return self._mark.exists() and self._mark.read_text() == self._identity

    def _on_subscribe(self, client: Any, _: Any, __: int, reasons: Any, ___: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._refused = True
            self._line.down(
                f"it does not let us subscribe to {self._feed.topic} ({reasons[0]})", refused=True
            )
            return
        with create(self._mark) as file:
            file.write(self._identity.encode())
        self._line.up()

    def _on_fail(self, client: Any, _: Any) -> None:
        error = sys.exc_info()[1]
        self._line.down(_describe_error(error))

    def _on_disconnect(self, client: Any, _: Any, __: Any, reason: Any, ___: Any) -> None:
        with self._lock:
            self._connection = 0
        if not self._refused:  # else the refusal was reported
            self._line.down(f"the connection was lost ({reason})")

    def _on_message(self, client: Any, _: Any, message: Any) -> None:
        if message.retain and self._feed.retained == "skip":
            client.ack(message.mid, message.qos)
            return
        now = CLOCK()
        receipt = (self._connection, message.mid, message.qos)
        said = getattr(message, "properties", None)  # MQTT 5
        headers = getattr(said, "UserProperty", ())
        fault = client.fault
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic, fault = self._feed.topic, "its topic is not UTF-8"
        payload = b"" if fault else message.payload
        self._line.put(Message(payload, topic, now, receipt=receipt, headers=headers, fault=fault))


def _lenient(client: type[Any]) -> type[Any]:
    """Makes the library's client accept a message with properties that it would refuse, as one with
    a fault. Otherwise the broker would send the message for ever, and none after it.
    """

    class LenientClient(client):  # type: ignore[misc]
        fault = ""  # of the message for ``on_message``

        def _handle_publish(self) -> Any:
            try:
                return super()._handle_publish()
            except Exception as error:
                packet = bytes(self._in_packet["packet"])
                behind = 2 + int.from_bytes(packet[:2], "big")  # the topic
                behind += 2 if self._in_packet["command"] & 6 else 0  # packet number, not in QoS 0
                self._in_packet["packet"] = packet[:behind] + b"\0"  # without properties
                self.fault = f"its properties cannot be read: {reason(error)}"
                try:
                    return super()._handle_publish()
                finally:
                    self.fault = ""

    return LenientClient


def _describe_error(error: BaseException | None) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) if error else "it cannot be reached"


def _library() -> SimpleNamespace:
    """Imports paho-mqtt. Raises a ``SourceError`` that explains how to install it."""
    try:
        import paho.mqtt.client as client
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties
        from paho.mqtt.subscribeoptions import SubscribeOptions
    except ImportError as error:
        raise SourceError(
            "MQTT needs the package paho-mqtt.", hint=f"Say {install_command('mqtt')}."
        ) from error
    return SimpleNamespace(
        Client=_lenient(client.Client),
        CallbackAPIVersion=client.CallbackAPIVersion,
        MQTTv5=client.MQTTv5,
        MQTTv311=client.MQTTv311,
        PacketTypes=PacketTypes,
        Properties=Properties,
        SubscribeOptions=SubscribeOptions,
    )
