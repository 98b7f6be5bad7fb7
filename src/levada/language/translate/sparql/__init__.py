"""SPARQL's syntax tree to a logical plan (SPARQL 1.1, section 18.2)."""
