"""CQELS Cloud (Le Phuoc, Quoc, Le Van, Hauswirth: ISWC 2013), its experiments with LSBench: what
happens in a social network, queries with windows and constants that are drawn, and how many answers
they have, counted by pairs of posts and of posts and likes, without an engine.

Of the triples three in five are of posts: each has a creator, a channel and two tags, all of one
time. Two in five are likes, each of a post of the last half minute. Users and tags are drawn, the
first ones more often; times are whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from levada.core.array_types import Ints, Longs

SIB = "http://www.ins.cwi.nl/sib/vocabulary/"
SIOC = "http://rdfs.org/sioc/ns#"
FOAF = "http://xmlns.com/foaf/0.1/"
POSTS, LIKES = "http://deri.org/poststream", "http://deri.org/likedpoststream"
SECOND, STEP, LONGEST = 1000, 10, 60
PREFIXES = f"PREFIX sib: <{SIB}> PREFIX sioc: <{SIOC}> PREFIX foaf: <{FOAF}>\n"
USERS, CHANNELS, TAGS = 1000, 1000, 1000
STREAMS = {"q1": (POSTS,), "q4": (POSTS,), "q5": (POSTS, LIKES), "q10": (POSTS, LIKES)}
FILES = {POSTS: "post.nt", LIKES: "likedpost.nt"}
STATIC = {"q5": "knows.nt"}
DIALECTS = {"q1": "rspql", "q4": "cqels", "q5": "cqels", "q10": "rspql"}
_OF_ONE = "?post{0} sib:hashtag ?tag . <urn:uWHO> sioc:creator_of ?post{0}"
TEXTS = {
    "q1": f"""{PREFIXES}SELECT ?p ?o FROM NAMED WINDOW <urn:w> ON <{POSTS}> [RANGE PT1S STEP PT1S]
        WHERE {{ WINDOW <urn:w> {{ <urn:uWHO> ?p ?o }} }}""",
    "q4": f"""{PREFIXES}SELECT ?post1 ?post2 ?tag WHERE {{
        STREAM <{POSTS}> [RANGE LONGs] {{ {_OF_ONE.format(1)} }}
        STREAM <{POSTS}> [RANGE LONGs] {{ {_OF_ONE.format(2)} }}
        FILTER(?post1 != ?post2) }}""",
    "q5": f"""{PREFIXES}SELECT ?fan ?post ?user WHERE {{
        STREAM <{POSTS}> [RANGE LONGs] {{ <urn:chWHO> sioc:container_of ?post .
            ?user sioc:creator_of ?post }}
        STREAM <{LIKES}> [RANGE LONGs] {{ ?fan sib:like ?post }}
        ?fan foaf:knows ?user }}""",
    "q10": f"""{PREFIXES}SELECT ?user (COUNT(?fan) AS ?n)
        FROM NAMED WINDOW <urn:p> ON <{POSTS}> [RANGE PTLONGS STEP PT{STEP}S]
        FROM NAMED WINDOW <urn:l> ON <{LIKES}> [RANGE PTLONGS STEP PT{STEP}S]
        WHERE {{
            WINDOW <urn:p> {{ <urn:chWHO> sioc:container_of ?post . ?user sioc:creator_of ?post }}
            WINDOW <urn:l> {{ ?fan sib:like ?post }}
        }} GROUP BY ?user""",
}
"""``WHO`` and ``LONG`` are drawn."""


QUOTED = {
    "Fig. 6a, on 8 nodes: 10,000 patterns, or an aggregate": "more than 100,000 inputs a second",
    "Fig. 6b, all five": "less than 500 MB a second on the network",
    "Fig. 7, Q4 and Q10 of 10 queries, of 100": "24,000 and 21,000 triples a second on 32 nodes",
    "Fig. 7, each": "ten times the queries halve the triples a second, about",
}
FIGURES = {
    "Fig. 6a, 10,000 and 100,000 patterns": ("quoted, measured", "Q1 of `bench lsbench`"),
    "Fig. 6a, 5-way join, aggregate of 1 M": ("quoted, measured", "`bench multiway`"),
    "Fig. 6a, 10 M static mappings": ("measured", "`bench static`"),
    "Fig. 6b": ("quoted, measured", "bytes exchanged: `bench placed`, `multiway`, `windowed`"),
    "Fig. 7": ("quoted, measured", "`bench lsbench`"),
    "nodes that come and go": ("measured", "`bench elastic`, bench/results/elastic.svg"),
    "delays, memory": ("measured", "p50 and p99: `bench latency`; the peak of each side is told"),
    "2 to 32 nodes": ("not measurable here", "one machine of two cores"),
}
"""What its text says, and what each figure is here, and where."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The queries of a run: the user or channel, and the seconds, of each."""

    who: Longs
    seconds: Longs

    def texts(self, workload: str) -> list[str]:
        """Their texts."""
        both = zip(map(str, self.who.tolist()), map(str, self.seconds.tolist()), strict=True)
        return [TEXTS[workload].replace("WHO", who).replace("LONG", long) for who, long in both]


