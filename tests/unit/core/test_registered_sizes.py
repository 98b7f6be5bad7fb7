"""Whatever constant is compared with a number of rows, queries or bytes is a registered size."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import levada
from support.random_sizes import PACKAGES, registered

ROOT = Path(levada.__file__).parent
# Modules, and constants of others, that are no sizes: digits and bits of numbers, versions and
# codes, formats of files, seconds, attempts, bounds that users see, and figures of cost models,
# whose choices differ in time alone.
OTHERS = (
    "operators.row_limit.VALUE",
    "operators.expressions.numeric",
    "operators.expressions.sort_keys",
    "operators.expressions.scalar",
    "operators.aggregation.decimal_sums",
    "operators.aggregation.slicing.slice_state._TWICE",
    "operators.aggregation.incremental_group_by",
    "operators.windowed.adaptive_join.FIRST",
    "operators.rows.range_keys",
    "plan.encoding",
    "plan.logical",
    "plan.optimizer",
    "operators.matching.pattern_table.MAX_COUNTED_MEMBERS",
    "plan.sharing.per_leaf_times._LEAF",
    "plan.execution.persistent_map.SHARE",
    "plan.topology.topology_document",
    "plan.topology.catalog_members.SHARE",
    "plan.migration.reoptimizer.PATIENCE",
    "runtime.rebalancing",
    "runtime.cost_model.admission_control",
    "runtime.cost_model.epoch_time_trend",
    "runtime.cost_model.memory_admission",
    "engine.epoch_loop",
    "runtime.driver.parallelism.MOST_BYTES",
    "runtime.driver.parallelism.SURE",
    "runtime.driver.parallelism.TRY",
    "checkpoint.executor_affinity",
    "runtime.spark",
    "core.checkpoint_files.FORMAT",
    "checkpoint.checkpoint_folder.SHARE",
    "checkpoint.object_store.local_state_cache",
    "checkpoint.state_files.SUFFIX",
    "checkpoint.reader_leases.MOST_EPOCHS",
    "runtime.task.operator_failures",
    "runtime.task.static_rows._PREDICATE",
    "core.key_groups.FINEST",
    "operators.windowing.report_count_bound",
    "operators.state.checksummed_frames",
    "operators.state.key_ranges.DEEPEST",
    "operators.state.key_ranges._BITS",
    "operators.state.term_retention.ID_BYTES",
    "operators.state.term_retention._RETAINED_LEVEL",
)


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
        for path in (ROOT / package.replace(".", "/")).rglob("*.py"):
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
