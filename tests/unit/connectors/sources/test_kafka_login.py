"""How one logs in to a broker: the specification's own conversations, and servers that lie."""

from __future__ import annotations

import pytest

from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.sources.kafka.broker_connection import authenticate
from levada.connectors.sources.kafka.wire_protocol import BrokerError

# RFC 7677, 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = f"n,,n=user,r={NONCE}"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
LAST = (
    f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
PROOF = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def config(sasl: str, user: str = "user") -> KafkaConfig:
    return KafkaConfig("b:1", "t", sasl=sasl, user=user, password="env:PENCIL")


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENCIL", "pencil")


def talk(sasl: str, *answers: str, user: str = "user") -> list[str]:
    """What the client says to a server that answers so."""
    said: list[str] = []

    def say(message: bytes) -> bytes:
        said.append(message.decode())
        return answers[len(said) - 1].encode()

    authenticate(config(sasl, user), say, NONCE)
    return said


def test_the_specification_s_conversations() -> None:
    assert talk("scram-sha-256", CHALLENGE, PROOF) == [FIRST, LAST]
    assert talk("plain", "") == ["\0user\0pencil"]


def test_what_a_server_says_is_judged() -> None:
    for answers, reason in (
        (["r=another,s=QQ==,i=4096"], "another one's login"),
        ([CHALLENGE, "v=AAAA"], "does not know the password"),
        ([CHALLENGE, "e=invalid-proof"], "refuses the login: invalid-proof"),
        (["hello"], "its answer is no SCRAM"),
    ):
        with pytest.raises(BrokerError, match=reason) as caught:
            talk("scram-sha-256", *answers)
        assert "pencil" not in str(caught.value)


def test_names_with_signs_of_the_protocol() -> None:
    with pytest.raises(BrokerError):
        talk("scram-sha-512", "e=unknown-user", user="a,b=c")
    said: list[bytes] = []

    def say(message: bytes) -> bytes:
        said.append(message)
        return b"e=unknown-user"

    with pytest.raises(BrokerError):
        authenticate(config("scram-sha-512", "a,b=c"), say, NONCE)
    assert said == [f"n,,n=a=2Cb=3Dc,r={NONCE}".encode()]
