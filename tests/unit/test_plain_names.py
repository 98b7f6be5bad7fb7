"""Names say what they hold: pronouns and bare participles are not names.

What still offends is listed in ``known_names.txt``, a line each: the kind, the file, the name. The
list only shrinks: a new offender fails, and so does a line that offends no more.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "levada"
KNOWN = Path(__file__).with_name("known_names.txt")
ASSIGNED = {"found", "told", "given", "own"}
WORDS = {
    "asked", "came", "found", "given", "gone", "held", "kept", "known", "left", "looked", "made",
    "met", "of", "one", "over", "own", "said", "seen", "taken", "told", "wanted",
}  # fmt: skip
"""Names that no function, class or module has."""
QUANTITIES = {
    "AGAIN", "ENOUGH", "EVERY", "FAR", "FEW", "LARGE", "LEAST", "LONG", "MANY", "MOST",
    "NEAR", "OPEN", "PAUSE", "ROOM", "SMALL", "SOME", "WAIT", "WORTH",
}  # fmt: skip
"""Constants say what they count, too: MAX_QUERIES."""
PARTICIPLE = re.compile(r"[a-z]{2,}ed")
METAPHORS = {
    "beside", "bell", "dear", "door", "heart", "lives", "pulse", "reign", "sight", "tempo",
}  # fmt: skip
VERBS = {"embed", "exceed", "feed", "heed", "need", "proceed", "seed", "speed", "succeed"}


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def offenders(path: Path) -> Iterator[str]:
    """Its offending names, as lines of the list."""
    file = path.relative_to(ROOT).as_posix()
    if path.stem in WORDS | METAPHORS:
        yield f"module {file} {path.stem}"
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name.strip("_") in QUANTITIES:
                yield f"constant {file} {name}"
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in ASSIGNED:
                yield f"assigned {file} {name}"
            case ast.ClassDef(name=name) if name.lstrip("_").lower() in WORDS | METAPHORS:
                yield f"class {file} {name}"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bare = name.strip("_")
                participle = PARTICIPLE.fullmatch(bare) and bare not in VERBS
                if bare in WORDS or (participle and not is_property(node)):
                    yield f"function {file} {name}"


@pytest.mark.long
def test_names_are_not_pronouns_or_bare_participles() -> None:
    offending = {line for path in sorted(ROOT.rglob("*.py")) for line in offenders(path)}
    known = KNOWN.read_text().splitlines()
    assert known == sorted(set(known)), "the list is sorted"
    new, gone = sorted(offending - set(known)), sorted(set(known) - offending)
    assert not new, "Name the content, or say what the function does:\n" + "\n".join(new)
    assert not gone, "These offend no more, delete their lines:\n" + "\n".join(gone)
