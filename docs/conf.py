"""The documentation as a site, made by ``make site``: the pages as they are (their examples are run
by ``tests/integration/test_docs.py``), and a reference of docstrings (whose examples are
run there, too). Warnings are errors.
"""

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import levada

project = "Levada"
version = release = levada.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["notebooks"]
html_theme = "furo"
html_title = f"Levada {release}"
html_copy_source = False
myst_heading_anchors = 4
autodoc_member_order = "bysource"
maximum_signature_line_length = 88
# unions by their names: what they are made of is a table in api.md
autodoc_type_aliases = {
    name: name for name in ("StreamSource", "StaticSource", "Streams", "Statics", "Rows", "Paths")
}
# RSP-QL is more than the SPARQL that Pygments knows, and "..." in output is no JSON
suppress_warnings = ["misc.highlighting_failure"]

FILE = re.compile(r"^```(\w+) ([\w./-]+)$", re.MULTILINE)
"""An example that is a file, with its language and name."""
NAMED = re.compile(r'^<a id="([\w-]+)"></a>', re.MULTILINE)
"""A place that has a name and no heading."""
UNKNOWN = {"csv": "text"}
"""Languages that Pygments does not know."""


def with_captions(page: str) -> str:
    """A page as Sphinx takes it: files that are examples have their names above them.

    >>> print(with_captions("```csv a.csv"))
    ```{code-block} text
    :caption: a.csv
    <BLANKLINE>
    """

    def block(found: re.Match[str]) -> str:
        language = UNKNOWN.get(found[1], found[1])
        return f"```{{code-block}} {language}\n:caption: {found[2]}\n"

    return NAMED.sub(r"(\1)=\n", FILE.sub(block, page))


ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
"""What Sphinx writes of an alias that is part of a union."""


def setup(app: Any) -> None:
    """Called by Sphinx."""

    def read(_app: object, _page: str, source: list[str]) -> None:
        source[0] = with_captions(source[0])

    def sign(*event: Any) -> tuple[str | None, str | None]:
        *_, arguments, returned = event
        return arguments and ALIAS.sub(r"\1", arguments), returned and ALIAS.sub(r"\1", returned)

    app.connect("source-read", read)
    app.connect("autodoc-process-signature", sign)
