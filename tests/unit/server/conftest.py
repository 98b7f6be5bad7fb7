"""An engine and a server for each test that asks for them."""

from serving import client, run, serve

__all__ = ["client", "run", "serve"]
