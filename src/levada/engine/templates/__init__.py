"""Templates of similar queries: one query is planned, and the others follow from it."""
