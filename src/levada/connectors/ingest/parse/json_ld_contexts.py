"""Puts JSON-LD contexts from files in the place of their URLs. Nothing is fetched.

The operator of an engine declares the file of each URL (``--context URL=FILE``), or a folder for
all URLs below one that ends in a slash. The declarations hold for the process: documents of
streams, static data, pushed documents and graphs are read with them. Tasks in other processes get
the URLs, paths and digests, and read the same files.

A context is replaced in the text, so all else keeps its line. Contexts in contexts are replaced,
too, and ``@import`` is merged (JSON-LD 1.1, 4.1.5.1).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import msgspec

from levada.connectors.ingest.parse.document_limits import DEEPEST, Malformed
from levada.errors import EngineError, UsageError, near

_KEY = re.compile(r'(?<!\\)"@context"\s*:\s*')
_DECODER = json.JSONDecoder()
MAX_NESTING = 16
"""Contexts that name each other in a chain."""
MAX_ADDED_BYTES = 64 << 20
"""The most that contexts add to a document."""


# the key of a context, also with escapes
_ANY_KEY = re.compile(
    r'(?<!\\)"' + "".join(rf"(?:{c}|\\u00{ord(c):02x})" for c in "@context") + r'"\s*:\s*', re.I
)
_SHORTEST_TERM = len('"a":"b",')


class ContextFile(msgspec.Struct, frozen=True):
    """The file of a context: its absolute path, and the SHA-256 digest of its content."""

    url: str
    path: str
    digest: str


FILES: dict[str, ContextFile] = {}
_contents: dict[str, Any] = {}
_whole: dict[str, tuple[Any, int]] = {}  # with the contexts that they name, and their sizes


def declare_contexts(paths: Mapping[str, str | os.PathLike[str]]) -> None:
    """Declares the files of contexts by URL; a folder for a URL that ends in a slash. Raises
    ``UsageError``.
    """
    for url, path in paths.items():
        for each, file in _list_files(url, Path(path)):
            declared, content = _read(each, file)
            if FILES.setdefault(each, declared).digest != declared.digest:
                message = f"The context {each} is {FILES[each].path} for another engine already."
                raise UsageError(message, hint="Engines of one process share their contexts.")
            _contents[each] = content
    _whole.clear()


def declared_contexts() -> list[ContextFile]:
    """Returns the declared contexts, for tasks in other processes."""
    return list(FILES.values())


def declare_as_driver(files: Iterable[ContextFile]) -> None:
    """Declares the contexts of the driver in a task. Raises ``EngineError`` if a file is another
    one here.
    """
    for file in files:
        if FILES.get(file.url) == file:
            continue
        try:
            declared, content = _read(file.url, Path(file.path))
        except UsageError as error:
            raise EngineError(error.message, hint=_SHARED) from error
        if declared.digest != file.digest:
            message = f"The context {file.url} in {file.path} is another one than at the start."
            raise EngineError(message, hint=_SHARED)
        FILES[file.url], _contents[file.url] = file, content
        _whole.clear()


_SHARED = "Keep the files of contexts unchanged, and where each executor sees them."


def _list_files(url: str, path: Path) -> list[tuple[str, Path]]:
    """Returns the URLs and files of a declaration. Raises ``UsageError``."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url):
        raise UsageError(f"{url} is no URL of a context.", hint="Write URL=FILE.")
    if not path.is_dir():
        return [(url, path)]
    if not url.endswith("/"):
        hint = f"Write {url}/={path} for all URLs below it, or name a file."
        raise UsageError(
            f"The context {url} has a folder, {path}, and does not end in /.", hint=hint
        )
    files = sorted(file for file in path.rglob("*") if file.suffix in (".json", ".jsonld"))
    if not files:
        raise UsageError(f"The folder of contexts {path} has no file .jsonld or .json.")
    return [(url + file.relative_to(path).as_posix(), file) for file in files]


def _read(url: str, path: Path) -> tuple[ContextFile, Any]:
    """Reads a context. Raises ``UsageError``."""
    try:
        raw = path.read_bytes()
        content = json.loads(raw)
    except OSError as error:
        raise UsageError(f"The context {url} cannot be read: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The context {url} in {path} is no JSON: {error}.") from error
    if not isinstance(content, dict) or "@context" not in content:
        hint = 'A context is {"@context": ..}.'
        raise UsageError(f"The context {url} in {path} has no @context.", hint=hint)
    digest = hashlib.sha256(raw).hexdigest()
    return ContextFile(url, str(path.absolute()), digest), content["@context"]


