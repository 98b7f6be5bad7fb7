"""Terms in columns: term ids, term dictionaries and the lookup of a task."""
