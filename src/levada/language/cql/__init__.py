"""CQL text to a syntax tree."""
