"""Random cases for property tests: Hypothesis strategies for streams, queries, and whole cases with
their results.

``cases()`` makes RSP-QL queries over RDF streams, ``cql_cases()`` CQL queries over tuple streams,
``cql_view_cases()`` CQL with views, relations and the rest of its grammar. Each query comes as a
text for the engine and as a question for the naive reference; ``Case.expected()`` asks it,
``Case.describe()`` prints all that is needed to reproduce a failure.

Hypothesis runs about five mutations of each case that it draws, which often repeat its queries:
several queries a case (``most``), rather than more examples, make a test meet more of them.
"""

from support.generators.case import Case, CaseQuery
from support.generators.cql import cql_cases, cql_queries
from support.generators.cql_views import cql_view_cases, cql_view_queries, recent_cases
from support.generators.elements import elements, rows
from support.generators.entailment import entailment_cases
from support.generators.made import made_cases
from support.generators.queries import queries
from support.generators.replaced import replaced_cases
from support.generators.rspql import cases
from support.generators.static import static_queries
from support.generators.windows import Clause, clauses

__all__ = [
    "Case",
    "CaseQuery",
    "Clause",
    "cases",
    "clauses",
    "cql_cases",
    "cql_queries",
    "cql_view_cases",
    "cql_view_queries",
    "elements",
    "entailment_cases",
    "made_cases",
    "queries",
    "recent_cases",
    "replaced_cases",
    "rows",
    "static_queries",
]