def drawn(workload: str, queries: int) -> Drawn:
    """So many queries, always the same: users of Q1 are as many as queries, each asked of once."""
    rng = np.random.default_rng(len(workload) * 1000 + queries)
    seconds = rng.integers(1, LONGEST + 1, queries)
    if workload == "q1":
        return Drawn(np.arange(queries), np.ones(queries, np.int64))
    return Drawn(rng.integers(0, USERS, queries), seconds)


@dataclass(frozen=True, slots=True)
class Life:
    """The posts, each with its time, user, channel and tags; the likes, each with its time, its
    post, and a user whom the fan knows.
    """

    at: Longs
    user: Longs
    channel: Longs
    tags: Ints
    liked_at: Longs
    liked: Longs
    known: Longs

    @property
    def triples(self) -> int:
        """Of both streams."""
        return 4 * len(self.at) + len(self.liked)


def users(workload: str, queries: int) -> int:
    """How many users there are: each query of Q1 has one of its own."""
    return queries if workload == "q1" else USERS


def happened(rate: int, seconds: int, users: int = USERS) -> Life:
    """A life of so many seconds, of about so many triples each."""
    rng = np.random.default_rng(7)
    posts, likes = int(rate * 0.15 * seconds), int(rate * 0.4 * seconds)
    at = np.sort(rng.integers(0, seconds * SECOND, posts))
    tags = _drawn(rng, TAGS, (posts, 2))
    tags[:, 1] = np.where(tags[:, 0] == tags[:, 1], (tags[:, 1] + 1) % TAGS, tags[:, 1])
    liked_at = np.sort(rng.integers(SECOND, seconds * SECOND, likes))
    upto = np.searchsorted(at, liked_at, "left")
    since = np.searchsorted(at, liked_at - 30 * SECOND, "left")
    liked = (since + rng.random(likes) * (upto - since)).astype(np.int64)
    there = upto > since
    channel = rng.integers(0, CHANNELS, posts)
    user = _drawn(rng, users, (posts,))
    liked = liked[there]
    known = np.where(rng.random(len(liked)) < 0.3, user[liked], rng.integers(0, users, len(liked)))
    return Life(at, user, channel, tags.astype(np.int32), liked_at[there], liked, known)


def _drawn(rng: np.random.Generator, n: int, shape: tuple[int, ...]) -> Longs:
    """Numbers below n, the first ones more often."""
    weight = (np.arange(n) + 10.0) ** -0.5
    found: Longs = rng.choice(n, shape, p=weight / weight.sum())
    return found


