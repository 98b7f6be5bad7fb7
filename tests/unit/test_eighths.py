"""Eight parts of the long tests: each test is in one, and modules with a dear fixture are whole."""

from collections import Counter
from pathlib import Path

from support.eighths import EIGHTHS, WHOLE_MODULES, eighth_of

ROOT = Path(__file__).parents[2]


def test_eighths_of_many_tests_are_about_equal() -> None:
    sizes = Counter(eighth_of(f"tests/x/test_{i}.py::test[{i % 7}]") for i in range(8000))
    assert set(sizes) == set(range(EIGHTHS)) and min(sizes.values()) > 800


def test_a_whole_module_is_in_one_eighth_and_exists() -> None:
    for module in WHOLE_MODULES:
        assert (ROOT / module).is_file(), module
        assert len({eighth_of(f"{module}::test_{i}") for i in range(50)}) == 1
    assert eighth_of("tests/a.py::test_b") == 1, "a number that never changes repeats an eighth"
