"""An object store for tests: moto's server, on a free port of this host, or the one that
``LEVADA_VERSITYGW`` names, a second one that does not share a line with it. Where moto or obstore
is not installed, the tests are skipped, and say so.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.free_ports import free_port
from support.polling import until

BUCKET, KEY, SECRET = "levada-tests", "canary-key-51fa", "canary-secret-9c02"


GATEWAY = os.environ.get("LEVADA_VERSITYGW", "")
"""The path of a ``versitygw``, if it is to be asked in place of moto."""


class Server:
    """One server, and its bucket ``BUCKET``."""

    url: str

    def environ(self) -> dict[str, str]:
        """What a process finds it by."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def make_bucket(self) -> None:
        """Makes the bucket; there it is empty."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends it."""
        raise NotImplementedError


class Gateway(Server):
    """``versitygw``: objects are files of a folder, a bucket is a folder there."""

    def __init__(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._root = tempfile.TemporaryDirectory(prefix="levada-s3-")
        command = [GATEWAY, "--port", f"127.0.0.1:{port}", "--access", KEY, "--secret", SECRET]
        self._process = subprocess.Popen(
            [*command, "posix", self._root.name], stdout=subprocess.DEVNULL
        )
        until(self._listens, "the gateway listens")

    def _listens(self) -> bool:
        try:
            return httpx.get(self.url).status_code > 0
        except httpx.TransportError:
            return False

    def make_bucket(self) -> None:
        (Path(self._root.name) / BUCKET).mkdir()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._root.cleanup()


class Moto(Server):
    """``guarded``: nobody may do anything on it."""

    def __init__(self, *, guarded: bool = False) -> None:
        for name, what in (("moto", "moto[server]"), ("obstore", "obstore")):
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"Object stores are NOT tested: there is no {what}.")
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server: Any = ThreadedMotoServer("127.0.0.1", free_port(), verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.url = f"http://{host}:{port}"
        self._guarded = guarded
        if guarded:
            self._guard("0")

    def make_bucket(self) -> None:
        httpx.put(f"{self.url}/{BUCKET}").raise_for_status()

    def _guard(self, after: str) -> None:
        httpx.post(f"{self.url}/moto-api/reset-auth", content=after).raise_for_status()

    def close(self) -> None:
        if self._guarded:  # it holds for all servers of the process
            self._guard("inf")
        self._server.stop()


def server() -> Server:
    """The one that is to be asked."""
    return Gateway() if GATEWAY else Moto()


@contextmanager
def without_conditions(url: str) -> Iterator[str]:
    """The same server as one that knows no ``If-None-Match``, as older ones do not."""
    with passing(url, without=("if-none-match",)) as address:
        yield address


@contextmanager
def passing(
    url: str, *, without: Sequence[str] = (), fault: Callable[[str, bool], str] = lambda *_: ""
) -> Iterator[str]:
    """The address of a server that passes requests on ``without`` some headers. ``fault`` is asked
    with method and path, before a request is passed on (False) and after it was done (True): it
    says "reset", "cut", a status, or "" for none.
    """

    class Passing(BaseHTTPRequestHandler):
        def _pass(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            content, request = self.rfile.read(size), f"{self.command} {self.path}"
            if (wrong := fault(request, False)) and wrong != "cut":
                return self._fail(wrong)
            given = {k: v for k, v in self.headers.items() if k.lower() not in without}
            found = httpx.request(self.command, url + self.path, headers=given, content=content)
            if wrong := wrong or fault(request, True):
                if wrong != "cut":
                    return self._fail(wrong)
                self.send_response(found.status_code)
                self.send_header("Content-Length", str(len(found.content) + 100))
                self.end_headers()
                self.wfile.write(found.content)
                return self._fail("reset")
            self.send_response(found.status_code)
            for name, value in found.headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(found.content)))
            self.end_headers()
            self.wfile.write(found.content)
            return None

        def _fail(self, wrong: str) -> None:
            if wrong == "reset":
                now = struct.pack("ii", 1, 0)  # no farewell
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
                self.connection.close()
                self.close_connection = True
                return
            status, _, code = wrong.partition(" ")
            text = f"<Error><Code>{code}</Code></Error>".encode()
            self.send_response(int(status))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    for word in ("GET", "PUT", "POST", "DELETE", "HEAD"):
        setattr(Passing, f"do_{word}", Passing._pass)
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
