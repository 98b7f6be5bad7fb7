"""Whatever constant is compared with a number of rows, queries or bytes is a registered size."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import levada
from drawn_sizes import PACKAGES, registered

ROOT = Path(levada.__file__).parent
# Modules, and constants of others, that are no sizes: digits and bits of numbers, versions and
# codes, formats of files, seconds, attempts, bounds that users see, and figures of cost models,
# whose choices differ in time alone.
OTHERS = (
    "operators.border.written.VALUE", "operators.expressions.numeric",
    "operators.expressions.rank", "operators.expressions.scalar", "operators.group.decimals",
    "operators.group.sliced.kept._TWICE", "operators.group.sums_by_changes",
    "operators.interval.join_forms.FIRST", "operators.rows.told.bounds", "plan.encoding",
    "plan.physical.shared.by_leaf._LEAF", "plan.sealed.changed.layered.SHARE",
    "plan.topology.document", "plan.topology.members.SHARE",
    "plan.topology.switches.looks.PATIENCE", "runtime.balance", "runtime.driver.costs.admission",
    "runtime.driver.costs.interval",
    "runtime.driver.costs.room", "runtime.driver.loop", "runtime.driver.task_count.MOST_BYTES",
    "runtime.driver.task_count.SURE", "runtime.driver.task_count.TRY", "runtime.homes",
    "runtime.spark", "runtime.spool", "runtime.store.checkpoint.FORMAT",
    "runtime.store.checkpoint.SHARE", "runtime.store.remote.host_copies",
    "runtime.store.state_files.SUFFIX", "runtime.store.tails.MOST_EPOCHS",
    "runtime.task.failures", "runtime.task.static.static_rows._PREDICATE",
    "terms.group_of.FINEST", "windows.report_bound", "windows.state.checked",
    "windows.state.ranges.DEEPEST",
    "windows.state.ranges._BITS", "windows.state.term_runs.ID_BYTES",
    "windows.state.term_runs._LEFT",
)  # fmt: skip


def integers(tree: ast.Module) -> set[str]:
    """The constants of a module that are whole numbers above one."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            parts = list(ast.walk(node.value))
            if all(isinstance(p, ast.BinOp | ast.Constant | ast.operator) for p in parts):
                value = eval(ast.unparse(node.value), {})
                if type(value) is int and value > 1 and node.targets[0].id.isupper():
                    found.add(node.targets[0].id)
    return found


def compared(tree: ast.Module, module: str) -> set[str]:
    """The names, by the module that defines them, with which something is compared."""
    homes = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found = set()
    for node in ast.walk(tree):
        bounds = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if isinstance(node, ast.Compare) or (bounds and node.func.id in ("min", "max", "range")):  # type: ignore[attr-defined]
            names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
            found.update(homes.get(name, f"{module}.{name}") for name in names)
    return found


def test_constants_that_are_compared_are_registered() -> None:
    constants, read = set[str](), set[str]()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(["levada", *path.relative_to(ROOT).with_suffix("").parts])
            tree = ast.parse(path.read_text())
            read |= compared(tree, module)
            constants |= {f"{module}.{name}" for name in integers(tree)}
    left = {
        name
        for name in constants & read
        if not any(f"{name}.".startswith(f"levada.{other}.") for other in OTHERS)
    }
    assert left == set()


def test_each_size_is_where_its_name_says() -> None:
    for size, least in registered().items():
        module, name = size.rsplit(".", 1)
        assert getattr(importlib.import_module(module), name) > least > 0, size
