"""LSBench as cases: a social network that is generated after its schema, and its twelve queries.

Who knows whom follows a power law; who is known by many says more, and is liked more; a friend's
posts are the ones that are commented and liked. Five streams: posts and their comments, likes of
posts, photos with the people on them, likes of photos, positions. An element is what one does at
once. The queries are written here in RSP-QL: Q1 to Q6 after those that were published, Q7 to Q12
after what they are to test (joins of three streams, aggregates, negation, OPTIONAL, UNION, a
hierarchy of static data).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from generated import asked

from levada.testing.reference_model import Element
from support.generators import Case, CaseQuery, Clause

SIB = "http://www.ins.cwi.nl/sib/vocabulary/"
FOAF = "http://xmlns.com/foaf/0.1/"
SIOC = "http://rdfs.org/sioc/ns#"
WGS = "http://www.w3.org/2003/01/geo/wgs84_pos#"
XSD = "http://www.w3.org/2001/XMLSchema#"
E = "http://example.org/"
PREFIXES = (
    f"PREFIX sib: <{SIB}> PREFIX foaf: <{FOAF}> PREFIX sioc: <{SIOC}> PREFIX wgs: <{WGS}> "
    f"PREFIX : <{E}>\n"
)
POSTS, POST_LIKES, PHOTOS, PHOTO_LIKES, POSITIONS = (
    f"http://deri.org/{name}stream" for name in ("post", "likedpost", "photo", "likedphoto", "gps")
)
SECOND = 1000


@dataclass(frozen=True, slots=True)
class Network:
    """So many users, channels and tags, each user with some friends; for so many seconds, so many
    acts in each.
    """

    users: int = 30
    friends: int = 4
    channels: int = 6
    tags: int = 5
    seconds: int = 60
    acts: int = 4


@dataclass
class Life:
    """What has happened so far: what was written, what was shown, by whom."""

    posts: list[tuple[str, int]] = field(default_factory=list)
    photos: list[tuple[str, int]] = field(default_factory=list)


def _iri(name: str) -> str:
    return f"<{E}{name}>"


def friendships(network: Network, seed: int) -> list[set[int]]:
    """Who knows whom: each newcomer knows earlier ones, those whom many know first (preferential
    attachment); both ways.
    """
    rng = random.Random(seed)
    known: list[set[int]] = [set() for _ in range(network.users)]
    ends = [0]
    for user in range(1, network.users):
        for other in {rng.choice(ends) for _ in range(network.friends)}:
            known[user].add(other)
            known[other].add(user)
            ends += [user, other]
    return known


def static(network: Network, seed: int = 1) -> tuple[str, ...]:
    """Users, their persons, friends, and channels; channels in channels."""
    rng = random.Random(seed + 1)
    triples = []
    for user, friends in enumerate(friendships(network, seed)):
        u = _iri(f"u{user}")
        triples.append(f"{u} <{SIOC}account_of> {_iri(f'p{user}')}")
        triples += [f"{u} <{FOAF}knows> {_iri(f'u{f}')}" for f in sorted(friends)]
        channels = sorted(rng.sample(range(network.channels), 2))
        triples += [f"{u} <{SIOC}subscriber_of> {_iri(f'channel{c}')}" for c in channels]
    triples += [
        f"{_iri(f'channel{c}')} <{SIOC}has_parent> {_iri(f'channel{c // 2}')}"
        for c in range(1, network.channels)
    ]
    return tuple(triples)


def streams(network: Network, seed: int = 1) -> dict[str, tuple[Element, ...]]:
    """What the users do, in order of time: the more friends, the more often."""
    rng = random.Random(seed)
    known = friendships(network, seed)
    ends = [user for user, friends in enumerate(known) for _ in friends]
    life = Life()
    found: dict[str, list[Element]] = {
        name: [] for name in (POSTS, POST_LIKES, PHOTOS, PHOTO_LIKES, POSITIONS)
    }
    number = 0
    for second in range(network.seconds):
        for at in sorted(rng.randrange(0, SECOND, 50) for _ in range(network.acts)):
            user = rng.choice(ends)
            number += 1
            for stream, triples in _act(rng, network, life, known, user, number):
                found[stream].append(Element(second * SECOND + at, tuple(triples)))
    return {name: tuple(elements) for name, elements in found.items()}


def _act(
    rng: random.Random, network: Network, life: Life, known: list[set[int]], user: int, n: int
) -> Iterator[tuple[str, list[str]]]:
    """A post, a comment on a friend's post, a photo with friends, a like, a step on the way."""
    u, what = _iri(f"u{user}"), rng.random()
    posts = [post for post, by in life.posts[-40:] if by in known[user]]
    photos = [photo for photo, by in life.photos[-40:] if by in known[user]]
    if what < 0.35:
        post = _iri(f"post{n}")
        life.posts.append((post, user))
        tags = {rng.randrange(network.tags) for _ in range(2)}
        yield (
            POSTS,
            [
                f"{u} <{SIOC}creator_of> {post}",
                f"{_iri(f'channel{rng.randrange(network.channels)}')} <{SIOC}container_of> {post}",
                *(f'{post} <{SIB}hashtag> "tag{tag}"' for tag in sorted(tags)),
            ],
        )
    elif what < 0.5 and posts:
        comment = _iri(f"comment{n}")
        yield (
            POSTS,
            [
                f"{comment} <{SIOC}reply_of> {rng.choice(posts)}",
                f"{u} <{SIOC}creator_of> {comment}",
            ],
        )
    elif what < 0.65:
        photo, on = (
            _iri(f"photo{n}"),
            sorted(rng.sample(sorted(known[user]), min(2, len(known[user])))),
        )
        life.photos.append((photo, user))
        yield (
            PHOTOS,
            [
                f"{u} <{SIOC}creator_of> {photo}",
                *(f"{photo} <{SIB}usertag> {_iri(f'u{f}')}" for f in on),
            ],
        )
    elif what < 0.8 and posts:
        yield POST_LIKES, [f"{u} <{SIB}like> {rng.choice(posts)}"]
    elif what < 0.9 and photos:
        yield PHOTO_LIKES, [f"{u} <{SIB}like> {rng.choice(photos)}"]
    else:
        here = rng.randrange(100)
        yield (
            POSITIONS,
            [
                f'{u} <{WGS}{axis}> "{value}"^^<{XSD}integer>'
                for axis, value in (("lat", here), ("long", n))
            ],
        )


