"""What befalls an engine over MQTT: it is killed, its broker goes, its password leaks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_mqtt_topics import COUNT, S, letters, listening, record, seen, statement

from levada.connectors.sources.feed_log import numbers_of
from levada.engine.engine import Engine
from levada.errors import SourceError
from support.mqtt_broker import Broker, until

N = 60
CANARY = "canary-83d1f0"
RUN = """
import sys, threading
from pathlib import Path
from levada.engine.engine import Engine
from levada.runtime.epoch_pipeline import EpochRunner
from levada.connectors.spool.message_log import Log
from levada.connectors.spool.receivers.mqtt import MqttReceiver
root, url, point, text = sys.argv[1:]
root = Path(root)
owner, name = {
    "received": (Log, "append"), "logged": (MqttReceiver, "acknowledge"),
    "acknowledged": (EpochRunner, "run"),
}[point]
whole = getattr(owner, name)
def stops(self, what):
    if (root / "go").exists():  # from now on nothing gets any farther
        (root / "there").touch()
        threading.Event().wait()
    return whole(self, what)
setattr(owner, name, stops)
engine = Engine(spark=False, checkpoint=root / "ck", partitions=2, epoch="5ms")
engine.stream("http://e/s", url, format="nt")
engine.register(text, name="q")
engine.start()
(root / "subscribed").touch()
threading.Event().wait()
"""


def logged(root: Path) -> int:
    """How many messages have been durable."""
    names = [path.name for path in root.glob("spool/*/data/0*")]
    return sum(numbers_of(max(names))) if names else 0


@pytest.mark.long
@pytest.mark.parametrize("point", ["received", "logged", "acknowledged"])
def test_no_message_is_lost_by_a_kill(broker: Broker, tmp_path: Path, point: str) -> None:
    topic = f"killed/{point}"
    with (tmp_path / "said").open("wb") as said:
        engine = subprocess.Popen(
            [sys.executable, "-c", RUN, str(tmp_path), broker.url(topic), point, COUNT],
            stderr=said,
        )
    try:
        until(lambda: (tmp_path / "subscribed").exists() or engine.poll() is not None)
        lines = [statement(k, time=10 * k) for k in range(N)]
        broker.send(topic, lines[: N // 2], lines=True)
        until(lambda: logged(tmp_path / "ck") == N // 2)
        (tmp_path / "go").touch()
        broker.send(topic, lines[N // 2 :], lines=True)
        until(lambda: (tmp_path / "there").exists() or engine.poll() is not None)
        assert engine.poll() is None, (tmp_path / "said").read_text()
    finally:
        engine.send_signal(signal.SIGKILL)
        engine.wait()
    durable = logged(tmp_path / "ck")
    with listening(broker.url(topic), format="nt", checkpoint=tmp_path / "ck") as (again, asked):
        broker.send(topic, [statement(0, time=9000)])
        seen(again, N + 1)
        until(lambda: record(again).max_ts == 9000)
        found = next(iter(asked.results()))
        integers = [int(value.split('"')[1]) for value in found.rows.rows()[0][-2:]]
        assert integers == [N, N * (N - 1) // 2]  # a triple that comes twice is one
    twice = logged(tmp_path / "ck") - N - 1
    if point == "logged":
        # the broker sends again what it has sent and not seen acknowledged: mosquitto 2.0.11 sends
        # 20 messages, and up to 20 more for each acknowledgement, so only the log has a bound
        assert 1 <= twice <= durable, (twice, durable)
    else:
        assert not twice


@pytest.fixture
def another(tmp_path: Path) -> Any:
    passwords = tmp_path / "passwords"
    passwords.touch(0o600)
    tool = shutil.which("mosquitto_passwd")
    if tool is None:
        pytest.skip("MQTT is NOT tested: there is no mosquitto_passwd (Debian: mosquitto).")
    subprocess.run([tool, "-b", str(passwords), "reader", CANARY], check=True)
    if os.geteuid() == 0:
        passwords.chmod(0o644)  # the broker gives up being root
        for folder in (tmp_path, *list(tmp_path.parents)[:3]):
            folder.chmod(folder.stat().st_mode | 0o055)
    made = Broker(tmp_path / "broker", f"password_file {passwords}", "user root", anonymous=False)
    yield made
    made.stop()


def login(monkeypatch: pytest.MonkeyPatch, password: str = CANARY) -> dict[str, Any]:
    monkeypatch.setenv("MQTT_PASSWORD", password)
    return {"format": "nt", "user": "reader", "password": "env:MQTT_PASSWORD"}


def say(broker: Broker, *lines: str) -> None:
    broker.send("t", lines, "-u", "reader", "-P", CANARY)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_broker_that_goes_and_comes_again(
    another: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    given = {**login(monkeypatch), "version": version, "checkpoint": tmp_path / "ck"}
    with listening(another.url("t"), **given) as (engine, _):
        say(another, statement(1, time=1))
        seen(engine, 1)
        another.stop()
        until(lambda: "waits for 127.0.0.1" in engine.progress().waiting_for or not engine.running)
        assert engine.running
        until(lambda: [one.stream for one in engine.status().unavailable_streams] == [S])
        another.start()
        say(another, statement(2, time=2))
        seen(engine, 2)
        until(lambda: not engine.progress().waiting_for)
        until(lambda: not engine.status().unavailable_streams)
        assert record(engine).elements == 2


def test_an_engine_starts_while_its_broker_is_away(
    another: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**login(monkeypatch), "checkpoint": tmp_path / "ck"}
    with listening(another.url("t"), **given) as (engine, _):
        say(another, statement(1, time=1))
        seen(engine, 1)
    another.stop()
    with listening(another.url("t"), **given) as (engine, _):
        until(lambda: f"The stream {S} waits for" in engine.progress().waiting_for)
        another.start()
        say(another, statement(2, time=2))
        seen(engine, 2)


def test_a_password_is_nowhere(
    another: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    given = {**login(monkeypatch), "checkpoint": tmp_path / "ck"}
    with listening(another.url("t"), **given) as (engine, _):
        say(another, statement(1, time=1), "no statement")
        seen(engine, 2)
        said = f"{engine.progress()} {letters(engine)}"
    with Engine(spark=False) as refused:
        refused.stream(S, another.url("t"), **login(monkeypatch, f"{CANARY}!"))
        refused.register(COUNT, name="q")
        with pytest.raises(SourceError, match="Not authorized") as raised:
            refused.start()
    out, err = capfd.readouterr()
    everything = [said, str(raised.value), out, err]
    everything += [
        path.read_bytes().decode("utf-8", "replace")
        for path in (tmp_path / "ck").rglob("*")
        if path.is_file()
    ]
    assert len(everything) > 10
    assert not any(CANARY in text for text in everything)


def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("MQTT with TLS is NOT tested: there is no openssl to make a certificate with.")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    made = Broker(tmp_path / "broker", f"certfile {cert}", f"keyfile {key}", "user root")
    try:
        url = made.url("t").replace("mqtt://", "mqtts://")
        with listening(url, format="nt", tls_ca=cert) as (engine, _):
            made.send("t", [statement(1, time=1)], "--cafile", str(cert))
            seen(engine, 1)
        monkeypatch.setattr("levada.connectors.spool.feed_spool.PATIENCE", 2.0)
        with Engine(spark=False) as engine:
            engine.stream(S, url, format="nt")  # nobody vouches for it
            engine.register(COUNT, name="q")
            with pytest.raises(SourceError, match=r"(?i)certificate"):
                engine.start()
    finally:
        made.stop()
