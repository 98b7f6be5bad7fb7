"""The number of partitions without an option: on one machine its cores, for good; on a cluster the
cores of the executors, as long as no other option says it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.core.integer_options import Partitions
from levada.engine.placement.placement_options import (
    LearnPlacementOption,
    balancing_of,
    degree_by,
    partitions_of,
)
from levada.errors import UsageError
from levada.runtime.executor import cores, master_of

CLUSTERS = ("spark://host:7077", "yarn", "k8s://https://host:443", "local-cluster[3,2,1024]")


@pytest.mark.parametrize("master", CLUSTERS)
@pytest.mark.parametrize(("wanted", "degree"), [(None, "cores"), (7, "fixed"), ("auto", "model")])
def test_a_cluster_says_how_many(master: str, wanted: Partitions, degree: str) -> None:
    assert degree_by(partitions_of(wanted, None, None, master), None, None) == degree


@pytest.mark.parametrize("master", ["none", "local", "local[*]", "local[4]"])
def test_one_machine_keeps_its_number(master: str) -> None:
    assert degree_by(partitions_of(None, None, None, master), None, None) == "fixed"


def test_other_options_say_it_or_are_refused() -> None:
    balancing = balancing_of("on", None, None, CLUSTERS[0], 0)
    assert partitions_of(None, None, balancing, CLUSTERS[0]) is None
    wish = LearnPlacementOption(2)
    assert partitions_of(None, wish, None, CLUSTERS[0]) is None
    for word in ("auto", "cores"):
        with pytest.raises(UsageError, match=f"partitions is {word}, and place says how many"):
            partitions_of(word, wish, None, "none")


def test_an_option_that_would_be_passed_over_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="partitions is auto, and place says how many"):
        Engine(spark=False, checkpoint=tmp_path / "c", partitions="auto", place="learn:2")


class Context:
    master, defaultParallelism = "spark://host:7077", 12  # noqa: N815


class Session:
    """The part of a classic session that is asked."""

    sparkContext = Context()  # noqa: N815


@pytest.mark.parametrize("session", [None, False])
def test_the_master_of_a_session_is_asked(session: Any) -> None:
    assert master_of(session, "local[3]") == "local[3]" and cores("local[3]", session) == 3
    assert master_of(Session(), "local[*]") == "spark://host:7077"
    assert cores("spark://host:7077", Session()) == 12
