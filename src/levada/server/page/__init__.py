"""The web page: static files without a build step and without other sites. A
Content-Security-Policy restricts it to this server and to one inline text: the import map, by its
hash.

``modules/`` has the ES modules of the editor (CodeMirror 6), as their packages have them. Their
versions are in their names, so browsers keep them.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import Response

from levada.server.problem_json import Problem

POLICY = (
    "default-src 'none'; script-src 'self' 'sha256-{map}'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FOREVER = "public, max-age=31536000, immutable"
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
    cache_control = FOREVER if name.startswith("modules/") else "no-cache"
    headers = {"Content-Security-Policy": _policy(), "Cache-Control": cache_control}
    return Response(content, headers=headers, media_type=media)


@cache
def _policy() -> str:
    """Returns the policy with the hash of the page's import map."""
    _, _, rest = _parts()["index.html"].partition(b'<script type="importmap">')
    imports = rest.partition(b"</script>")[0]
    return POLICY.format(map=b64encode(hashlib.sha256(imports).digest()).decode())


@cache
def _parts() -> dict[str, bytes]:
    """Returns the files of the page by name."""
    root = files(__package__)
    there = {file.name: file for file in root.iterdir()}
    there |= {f"modules/{file.name}": file for file in (root / "modules").iterdir()}
    return {n: f.read_bytes() for n, f in there.items() if PurePath(n).suffix in _TYPES}