def write(life: Life, folder: Path) -> None:
    """The streams as files."""
    with (folder / FILES[POSTS]).open("w") as file:
        rows = zip(life.at, life.user, life.channel, life.tags.tolist(), strict=True)
        for i, (at, user, channel, tags) in enumerate(rows):
            post = f"<urn:post{i}>"
            file.write(
                f"<urn:u{user}> <{SIOC}creator_of> {post} {at} .\n"
                f"<urn:ch{channel}> <{SIOC}container_of> {post} {at} .\n"
                + "".join(f'{post} <{SIB}hashtag> "tag{tag}" {at} .\n' for tag in tags)
            )
    with (folder / FILES[LIKES]).open("w") as file:
        for i, (at, post) in enumerate(zip(life.liked_at, life.liked, strict=True)):
            file.write(f"<urn:fan{i}> <{SIB}like> <urn:post{post}> {at} .\n")
    with (folder / STATIC["q5"]).open("w") as file:
        for i, user in enumerate(life.known.tolist()):
            file.write(f"<urn:fan{i}> <{FOAF}knows> <urn:u{user}> .\n")


def expected(workload: str, life: Life, queries: Drawn) -> int:
    """How many results these queries have up to the last element of each stream."""
    return {"q1": _q1, "q4": _q4, "q5": _q5, "q10": _q10}[workload](life, queries)


def _q1(life: Life, queries: Drawn) -> int:
    """A post's triple each, of the seconds that are closed: what is after the last is not."""
    closed = life.at < life.at[-1] // SECOND * SECOND
    return int(np.isin(life.user[closed], queries.who).sum())


def _q4(life: Life, queries: Drawn) -> int:
    """Pairs of posts of a user with a tag, both ways, as many as queries reach from one to the
    other.
    """
    key = np.repeat(life.user, 2) * TAGS + life.tags.ravel()
    order = np.lexsort((np.repeat(life.at, 2), key))
    user, key, at = np.repeat(life.user, 2)[order], key[order], np.repeat(life.at, 2)[order]
    longer = _longer(queries)
    found, n, apart = 0, len(key), 1
    while apart < n:
        same = np.flatnonzero(key[apart:] == key[:-apart])
        if not len(same):
            break
        found += 2 * int(longer(user[same], at[same + apart] - at[same]).sum())
        apart += 1
    return found


def _q5(life: Life, queries: Drawn) -> int:
    """The likes of users whom the fan knows, as many as queries of the channel reach from the post
    to the like.
    """
    post = life.liked[life.known == life.user[life.liked]]
    apart = life.liked_at[life.known == life.user[life.liked]] - life.at[post]
    return int(_longer(queries)(life.channel[post], apart).sum())


def _longer(queries: Drawn) -> Callable[[Longs, Longs], Longs]:
    """How many queries of each user (or channel) have windows in which times so far apart lie."""
    order = np.lexsort((queries.seconds, queries.who))
    who, ms = queries.who[order], queries.seconds[order] * SECOND
    codes = who * (2 * LONGEST * SECOND) + ms

    def count(of: Longs, apart: Longs) -> Longs:
        near = np.minimum(apart, 2 * LONGEST * SECOND - 1)
        least = np.searchsorted(codes, of * (2 * LONGEST * SECOND) + near, "right")
        return np.searchsorted(who, of, "right") - least

    return count


def _q10(life: Life, queries: Drawn) -> int:
    """A user, close and query each, of posts and likes both within the window; windows open each
    ``STEP``, and those count that close before the last element of both streams.
    """
    last = min(int(life.at[-1]), int(life.liked_at[-1]))
    order = np.argsort(life.channel[life.liked], kind="stable")
    liked = life.liked[order]
    both = life.at[liked], life.liked_at[order]
    rows = np.minimum(*both), np.maximum(*both), life.user[liked]
    first = np.searchsorted(life.channel[liked], np.arange(CHANNELS + 1))
    found = 0
    for who, seconds in zip(queries.who.tolist(), queries.seconds.tolist(), strict=True):
        lo, hi, user = (column[first[who] : first[who + 1]] for column in rows)
        close = np.arange(seconds % STEP, last // SECOND + 1, STEP) * SECOND
        close = close[close <= last]
        within = (hi[:, None] < close) & (lo[:, None] >= close - seconds * SECOND)
        row, at = np.nonzero(within)
        found += len(np.unique(user[row] * len(close) + at))
    return found
