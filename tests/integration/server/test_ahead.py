"""Requests that are sent ahead on one connection, whose answers are not read."""

from __future__ import annotations

import socket

import httpx
import pytest

from support.polling import PATIENCE


def test_requests_that_are_sent_ahead_are_bounded(client: httpx.Client) -> None:
    one = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    address = (client.base_url.host, client.base_url.port)
    with socket.create_connection(address) as made:
        made.settimeout(PATIENCE)
        made.sendall(one * 9 + last)
        assert b"".join(iter(lambda: made.recv(1 << 20), b"")).count(b"HTTP/1.1 200 OK") == 10
    with socket.create_connection(address) as made, pytest.raises(OSError, match=r"reset|Broken"):
        made.settimeout(PATIENCE)
        while True:  # what the system holds is bounded, and so is what the server does
            made.sendall(one * 1000)
    assert 'levada_http_requests_total{status="429"} 1' in client.get("/metrics").text