def queries(network: Network) -> list[CaseQuery]:
    """Q1 to Q12."""
    short, long = Clause("step", 5 * SECOND, 5 * SECOND), Clause("step", 15 * SECOND, 5 * SECOND)
    post, photo, likes = "WINDOW <urn:post>", "WINDOW <urn:photo>", "WINDOW <urn:likes>"
    minute = Clause("range", 20 * SECOND)

    def q(
        number: int,
        head: str,
        body: str,
        tail: str = "",
        output: str = "RSTREAM",
        **on: tuple[str, Clause],
    ) -> CaseQuery:
        windows = {f"urn:{name}": over for name, over in on.items()}
        return asked(f"q{number}", PREFIXES, head, windows, body, tail, output=output)

    return [
        q(1, "SELECT ?p ?o", f"{post} {{ :u0 ?p ?o }}", post=(POSTS, short)),
        q(2, "SELECT ?post", f"{post} {{ ?user sioc:creator_of ?post }} ?user sioc:account_of :p0",
          post=(POSTS, short)),
        q(3, "SELECT ?friend ?post",
          f"{post} {{ ?friend sioc:creator_of ?post }} ?user foaf:knows ?friend ; "
          "sioc:account_of :p0", output="ISTREAM", post=(POSTS, minute)),
        q(4, "SELECT ?one ?two ?tag",
          f"{post} {{ ?user sioc:creator_of ?one, ?two . ?one sib:hashtag ?tag . "
          "?two sib:hashtag ?tag } FILTER(?one != ?two)", post=(POSTS, long)),
        q(5, "SELECT ?on ?by ?photo",
          f"{likes} {{ ?by sib:like ?photo }} {photo} {{ ?photo sib:usertag ?on }} "
          "?on foaf:knows ?by", output="ISTREAM", likes=(PHOTO_LIKES, minute),
          photo=(PHOTOS, Clause("range", 40 * SECOND))),
        q(6, "SELECT ?user ?friend ?post ?channel",
          f"{post} {{ ?channel sioc:container_of ?post }} "
          f"{likes} {{ ?friend sib:like ?post }} ?user foaf:knows ?friend ; "
          "sioc:subscriber_of ?channel",
          post=(POSTS, Clause("step", 30 * SECOND, 5 * SECOND)), likes=(POST_LIKES, long)),
        q(7, "SELECT ?channel (COUNT(?post) AS ?n)",
          f"{post} {{ ?channel sioc:container_of ?post }}",
          "GROUP BY ?channel ORDER BY DESC(?n) ?channel LIMIT 3", post=(POSTS, long)),
        q(8, "SELECT ?post (COUNT(?by) AS ?n)",
          f"{post} {{ ?user sioc:creator_of ?post . ?post sib:hashtag ?tag }} "
          f"OPTIONAL {{ {likes} {{ ?by sib:like ?post }} }}", "GROUP BY ?post", post=(POSTS, long),
          likes=(POST_LIKES, long)),
        q(9, "SELECT ?post ?user", f"{post} {{ ?user sioc:creator_of ?post . "
          "?post sib:hashtag ?tag MINUS { ?comment sioc:reply_of ?post } }", post=(POSTS, long)),
        q(10, "SELECT ?one ?two ?lat",
          "WINDOW <urn:gps> { ?one wgs:lat ?lat . ?two wgs:lat ?near } ?one foaf:knows ?two "
          "FILTER(ABS(?lat - ?near) < 10)",
          gps=(POSITIONS, Clause("step", 20 * SECOND, 10 * SECOND))),
        q(11, "SELECT DISTINCT ?who",
          f"{{ {post} {{ ?who sioc:creator_of ?x }} }} "
          f"UNION {{ {photo} {{ ?p sib:usertag ?who }} }} "
          f"UNION {{ {likes} {{ ?who sib:like ?y }} }} :u0 foaf:knows/foaf:knows? ?who",
          post=(POSTS, short), photo=(PHOTOS, short), likes=(POST_LIKES, short)),
        q(12, "SELECT ?over ?tag (COUNT(DISTINCT ?user) AS ?n)",
          f"{post} {{ ?channel sioc:container_of ?post . ?post sib:hashtag ?tag . "
          f"?user sioc:creator_of ?post }} "
          "?channel sioc:has_parent* ?over", "GROUP BY ?over ?tag HAVING(COUNT(?post) > 1)",
          post=(POSTS, long)),
    ]  # fmt: skip


def case(network: Network, seed: int = 1) -> Case:
    """All queries over one network."""
    return Case(
        streams(network, seed), tuple(queries(network)), static={None: static(network, seed)}
    )
