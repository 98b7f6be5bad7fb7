"""SPARQL text to a syntax tree: grammar, builder and checks."""
