"""Rows along edges: filters, computed columns, predicate index, routing."""
