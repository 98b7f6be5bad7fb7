"""The physical operators of one query, and their constructors."""
