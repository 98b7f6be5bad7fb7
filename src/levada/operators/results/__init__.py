"""The rows of a query to its results: decodes columns, constructs graphs."""
