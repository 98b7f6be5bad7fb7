"""SPARQL's text -> tree: the grammar with every dialect's clauses, its builder and its checks."""
