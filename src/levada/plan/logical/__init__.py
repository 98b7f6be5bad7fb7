"""The logical plan: immutable nodes and expressions, independent of the query language."""
