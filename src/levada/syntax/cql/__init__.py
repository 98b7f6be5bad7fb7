"""CQL's text -> tree: the grammar, its builder, and what was meant by a mistake."""
