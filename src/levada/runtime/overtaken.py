"""Files that come too late: their names come before one that was being read already, so nothing of them is ever read.

That is known to the driver alone, so it writes the dead letters: one for each file, in a side file of the epoch that tells of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from levada.runtime import files
from levada.runtime.context import Context

REASON = "The file came when one with a later name was being read already: it is not read."
Side = list[tuple[str, str, int]]


def letters_of(context: Context, overtaken: Mapping[str, Sequence[str]]) -> Side:
    """Writes the letters; returns the side file for the manifest, if there is one."""
    letters = [
        {"stream": stream, "source": name, "offset": 0, "reason": REASON, "text": ""}
        for stream, names in overtaken.items()
        for name in names
    ]
    if not letters:
        return []
    lines = "".join(json.dumps(letter, ensure_ascii=False) + "\n" for letter in letters)
    name = files.write(context.root, "side", f"{context.epoch}-overtaken", [lines.encode()])
    return [("dead-letter", name, len(letters))]
