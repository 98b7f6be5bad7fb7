"""The page: files as they are, without a build, without the network. What it may load and ask
is said by a Content-Security-Policy: this server alone, nothing inline.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from levada.server.problems import Problem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "complete.js": "text/javascript; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}


async def page(request: Request) -> Response:
    """The page."""
    return _file("index.html")


async def part(request: Request) -> Response:
    """What the page loads."""
    return _file(request.path_params["file"])


def _file(name: str) -> Response:
    if name not in _FILES:
        raise Problem(404, "The page has no such part.")
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return Response(_content(name), headers=headers, media_type=_FILES[name])


@cache
def _content(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()
