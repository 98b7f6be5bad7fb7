"""Stores the fingerprints of a stream's files in positions, to recognize a replaced file of the
same name (docs/semantics.md#progress).

Cost: 132 KB at most when a file is read further or has changed, and the bytes that are read once
more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from levada.connectors.sources.decompression import is_packed
from levada.connectors.sources.file_splits import Position, Taken
from levada.connectors.sources.file_splitter import FileSplitter, SourceFile
from levada.connectors.sources.fingerprint import Fingerprint, open_descriptor
from levada.connectors.sources.splits import FileSplit
from levada.errors import FileFault


class Fingerprints:
    """Makes and compares the fingerprints of one stream's files."""

    def __init__(self, cutter: FileSplitter) -> None:
        self.config = cutter.config
        self._cutter = cutter
        self._compared: dict[str, tuple[str, tuple[int, int], bool]] = {}

    def current(self, position: Position, files: Mapping[str, SourceFile]) -> Position:
        """Returns the position, with replaced files at their beginning."""
        others = [
            name
            for name, text in position.get("fingerprints", {}).items()
            if name in files and not self._is_same(files[name], text)
        ]
        if not others:
            return position
        lives: dict[str, int] = dict(position.get("lives", {}))
        for name in others:
            lives[name] = lives.get(name, 0) + 1
        new = {**position, "lives": lives, "replaced": position.get("replaced", 0) + len(others)}
        for key in ("files", "rows", "fingerprints"):
            if key in new:
                new[key] = {name: at for name, at in new[key].items() if name not in others}
        if self.config.files == "sequence":
            new["at"] = 0
        return new

    def make(self, taken: list[Taken], position: Position) -> dict[str, str]:
        """Returns the fingerprints of the files with taken ranges at a position, by name."""
        if self.config.settled:
            return {}
        by_file: dict[str, list[Taken]] = {}
        for one in taken:
            by_file.setdefault(one[0].name, []).append(one)
        before: dict[str, str] = position.get("fingerprints", {})
        return {name: self._make(pieces, before.get(name, "")) for name, pieces in by_file.items()}

    def after_take(self, made: dict[str, str], position: Position) -> Position:
        """Returns the fingerprints after a take: in a sequence that of the last file."""
        if self.config.settled:
            return {}
        if self.config.files == "parallel":
            return {"fingerprints": {**position.get("fingerprints", {}), **made}}
        made = dict([*made.items()][-1:])
        lives = {name: n for name, n in position.get("lives", {}).items() if name in made}
        return {"fingerprints": made, **({"lives": lives} if "lives" in position else {})}

    def is_whole(self, file: SourceFile, position: Position) -> bool:
        """Whether a packed file, as it is now, is read to its end."""
        text = position.get("fingerprints", {}).get(file.name)
        if text is None or not is_packed(file.name):
            return False
        fingerprint = Fingerprint.parse(text)
        return (fingerprint.number, fingerprint.whole) == (file.number, file.size)

    def _is_same(self, file: SourceFile, text: str) -> bool:
        """Whether a file is the known one; compares it if it has changed."""
        state = (file.number, file.size)
        known = self._compared.get(file.name)
        if known is None or known[:2] != (text, state):
            self._compared[file.name] = known = (
                text,
                state,
                self._compare(file, Fingerprint.parse(text)),
            )
        return known[2]

    def _compare(self, file: SourceFile, fingerprint: Fingerprint) -> bool:
        if (fingerprint.number, fingerprint.whole) == (file.number, file.size):
            return True
        try:
            path, size = self._text(file)
        except FileFault:  # the reader reports it
            return True
        with open_descriptor(path) as text:
            return fingerprint.is_of(text, file.number, size)

    def complete(self, name: str, text: str, references: Sequence[FileSplit], digests: str) -> str:
        """Completes a fingerprint with the block hashes of tasks. ``references``: those to the
        file.
        """
        waiting = Fingerprint.parse(text)
        if waiting.missing[0] == waiting.missing[1] or not references:
            return text
        done = waiting.complete(references[0].path, digests).text()
        known = self._compared.get(name)
        if known is not None and known[0] == text:
            self._compared[name] = (done, *known[1:])
        return done

    def _make(self, taken: Sequence[Taken], before: str) -> str:
        """Makes the fingerprint of a file with these taken ranges."""
        file, at = taken[0][0], taken[-1][1].stop
        by_tasks = not all(piece.counted for _, piece in taken)
        begin = taken[0][1].start if self.config.format != "parquet" else 0  # in Parquet: a row
        path, size = self._text(file)
        whole = -1
        if is_packed(file.name) and at == self._cutter.content(file)[1]:
            whole = file.size
        read = size if self.config.format == "parquet" else at
        made = Fingerprint.from_file(
            path,
            (file.number, size),
            whole=whole,
            read=read,
            before=before,
            taken_from=begin if by_tasks or self.config.format == "parquet" else None,
        )
        text = made.text()
        self._compared[file.name] = (text, (file.number, file.size), True)
        return text

    def _text(self, file: SourceFile) -> tuple[str, int]:
        """Returns the path of a file's unpacked bytes, and their number."""
        if self.config.format == "parquet":
            return file.path, file.size
        return self._cutter.content(file)
