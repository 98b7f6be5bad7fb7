"""Resolves IRI references against a base (RFC 3986, section 5.2; the letters are the RFC's).

Without a base a relative reference stays as written: the names of windows and queries often are
relative (``<w1>``).
"""

from __future__ import annotations

import re

_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


def resolve(reference: str, base: str | None) -> str:
    """Returns the IRI of ``reference`` with ``base`` in force.

    >>> resolve("../c?x", "http://e/a/b/d")
    'http://e/a/c?x'
    >>> resolve("w1", None)
    'w1'
    """
    if base is None:
        return reference
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is not None:
        return reference  # as it is: SPARQL 1.1, section 4.1.1.2, normalises nothing
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        return _join(base_scheme, authority, _remove_dots(path), query, fragment)
    if not path:
        return _join(
            base_scheme, base_authority, base_path, base_query if query is None else query, fragment
        )
    if not path.startswith("/"):
        path = _merge(base_path, path, base_authority is not None)
    return _join(base_scheme, base_authority, _remove_dots(path), query, fragment)


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None, "every text has the five parts of an IRI reference"
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment


def _join(
    scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None
) -> str:
    return "".join(
        (
            "" if scheme is None else scheme + ":",
            "" if authority is None else "//" + authority,
            path,
            "" if query is None else "?" + query,
            "" if fragment is None else "#" + fragment,
        )
    )


def _merge(base_path: str, path: str, has_authority: bool) -> str:
    if has_authority and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _remove_dots(path: str) -> str:
    """Removes dot segments (section 5.2.4). Paths without one do not change."""
    if "/." not in path and not path.startswith("."):
        return path
    segments = path.split("/")
    out: list[str] = []
    for segment in segments:
        if segment == "..":
            if len(out) > 1 or (out and out[0] != ""):
                out.pop()
        elif segment != ".":
            out.append(segment)
    if segments[-1] in (".", ".."):
        out.append("")
    return "/".join(out)
