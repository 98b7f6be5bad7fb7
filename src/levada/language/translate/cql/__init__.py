"""CQL's syntax tree to a typed logical plan."""
