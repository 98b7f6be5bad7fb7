"""The house is in order: what the budgets and the line of imports say of ``src/levada`` holds.

What does not hold yet stands in a ``KNOWN_`` constant with its reason. These lists only shrink: a
new offender fails, and so does an entry that offends no more, until it is deleted here.

The line of imports as a whole is a contract of import-linter (``pyproject.toml``); here stands what
such a contract cannot say.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "levada"
LINES = 800
"""The most lines of a file."""
BODY = 65
"""The most lines of a function, its docstring apart."""
POSITIONAL = 5
"""The most positional parameters of a function, ``self`` and ``cls`` apart."""

QUERY_PATH = ("language", "plan")
SEALED = "plan.execution"
DATA_PATH = (
    "connectors.ingest", "connectors.serialization", "connectors.sinks", "connectors.sources",
    "connectors.spool", "operators", "kernels", "runtime",
)  # fmt: skip
PACKAGES = frozenset(
    {
        "checkpoint", "cli", "connectors", "core", "engine", "kernels", "language", "operators",
        "placement", "plan", "runtime", "server", "testing",
    }
)  # fmt: skip
DEPTH = 3
"""The most folders between ``levada`` and a module."""
WIDE_ROOMS = ("kernels", "cli")
"""A kernel has a parameter for each array, a command of the command line one for each option."""

KNOWN_CIRCLES: frozenset[frozenset[str]] = frozenset()
KNOWN_LONG_FILES: frozenset[str] = frozenset()
KNOWN_CROSSINGS: frozenset[tuple[str, str]] = frozenset()
KNOWN_LONG_FUNCTIONS: frozenset[str] = frozenset()
KNOWN_WIDE_FUNCTIONS: frozenset[str] = frozenset()


def name_of(path: Path) -> str:
    """A file's module, below ``levada``: ``operators.state.lsm_runs``; a package is its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FOUND = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FOUND[module].read_text())


def imported(module: str) -> Iterator[str]:
    """The modules of the house that a module names in an import, wherever that stands: at the top,
    within a function, or for type checkers only.
    """
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "levada":
                yield home(name.removeprefix("levada").removeprefix("."))


def home(name: str) -> str:
    """The module that a dotted name is, or is in."""
    while name not in FOUND:
        name = name.rpartition(".")[0]
    return name


def graph() -> dict[str, set[str]]:
    """What each module imports; the package ``levada`` itself, which imports lazily, is left out:
    who says ``levada.X`` means what stands behind it.
    """
    return {m: set(imported(m)) - {m, ""} for m in FOUND if m}


def circles(edges: Mapping[str, Collection[str]]) -> set[frozenset[str]]:
    """The strongly connected components of more than one node (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in edges[node]:
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            component = stack[stack.index(node) :]
            del stack[-len(component) :]
            if len(component) > 1:
                found.add(frozenset(component))

    for node in edges:
        if node not in order:
            visit(node)
    return found


def within(module: str, rooms: Collection[str]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, str, Function, bool]]:
    """Module, qualified name, tree, and whether the first parameter is ``self`` or ``cls``."""
    for module in FOUND:
        for name, function, bound in defined(tree(module), ""):
            yield module, name, function, bound


def defined(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function, bool]]:
    """The functions that a piece of syntax holds, at any depth, with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            static = any(ast.unparse(d) == "staticmethod" for d in child.decorator_list)
            yield prefix + child.name, child, isinstance(node, ast.ClassDef) and not static
        inner = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{child.name}."
        yield from defined(child, inner)


def body_lines(function: Function) -> int:
    """Its lines from ``def`` to the end, without the docstring."""
    assert function.end_lineno is not None, "a parsed function has an end"
    first = function.body[0]
    docstring = 0
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        docstring = first.end_lineno - first.lineno + 1
    return function.end_lineno - function.lineno + 1 - docstring


def check(found: Collection[object], known: Collection[object], rule: str) -> None:
    """Nothing offends but what is known to, and what is known to does."""
    new, gone = (
        sorted(map(show, set(found) - set(known))),
        sorted(map(show, set(known) - set(found))),
    )
    assert not new, f"{rule}. New offenders:\n" + "\n".join(new)
    assert not gone, f"{rule}. These hold now, delete their entries:\n" + "\n".join(gone)


def show(entry: object) -> str:
    return repr(sorted(entry) if isinstance(entry, frozenset) else entry)


def test_no_files_import_each_other_in_a_circle() -> None:
    check(circles(graph()), KNOWN_CIRCLES, "No circle of files, type-only imports counted")


def test_the_packages_are_thirteen_and_import_each_other_in_no_circle() -> None:
    packages = {name.split(".")[0] for name, path in FOUND.items() if path.parent != ROOT}
    assert packages == PACKAGES
    edges: dict[str, set[str]] = {package: set() for package in PACKAGES}
    for module, others in graph().items():
        package = module.split(".")[0]
        if package in PACKAGES:
            edges[package] |= {other.split(".")[0] for other in others} & PACKAGES - {package}
    check(circles(edges), (), "No circle of packages")


def test_no_module_lies_too_deep() -> None:
    deep = {name for name, path in FOUND.items() if len(path.relative_to(ROOT).parts) > DEPTH + 1}
    check(deep, (), f"At most {DEPTH} folders")


def test_no_file_is_too_long() -> None:
    long = {m for m, path in FOUND.items() if len(path.read_text().splitlines()) > LINES}
    check(long, KNOWN_LONG_FILES, f"At most {LINES} lines in a file")


def test_the_query_path_does_not_know_the_data_path() -> None:
    crossings = {
        (module, other)
        for module, others in graph().items()
        if within(module, QUERY_PATH) and not within(module, [SEALED])
        for other in others
        if within(other, DATA_PATH)
    }
    check(crossings, KNOWN_CROSSINGS, "The query path imports nothing of the data path")


def test_no_function_is_too_long() -> None:
    long = {f"{m}:{name}" for m, name, f, _ in functions() if body_lines(f) > BODY}
    check(long, KNOWN_LONG_FUNCTIONS, f"At most {BODY} lines in a function")


def test_no_function_has_too_many_positional_parameters() -> None:
    wide = {
        f"{module}:{name}"
        for module, name, f, bound in functions()
        if not within(module, WIDE_ROOMS)
        and len(f.args.posonlyargs) + len(f.args.args) - bound > POSITIONAL
    }
    check(wide, KNOWN_WIDE_FUNCTIONS, f"At most {POSITIONAL} positional parameters")


def test_the_rooms_that_the_rules_name_are_there() -> None:
    for room in (*QUERY_PATH, SEALED, *DATA_PATH, *WIDE_ROOMS):
        assert room in FOUND, f"there is no room {room}"


def test_circles_are_found() -> None:
    edges = {"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": [], "e": ["f"], "f": ["e"]}
    assert circles(edges) == {frozenset("bc"), frozenset("ef")}
