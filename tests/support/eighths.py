"""The eighth of the long tests to which a test belongs."""

import zlib

EIGHTHS = 8
WHOLE_MODULES = ("tests/integration/test_wheel.py", "tests/browser/test_page_in_chromium.py")
"""Modules with an expensive fixture: all their tests are in one eighth."""


def eighth_of(node: str) -> int:
    """Returns the number of the eighth, which is the same on every machine."""
    module = node.partition("::")[0]
    return zlib.crc32((module if module in WHOLE_MODULES else node).encode()) % EIGHTHS
