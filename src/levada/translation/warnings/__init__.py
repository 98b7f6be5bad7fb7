"""What is surely a slip in a query that can run nevertheless: as values, with their places."""
