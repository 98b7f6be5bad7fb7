"""LSBench's queries in numbers: what is counted of pairs is what queries say, alone and shared."""

from pathlib import Path

import pytest
from bench import lsbench
from bench.papers import cqels_cloud as paper

RATE = 200


@pytest.mark.long
@pytest.mark.parametrize(
    ("workload", "queries"), [("q1", 60), ("q4", 300), ("q5", 300), ("q10", 60)]
)
def test_many_queries_that_share_have_the_results_that_pairs_say(
    workload: str, queries: int, tmp_path: Path
) -> None:
    life = paper.happened(RATE, 30, paper.users(workload, queries))
    paper.write(life, tmp_path)
    drawn = paper.drawn(workload, queries)
    right = paper.expected(workload, life, drawn)
    side = lsbench.side(str(tmp_path), "relax", queries, workload, RATE)
    assert side["count"] == right > 0


def test_pairs_of_posts_are_counted_as_a_loop_would() -> None:
    life = paper.happened(200, 30, 20)
    drawn = paper.Drawn(paper.drawn("q4", 50).who % 20, paper.drawn("q4", 50).seconds)
    pairs = [
        (int(life.user[a]), abs(int(life.at[a] - life.at[b])))
        for a in range(len(life.at))
        for b in range(len(life.at))
        for _ in set(life.tags[a].tolist()) & set(life.tags[b].tolist())
        if a != b and life.user[a] == life.user[b]
    ]
    asked = list(zip(drawn.who.tolist(), drawn.seconds.tolist(), strict=True))
    found = sum(of == who and apart < 1000 * s for of, apart in pairs for who, s in asked)
    assert paper.expected("q4", life, drawn) == found > 0


def test_likes_of_known_users_are_counted_as_a_loop_would() -> None:
    life = paper.happened(200, 30)
    drawn = paper.drawn("q5", 3000)
    asked = list(zip(drawn.who.tolist(), drawn.seconds.tolist(), strict=True))
    count = 0
    for at, post, known in zip(life.liked_at, life.liked, life.known, strict=True):
        if known == life.user[post]:
            apart, channel = at - life.at[post], life.channel[post]
            count += sum(who == channel and apart < 1000 * seconds for who, seconds in asked)
    assert paper.expected("q5", life, drawn) == count > 0
