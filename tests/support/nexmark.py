"""Nexmark: events of an auction site, and its queries 0 to 22 written from their meaning.

A generator with a seed makes events: of 50 one is a person, three are auctions, 46 are bids. Each
text reads windows of ten seconds. ``{Bid}`` stands for the stream Bid in such a window,
``{Bid tumble}`` and ``{Bid hop}`` for window functions over it. DuckDB reads the same text over
tables that hold the rows of the window.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random

WINDOW, STEP = 10_000, 5_000
INT, STR = "integer", "string"
SCHEMAS: Mapping[str, Mapping[str, str]] = {
    "Person": {"id": INT, "name": STR, "email": STR, "city": STR, "state": STR},
    "Auction": {
        "id": INT, "item": STR, "initial": INT, "reserve": INT, "expires": INT, "seller": INT,
        "category": INT,
    },
    "Bid": {
        "auction": INT, "bidder": INT, "price": INT, "channel": STR, "url": STR, "extra": STR,
    },
}  # fmt: skip
SIDE: Mapping[str, Mapping[str, str]] = {"Side": {"key": INT, "value": STR}}
STATES = ("OR", "ID", "CA", "WA", "NY", "TX")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-17", "channel-4711")
Event = tuple[object, ...]


def events(count: int, seed: int = 1, pace: int = 1) -> dict[str, list[Event]]:
    """The rows of each stream with their event time as last value; ``pace``: ms between events.

    >>> {name: len(rows) for name, rows in events(100).items()}
    {'Person': 2, 'Auction': 6, 'Bid': 92}
    """
    rng = Random(seed)
    rows: dict[str, list[Event]] = {name: [] for name in SCHEMAS}
    for number in range(count):
        ts = number * pace
        persons, auctions = len(rows["Person"]), len(rows["Auction"])
        match number % 50:
            case 0:
                name = f"{rng.choice(('Ada', 'Bo', 'Cy'))} {rng.choice(('Li', 'Ng'))}"
                mail = f"{persons}@e.org" if rng.random() < 0.9 else None
                city = rng.choice(("Oslo", "Rome", "Lima"))
                rows["Person"].append((persons, name, mail, city, rng.choice(STATES), ts))
            case 1 | 2 | 3:
                first = rng.randrange(1, 1000)
                expires = ts + pace * rng.randrange(100, 8000)
                seller, category = _recent(rng, persons), rng.randrange(10, 15)
                item = rng.choice(("lamp", "desk", "car"))
                reserve = first + rng.randrange(500)
                auction = (auctions, item, first, reserve, expires, seller, category, ts)
                rows["Auction"].append(auction)
            case _:
                channel = rng.choice(CHANNELS)
                url = f"https://e.org/{rng.choice('abc')}/{rng.choice('xyz')}/item.htm?query=1"
                url += f"&channel_id={rng.randrange(1, 9)}" if rng.random() < 0.8 else ""
                extra = "".join(rng.choice("abc ") for _ in range(rng.randrange(12)))
                bidder, price = _recent(rng, persons), int(10 ** rng.uniform(1, 6))
                bid = (_recent(rng, auctions), bidder, price, channel, url, extra or None, ts)
                rows["Bid"].append(bid)
    return rows


def _recent(rng: Random, count: int) -> int:
    """One of the last hundred ids; half of them are the last three."""
    depth = min(count, 3 if rng.random() < 0.5 else 100)
    return count - 1 - rng.randrange(depth)


WON = (
    "Select id, category, seller, expires, price, bidder, n From (Select a.id, a.category, "
    "a.seller, a.expires, b.price, b.bidder, Row_Number() Over (Partition By a.id Order By "
    "b.price Desc, b.ts) As n From {Auction} a Join {Bid} b On a.id = b.auction "
    "Where b.ts Between a.ts And a.expires) As w Where n <= 1"
)
NEW = (
    "Select bidder, ts, Case When ts - Lag(ts) Over (Partition By bidder Order By ts) < 100 "
    "Then 0 Else 1 End As new From {Bid} b"
)
COUNTS = "Count(*) As total, Count(*) Filter (Where price < 1000) As low, " \
    "Count(*) Filter (Where price >= 1000 And price < 100000) As middle, " \
    "Count(Distinct bidder) As bidders, Count(Distinct auction) As auctions"  # fmt: skip
TEXTS: Mapping[str, str] = {
    "q0": "Select auction, bidder, price, ts From {Bid} b",
    "q1": "Select auction, bidder, 0.908 * price As euros, ts From {Bid} b",
    "q2": "Select auction, price From {Bid} b Where auction % 123 = 0",
    "q3": "Select p.name, p.city, p.state, a.id From {Auction} a Join {Person} p On "
    "a.seller = p.id Where a.category = 10 And p.state In ('OR', 'ID', 'CA')",
    "q4": f"Select category, Avg(price) As final From ({WON}) As x Group By category",
    "q5": "Select window_start, window_end, auction, n From (Select window_start, window_end, "
    "auction, Count(*) As n, Rank() Over (Partition By window_end Order By Count(*) Desc) As r "
    "From {Bid hop} b Group By window_start, window_end, auction) As x Where r = 1",
    "q6": f"Select seller, Avg(price) Over (Partition By seller Order By expires, id Rows Between "
    f"10 Preceding And Current Row) As mean From ({WON}) As x",
    "q7": "Select b.auction, b.price, b.bidder, b.ts, b.window_end From {Bid tumble} b Join "
    "(Select window_end, Max(price) As top From {Bid tumble} c Group By window_end) As m "
    "On b.window_end = m.window_end And b.price = m.top",
    "q8": "Select p.id, p.name, p.window_end From {Person tumble} p Join (Select Distinct seller, "
    "window_end From {Auction tumble} a) As s On p.id = s.seller And p.window_end = s.window_end",
    "q9": f"Select id, category, price, bidder From ({WON}) As x",
    "q10": "Select auction, price, Date_Trunc('minute', ts) As part, Extract(Hour From ts) As h "
    "From {Bid} b",
    "q11": "Select bidder, Count(*) As n, Min(ts) As first, Max(ts) As final From (Select bidder, "
    f"ts, Sum(new) Over (Partition By bidder Order By ts) As session From ({NEW}) As y) As x "
    "Group By bidder, session",
    "q13": "Select b.auction, b.price, s.value From {Bid} b Join Side s On b.auction % 100 = s.key",
    "q14": "Select auction, 0.908 * price As euros, Case When Extract(Hour From ts * 1000) Between "
    "8 And 18 Then 'day' Else 'night' End As part, Length(extra) - Length(Replace(extra, 'c', '')) "
    "As n From {Bid} b Where 0.908 * price > 1000 And 0.908 * price < 50000",
    "q15": f"Select Date_Trunc('second', ts) As second, {COUNTS} From {{Bid}} b Group By 1",
    "q16": f"Select channel, {COUNTS}, Max(ts) As final From {{Bid}} b Group By channel",
    "q17": "Select auction, Count(*) As n, Min(price) As low, Max(price) As high, Avg(price) As "
    "mean, Sum(price) As total From {Bid} b Group By auction",
    "q18": "Select auction, bidder, price, ts From (Select auction, bidder, price, ts, "
    "Row_Number() Over (Partition By bidder, auction Order By ts Desc) As n From {Bid} b) As x "
    "Where n <= 1",
    "q19": "Select auction, price, n From (Select auction, price, ts, Row_Number() Over (Partition "
    "By auction Order By price Desc, ts) As n From {Bid} b) As x Where n <= 10",
    "q20": "Select b.auction, b.price, a.item, a.seller From {Bid} b Join {Auction} a On "
    "b.auction = a.id Where a.category = 10",
    "q21": "Select auction, channel, Case Lower(channel) When 'apple' Then '0' When 'google' Then "
    "'1' When 'facebook' Then '2' When 'baidu' Then '3' Else Split_Part(Split_Part(url, "
    "'channel_id=', 2), '&', 1) End As code From {Bid} b Where url Like '%channel_id=%' Or "
    "Lower(channel) In ('apple', 'google', 'facebook', 'baidu')",
    "q22": "Select auction, Split_Part(url, '/', 4) As one, Split_Part(url, '/', 5) As two, "
    "Split_Part(url, '/', 6) As three From {Bid} b",
}
"""The queries by name. Query 12 has windows by a clock, which CQL lacks."""
UNITS = {"second": 1000, "minute": 60_000}
_TRUNC = re.compile(r"Date_Trunc\('(\w+)', ts\)")
_HOUR = re.compile(r"Extract\(Hour From (ts(?: \* 1000)?)\)")
_TABLE = re.compile(r"\{(\w+)( \w+)?\}")


def as_cql(text: str) -> str:
    """A text over the streams, which reports each window once."""

    def table(match: re.Match[str]) -> str:
        name, kind = match.groups()
        sizes = {
            " tumble": f"Interval '{WINDOW // 1000}' Seconds",
            " hop": f"Interval '{STEP // 1000}' Seconds, Interval '{WINDOW // 1000}' Seconds",
        }
        if kind is None:
            return f"{name} [Range {WINDOW} ms Slide {WINDOW} ms]"
        return f"Table({kind.strip().capitalize()}(Table {name}, Descriptor(ts), {sizes[kind]}))"

    whole = _TABLE.sub(table, text)
    return f"Rstream({whole})" if "{Bid}" in text or "{Auction}" in text else whole


def as_sql(text: str) -> str:
    """A text over tables that hold the rows of one window, in which times are timestamps."""
    text = _TRUNC.sub(lambda match: f"ts // {UNITS[match[1]]} * {UNITS[match[1]]}", text)
    text = _HOUR.sub(lambda match: f"Extract(Hour From make_timestamp({match[1]} * 1000))", text)
    return _TABLE.sub(lambda match: match[1], text)
