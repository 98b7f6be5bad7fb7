"""The check whether an upgrade request is a WebSocket handshake (RFC 6455, 4.2.1). It runs before
the WebSocket library, so that mistakes are answered like all others.

Another version gets a 426 with the supported one (4.4), all other faults a 400. ``request_guard``
checks origin and token.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping
from typing import NamedTuple

VERSION = "13"
HEADERS, LINE = 100, 8000  # a little less than the WebSocket library reads
_KEY = 16  # bytes


class Fault(NamedTuple):
    """The answer to a faulty handshake."""

    status: str
    detail: str
    headers: Mapping[str, str] = {}


def fault_of(method: str, http: str, headers: Iterable[tuple[bytes, bytes]]) -> Fault | None:
    """Returns the fault of a request with ``Upgrade: websocket``; None for a valid one.

    >>> said = [(b"sec-websocket-key", b"AAAAAAAAAAAAAAAAAAAAAA==")]
    >>> fault_of("GET", "1.1", [*said, (b"sec-websocket-version", b"13")])
    >>> fault_of("GET", "1.1", [*said, (b"sec-websocket-version", b"8")]).status
    '426 Upgrade Required'
    """
    header_list = list(headers)
    keys, versions = (
        _header_values(header_list, name) for name in (b"sec-websocket-key", _VERSION)
    )
    if (method, http) != ("GET", "1.1"):
        return _bad_request("A WebSocket begins with a GET of HTTP/1.1.")
    if len(versions) != 1:
        return _bad_request(f"A WebSocket says one Sec-WebSocket-Version, which is {VERSION}.")
    if versions[0] != VERSION.encode():
        detail = f"A WebSocket is spoken here in version {VERSION} only."
        said = {"upgrade": "websocket", "sec-websocket-version": VERSION}
        return Fault("426 Upgrade Required", detail, said)
    if _header_values(header_list, b"content-length") + _header_values(
        header_list, b"transfer-encoding"
    ):
        return _bad_request("The request that begins a WebSocket has no body.")
    if len(header_list) > HEADERS or any(
        len(name) + len(value) > LINE for name, value in header_list
    ):
        detail = f"A WebSocket begins with at most {HEADERS} headers of at most {LINE:,} bytes."
        return Fault("431 Request Header Fields Too Large", detail)
    if len(keys) != 1 or not _is_key(keys[0]):
        return _bad_request(
            f"A WebSocket says one Sec-WebSocket-Key, which is {_KEY} bytes in base64."
        )
    return None


_VERSION = b"sec-websocket-version"


def _bad_request(detail: str) -> Fault:
    return Fault("400 Bad Request", detail)


def _header_values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value.strip() for said, value in headers if said == name]


def _is_key(value: bytes) -> bool:
    try:
        return len(binascii.a2b_base64(value, strict_mode=True)) == _KEY
    except binascii.Error:
        return False