def replace_contexts(text: bytes, base: str) -> bytes:
    """Returns a document with its declared contexts in the place of their URLs. ``base``: its IRI.
    Raises ``Malformed`` for a context that is not declared, with its place.
    """
    try:
        document = text.decode()
    except UnicodeDecodeError:
        return text  # the parser reports it
    parts, done, replacer = [], 0, _Replacer(MAX_ADDED_BYTES)
    for match in _KEY.finditer(document):
        if match.start() < done:
            continue  # within a context
        try:
            value, end = _DECODER.raw_decode(document, match.end())
        except (ValueError, RecursionError):
            return text  # the parser reports it
        try:
            replaced = replacer.replace(value, base, 0)
        except KeyError as error:
            raise _fault(document, match.end(), str(error.args[0])) from None
        if replaced != value:
            shown, lines = json.dumps(replaced), "\n" * document.count("\n", match.end(), end)
            parts += [document[done : match.end()], shown, lines]
            done = end
    return text if not parts else "".join([*parts, document[done:]]).encode()


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, also those of one name."""


# as lenient as a parser may be
_MEMBERS = json.JSONDecoder(
    object_pairs_hook=_Members, parse_int=str, parse_float=str, strict=False
)


def check_chains(text: bytes) -> None:
    """Raises ``Malformed`` for terms that are defined by others in a chain of more than
    ``DEEPEST``: the parser recurses once a term, and a long chain would crash the process.

    >>> check_chains(b'{"@context": {"a": "b:c", "b": "e:"}}')
    """
    if len(text) < DEEPEST * _SHORTEST_TERM:
        return
    document, done = text.decode(errors="replace"), 0
    key = _ANY_KEY if "\\u00" in document else _KEY
    for match in key.finditer(document):
        if match.start() < done:
            continue  # within a context
        try:
            value, done = _MEMBERS.raw_decode(document, match.end())
        except (ValueError, RecursionError):
            return  # the parser reports it
        left = [value]
        while left:
            each = left.pop()
            if isinstance(each, _Members):
                if _longest_chain(each) > DEEPEST:
                    raise Malformed(f"its terms are defined in a chain of more than {DEEPEST}")
                left += [member for _, member in each]
            elif isinstance(each, list):
                left += each


def _longest_chain(context: _Members) -> int:
    """Returns the length of the longest chain of terms that need each other's definitions. A circle
    counts once around.
    """
    terms: dict[str, set[str]] = {name: set() for name, _ in context}
    if len(terms) <= DEEPEST:
        return len(terms)
    for name, definition in context:
        members = definition if isinstance(definition, _Members) else [("", definition)]
        for word in (name, *(value for _, value in members if isinstance(value, str))):
            terms[name] |= {each for each in (word, word.partition(":")[0]) if each in terms}
        terms[name].discard(name)
    depths: dict[str, int] = {}
    for first in terms:
        path = [(first, iter(terms[first]))] if first not in depths else []
        depths.setdefault(first, 1)
        while path:
            name, needed = path[-1]
            for other in needed:
                if other not in depths:
                    depths[other] = 1
                    path.append((other, iter(terms[other])))
                    break
                depths[name] = max(depths[name], depths[other] + 1)
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    depths[above] = max(depths[above], depths[name] + 1)
    return max(depths.values())


def _fault(document: str, start: int, url: str) -> Malformed:
    at = max(document.find(json.dumps(url), start), start)
    known = near(url, FILES)
    line, column = document.count("\n", 0, at) + 1, at - document.rfind("\n", 0, at)
    hint = f" ({known.rstrip('.')})" if known else ""
    return Malformed(
        f"its context {url[:500]} has no file; give it by --context URL=FILE{hint}", line, column
    )


@dataclass(slots=True)
class _Replacer:
    """Replaces contexts that others name. ``left``: the bytes that they may still have in all."""

    left: int

    def replace(self, value: Any, base: str, depth: int) -> Any:
        """Returns a context with the contexts that it names. Raises ``KeyError`` with the URL of
        one that is not declared, and ``Malformed``.
        """
        if isinstance(value, str):
            return self._load(value, base, depth)
        if isinstance(value, list):
            parts: list[Any] = []
            for one in value:
                each = one if isinstance(one, list) else self.replace(one, base, depth)
                parts += each if isinstance(one, str) and isinstance(each, list) else [each]
            return parts
        if not isinstance(value, dict):
            return value
        terms = {
            name: {**term, "@context": self.replace(term["@context"], base, depth)}
            if isinstance(term, dict) and "@context" in term and depth < MAX_NESTING
            else term
            for name, term in value.items()
        }
        if isinstance(name := terms.get("@import"), str):
            imported = self._load(name, base, depth)
            if isinstance(imported, dict):
                del terms["@import"]
                terms = {**imported, **terms}
        return terms

    def _load(self, name: str, base: str, depth: int) -> Any:
        url = name if name in _contents or not base else urljoin(base, name)
        if url not in _contents or depth == MAX_NESTING:
            raise KeyError(url)
        if url not in _whole:
            content = _Replacer(MAX_ADDED_BYTES).replace(_contents[url], url, depth + 1)
            _whole[url] = content, len(json.dumps(content))
        content, size = _whole[url]
        self.left -= size
        if self.left < 0:
            raise Malformed("its contexts would make it larger by more than 64 MB")
        return content
