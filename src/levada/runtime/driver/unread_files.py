"""Files of which nothing is ever read: broken ones, and those that come too late, with names before
one that is being read.

That is known to the driver alone, so it writes the dead letters: one for each file, in a side file
of the epoch that tells of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from levada.runtime.context import Context
from levada.runtime.store import state_files as files
from levada.runtime.store.manifest import Intention

REASON = "The file came when one with a later name was being read already: it is not read."
Side = list[tuple[str, str, int]]


def letters_of(context: Context, intention: Intention) -> Side:
    """Writes the letters; returns the side file for the manifest, if there is one."""
    letters = [
        {"stream": stream, "source": name, "offset": 0, "reason": reason, "text": ""}
        for stream, name, reason in _unread(intention)
    ]
    if not letters:
        return []
    lines = "".join(json.dumps(letter, ensure_ascii=False) + "\n" for letter in letters)
    name = files.write(context.root, "side", f"{context.epoch}-overtaken", [lines.encode()])
    return [("dead-letter", name, len(letters))]


def _unread(intention: Intention) -> Iterator[tuple[str, str, str]]:
    for stream, names in intention.overtaken.items():
        yield from ((stream, name, REASON) for name in names)
    for stream, found in intention.broken.items():
        yield from ((stream, name, reason) for name, reason in found.items())
