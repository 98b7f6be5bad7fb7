"""Members of a node by columns."""
