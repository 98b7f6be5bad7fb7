"""Packets to and from a broker of MQTT are lost or cut, and the connection is reset, or falls
silent: no message is lost, and one that came before its acknowledgement was lost comes again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_mqtt_topics import COUNT, listening, record, seen, statement
from test_mqtt_trouble import logged

from support.fault_proxy import FaultProxy, mqtt
from support.mqtt_broker import Broker, until

N = 60
OPENING = ("connect", "> CONNECT", "< CONNACK", "> SUBSCRIBE", "< SUBACK")
LATER = ("< PUBLISH", "> PUBACK", "> CONNECT", "< CONNACK", "< PUBLISH", "> PUBACK")
RECEIVERS = "levada.connectors.spool.receivers.mqtt"


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("fault", ["reset", "cut", pytest.param("hang", marks=pytest.mark.long)])
def test_a_fault_at_each_packet_loses_no_message(
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    version: str,
) -> None:
    for name, value in (("FIRST_RETRY_PAUSE", 0.05), ("MAX_RETRY_PAUSE", 0.05), ("ALIVE", 1)):
        monkeypatch.setattr(f"{RECEIVERS}.{name}", value)
    monkeypatch.setattr("levada.connectors.spool.feed_spool.PATIENCE", 120.0)
    topic = f"faults/{fault}/{version}"
    later = [(f"^{label}$", fault) for label in LATER]
    with FaultProxy(broker.port, mqtt, [(f"^{label}$", fault) for label in OPENING]) as proxy:
        url = f"mqtt://127.0.0.1:{proxy.port}/{topic}"
        options = {"format": "nt", "version": version}
        with listening(url, COUNT, **options, checkpoint=tmp_path / "ck") as (engine, asked):
            assert not proxy.faults
            proxy.faults = list(later)
            lines = [statement(k, time=10 * k) for k in range(N)]
            broker.send(topic, lines, lines=True)
            until(lambda: not proxy.faults)
            seen(engine, N)
            broker.send(topic, [statement(0, time=9000)])
            until(lambda: record(engine).max_ts == 9000)
            found = next(iter(asked.results()))
    integers = [int(value.split('"')[1]) for value in found.rows.rows()[0][-2:]]
    assert integers == [N, N * (N - 1) // 2]  # a triple that comes twice is one
    assert logged(tmp_path / "ck") - N - 1 <= 20 * len(later), "so many are in flight at most"
