"""A file that ends Spark's workers is set aside by the engine itself, which goes on without a
restart.
"""

from pathlib import Path

import pytest

from support.poison_files import deadly, documents, letters, start

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.long
def test_a_file_that_ends_workers_is_set_aside_without_a_restart(tmp_path: Path) -> None:
    data = documents(tmp_path / "data")
    status, whole = start(tmp_path / "whole", data)
    assert status == 0, whole
    deadly(data / "a_1900.ttl")
    assert start(tmp_path / "root", data, spark="local") == (0, [1, whole[1]])
    (letter,) = letters(tmp_path / "root")
    assert letter["source"] == "a_1900.ttl"
    assert letter["reason"].startswith("Reading it ended the process with SIG")
