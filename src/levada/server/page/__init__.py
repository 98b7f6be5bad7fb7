"""The web page: static files without a build step and without other sites. A
Content-Security-Policy restricts it to this server and forbids inline code.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import Response

from levada.server.problem_json import Problem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


async def page(request: Request) -> Response:
    """Returns the page."""
    return _file("index.html")


async def part(request: Request) -> Response:
    """Returns a file that the page loads."""
    return _file(request.path_params["file"])


def _file(name: str) -> Response:
    content = _parts().get(name)
    if content is None:
        raise Problem(404, "The page has no such part.")
    media = _TYPES[PurePath(name).suffix] + "; charset=utf-8"
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return Response(content, headers=headers, media_type=media)


@cache
def _parts() -> dict[str, bytes]:
    """Returns the files of the page by name."""
    there = (f for f in files(__package__).iterdir() if PurePath(f.name).suffix in _TYPES)
    return {file.name: file.read_bytes() for file in there}
