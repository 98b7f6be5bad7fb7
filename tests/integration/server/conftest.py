"""An engine and a server for each test that asks for them."""

from support.http_server import client, run, serve

__all__ = ["client", "run", "serve"]
