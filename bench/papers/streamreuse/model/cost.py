"""What is paid: data in transit, and processor time (STREAMREUSE, section 2.2).

*Network usage* is the paper's: bytes a second times delay, over all wires, which is how many bytes
are on their way at an instant. *CPU* is seconds of a processor a second; the paper has no such
term, so ``weight`` says how many bytes in transit one processor is worth. Both are paid for as long
as queries live: a plan that is cheap while another query is there may be dear afterwards.
"""

from __future__ import annotations

from levada.core.frozen import frozen


@frozen
class Price:
    """``network`` in bytes in transit, ``cpu`` in processors."""

    network: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Price) -> Price:
        return Price(self.network + other.network, self.cpu + other.cpu)

    def __sub__(self, other: Price) -> Price:
        return Price(self.network - other.network, self.cpu - other.cpu)


NOTHING = Price()


@frozen
class Costs:
    """CPU-seconds: of a row that a source filters, of one that a join or grouping takes in, of one
    that it makes, of one that a compensation looks at. ``weight``: bytes in transit by processor.
    """

    filtered: float = 1e-7
    taken: float = 1e-6
    made: float = 2e-7
    compensated: float = 5e-8
    weight: float = 1e5

    def one(self, price: Price) -> float:
        """Both as one number."""
        return price.network + self.weight * price.cpu


def over_life(shared: float, alone: float, others: float, own: float) -> float:
    """What a plan costs a query over its life: ``shared`` a second as long as other users stay,
    ``alone`` for what it lives on by itself. Lives are seconds from now.

    >>> over_life(1, 10, others=60, own=100), over_life(1, 10, others=200, own=100)
    (460, 100)
    """
    together = min(others, own)
    return shared * together + alone * (own - together)
