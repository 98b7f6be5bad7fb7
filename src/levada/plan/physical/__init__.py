"""The physical operators of one query, by variable names, and their smart constructors."""
