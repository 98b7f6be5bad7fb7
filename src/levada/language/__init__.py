"""Text to tree: the grammar of SPARQL 1.1 and RSP-QL, its builder and its checks. ``parse`` and
``show`` are the surface.
"""

from levada.language.sparql.parser import parse
from levada.language.sparql.print_ast import show

__all__ = ["parse", "show"]
