"""Pages of the documentation: their headings, the links between them, their examples."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

FENCED = re.compile(r"^(```+)[^\n]*\n.*?^\1\s*?$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
NAMED = re.compile(r'<a id="([\w-]+)">')
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w+)(?: ([\w./-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = ("https://", "http://", "mailto:")


def anchor(heading: str) -> str:
    """The anchor of a heading, as it is made where the pages are shown.

    >>> anchor("A triple's way"), anchor("levada run")
    ('a-triples-way', 'levada-run')
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@cache
def prose(page: Path) -> str:
    """A page without its examples, in which nothing is a heading or a link."""
    return FENCED.sub("", page.read_text())


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page: those of its headings (an equal one gets a number) and its own."""
    found: Counter[str] = Counter()
    names = set(NAMED.findall(prose(page)))
    for name in map(anchor, HEADING.findall(prose(page))):
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return frozenset(names)


def dead_links(page: Path) -> list[str]:
    """What is wrong with the links of a page to files and headings beside it, a sentence each."""
    dead = []
    for link in LINK.findall(prose(page)):
        if link.startswith(ELSEWHERE):
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            dead.append(f"{page.name} links to {path}, which is not there.")
        elif heading and heading not in anchors(target):
            dead.append(f"{page.name} links to {link}, which has no such heading.")
    return dead


def examples(page: Path) -> list[tuple[str, str, str]]:
    """The examples of a page in their order: (language, name of a file or "", text)."""
    return FENCE.findall(page.read_text())


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it prints.

    >>> list(commands("$ a b \\\n  c\nd\n$ e\n"))
    [('a b    c', 'd\\n'), ('e', '')]
    """
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.replace("\\\n", " ").partition("\n")
        yield command, output
