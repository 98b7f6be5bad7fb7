"""Checks the prose of Markdown pages: ``python -m tools.prose [PAGE..]``; part of ``make lint``.

Rules: at most 25 words a sentence; no sentence begins with a clause as its subject (What, Who,
Whose, Which, Of); no words of the list below; lines of at most 100 characters outside tables and
links; table cells of at most 160. Without arguments it checks all pages, and the openings of the
sentences in docstrings of ``src``, those of constants and attributes included.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_WORDS, MAX_LINE, MAX_CELL = 25, 100, 160
OPENINGS = re.compile(r"(What|Who|Whose|Which|Whatever|Whoever|Of)\b")
WORDS = re.compile(
    r"\b(one (?:registers|says|sees|wants|gets|reads|has|can|may|must)|is no [a-z]+ that|are none|"
    r"is none|beside|goes by|as it stands|stands for|is told|are told)\b"
)
FENCE = re.compile(r"^(```+)[^\n]*\n.*?^\1\s*?$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]*`")
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")


def problems(text: str) -> Iterator[tuple[int, str]]:
    """The line and the description of each violation.

    >>> list(problems("What it is, it says."))
    [(1, 'begins with "What"')]
    >>> list(problems("See `a` and [the page](b.md)."))
    []
    """
    text = FENCE.sub(lambda block: "\n" * block.group().count("\n"), text)
    paragraph: list[str] = []
    start = 1
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.startswith("    ") and not paragraph:  # a block of code
            continue
        if line.lstrip().startswith("|"):
            yield from _cells(number, line)
        elif len(line) > MAX_LINE and len(CODE.sub("code", LINK.sub(r"\1", line))) > MAX_LINE:
            yield number, f"has {len(line)} characters"
        begins = not line.strip() or line.lstrip().startswith(("#", "|")) or ITEM.match(line)
        if begins and paragraph:
            yield from _sentences(start, " ".join(paragraph))
            paragraph = []
        if line.strip() and not line.lstrip().startswith(("|", "#", "<")):
            if not paragraph:
                start = number
            paragraph.append(ITEM.sub("", line, count=1).strip())


def _cells(number: int, row: str) -> Iterator[tuple[int, str]]:
    for cell in row.strip().strip("|").split(" | "):
        if len(LINK.sub(r"\1", cell.strip())) > MAX_CELL:
            yield number, f"has a table cell of {len(cell)} characters"


def _sentences(number: int, paragraph: str) -> Iterator[tuple[int, str]]:
    plain = CODE.sub("Code", LINK.sub(r"\1", paragraph)).replace("*", "")
    for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z(\"])|·", plain):
        words = sentence.split()
        if len(words) > MAX_WORDS:
            yield number, f"has a sentence of {len(words)} words: {' '.join(words[:6])} .."
        if (opening := OPENINGS.match(sentence)) and not sentence.endswith("?"):
            yield number, f'begins with "{opening.group()}"'
        if word := WORDS.search(sentence):
            yield number, f'has "{word.group()}"'


def check_page(page: Path) -> Iterator[str]:
    """The violations of a page as texts."""
    for line, problem in problems(page.read_text()):
        yield f"{page.relative_to(ROOT)}:{line}: {problem}"


def check_docstrings(module: Path) -> Iterator[str]:
    """The sentences of a module's docstrings that begin with a clause as their subject."""
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(text := node.value.value, str):
            for line, problem in problems("\n".join(map(str.strip, text.split("\n")))):
                if problem.startswith("begins"):
                    name = module.relative_to(ROOT)
                    yield f"{name}:{node.lineno + line - 1}: {problem}"


def main(arguments: list[str]) -> int:
    """Prints the violations; returns 1 if there are any."""
    pages = [Path(argument).resolve() for argument in arguments]
    pages = pages or sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    lines = [text for page in pages for text in check_page(page)]
    if not arguments:
        modules = sorted((ROOT / "src").rglob("*.py"))
        lines += [text for module in modules for text in check_docstrings(module)]
    print(*lines, sep="\n", end="\n" if lines else "")
    return min(len(lines), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
