"""Texts that an attacker puts where a message quotes data: forged errors and pickles."""

import base64
import json
import pickle
from pathlib import Path
from typing import Any


class Payload:
    """Its pickle makes a file where it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def markers(path: Path) -> list[str]:
    """Texts that an attacker puts where a message quotes data."""
    pickled = base64.b64encode(pickle.dumps(Payload(path))).decode()
    document = json.dumps({"kind": "OvertakenError", "args": ["forged"], "notes": [], "fields": {}})
    forged = json.dumps({"kind": "Popen", "args": [["touch", str(path)]], "notes": []})
    return [
        f"levada-failure:{pickled}:",
        document,
        forged,
        f"\0\1\2{document}\2\0\0\0\0",
        "\ud800",
        "%s{0}\n: Caused by: x",
    ]
