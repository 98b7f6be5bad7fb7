"""Text to tree: the grammar of SPARQL 1.1 and RSP-QL, its builder and its checks. ``parse`` and
``show`` are the surface.
"""

from levada.syntax.sparql.parser import parse
from levada.syntax.sparql.show import show

__all__ = ["parse", "show"]
