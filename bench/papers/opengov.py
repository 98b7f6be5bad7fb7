"""KATTS' OpenGov: share prices and government contracts, *synthetic*, in 12 + 12 files.

The paper's data (CRSP's prices and USAspending's contracts of 2001) are licensed. What is made here
has their schema and, at scale 1, their rates, as the published graphs tell them (readers send
164,000 to 190,000 prices and 20,000 to 39,000 contracts a month, all tasks together 464,000 to
551,000 messages): 8,500 prices a trading day and 1,000 contracts a day. A share has a price at
21:00 of each weekday; a few are so volatile that they double within weeks. A vendor's name is that
of a company with shares in every fifth contract. Everything is a function of the seed.

Both streams are cut by the company's name, as ``levada.group_of`` groups: so the file that has a
company's prices is the one of the same number that has its contracts.

The rules of the paper's join, on bindings in the order of their end dates (from the authors' query
``query.opengov.large.xml``; a contract begins and ends at one instant):

    on a ticker interval:  ticker intervals that ended before it go; contracts before its start go
    on a contract:         ticker intervals that start before it go; contracts 20 days older go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import levada

DAY, RANGE, FILES = 86_400_000, 20, 12
CLOSE = 21 * 3_600_000
"""Time of day of a price, ms."""
FACTOR = 2.0
NAME = "http://example.org/opengov/"
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"


@dataclass(frozen=True, slots=True)
class Price:
    """A share's price at the end of a day."""

    symbol: str
    company: str
    price: float
    ts: int


@dataclass(frozen=True, slots=True)
class Contract:
    """What an agency gave a vendor."""

    number: str
    vendor: str
    agency: str
    amount: float
    ts: int


@dataclass(frozen=True, slots=True)
class Shape:
    """How much there is: companies with shares, days, contracts a day."""

    companies: int = 8_500
    days: int = 240
    contracts: int = 1_000

    def scaled(self, scale: float) -> Shape:
        """As many days of less."""
        companies, contracts = (int(n * scale) for n in (self.companies, self.contracts))
        return Shape(max(companies, 12), self.days, max(contracts, 1))


def query() -> str:
    """The text of the query, RSP-QL."""
    return (Path(__file__).parent / "opengov.rspql").read_text()


def prices(shape: Shape, seed: int) -> Iterator[Price]:
    """The prices, in the order of their times; 1970 began on a Thursday."""
    rng = np.random.default_rng(seed)
    level = rng.uniform(1, 100, shape.companies)
    spread = np.where(rng.random(shape.companies) < 0.1, 0.15, 0.01)
    for day in range(shape.days):
        level = np.maximum(level * np.exp(rng.normal(0, 1, shape.companies) * spread), 0.01)
        if (day + 3) % 7 < 5:
            for i, price in enumerate(np.round(level, 2).tolist()):
                yield Price(f"S{i}", f"Company {i}", price, day * DAY + CLOSE)


def contracts(shape: Shape, seed: int) -> Iterator[Contract]:
    """The contracts, in the order of their times."""
    rng = np.random.default_rng(seed + 1)
    for day in range(shape.days):
        times = np.sort(rng.integers(0, DAY, shape.contracts)).tolist()
        listed = rng.random(shape.contracts) < 0.2
        whose = rng.integers(0, shape.companies, shape.contracts).tolist()
        amounts = np.round(rng.lognormal(10, 2, shape.contracts), 2).tolist()
        agencies = rng.integers(0, 60, shape.contracts).tolist()
        for k, ts in enumerate(times):
            vendor = f"Company {whose[k]}" if listed[k] else f"Vendor {whose[k]}"
            number = f"C{day * shape.contracts + k}"
            yield Contract(number, vendor, f"Agency {agencies[k]}", amounts[k], day * DAY + ts)


def _price_lines(price: Price) -> Iterator[str]:
    tick = f"<{NAME}tick/{price.symbol}/{price.ts}>"
    yield f'{tick} <{NAME}PRC> "{price.price}"^^<{_DOUBLE}> {price.ts} .\n'
    yield f'{tick} <{NAME}COMNAM> "{price.company}" {price.ts} .\n'
    yield f'{tick} <{NAME}TICKER> "{price.symbol}" {price.ts} .\n'


def _contract_lines(given: Contract) -> Iterator[str]:
    one = f"<{NAME}contract/{given.number}>"
    yield f'{one} <{NAME}obligatedamount> "{given.amount}"^^<{_DOUBLE}> {given.ts} .\n'
    yield f'{one} <{NAME}vendorname> "{given.vendor}" {given.ts} .\n'
    yield f'{one} <{NAME}agency> "{given.agency}" {given.ts} .\n'


def file_of(company: str) -> int:
    """Which of the files has a company.

    >>> file_of("Company 1") == levada.group_of('"Company 1"', FILES)
    True
    """
    return levada.group_of(f'"{company}"', FILES)


def write(folder: Path, shape: Shape, seed: int) -> None:
    """The folders ``ticker`` and ``contracts``, of 12 files of timed N-Triples each."""
    told = ((p.company, _price_lines(p)) for p in prices(shape, seed))
    _write(folder / "ticker", told)
    _write(folder / "contracts", ((c.vendor, _contract_lines(c)) for c in contracts(shape, seed)))


def _write(folder: Path, told: Iterable[tuple[str, Iterator[str]]]) -> None:
    folder.mkdir(parents=True)
    files = [(folder / f"{i:02}.nt").open("w") for i in range(FILES)]
    places: dict[str, int] = {}
    for company, lines in told:
        if company not in places:
            places[company] = file_of(company)
        files[places[company]].writelines(lines)
    for file in files:
        file.close()
