"""Which queries are in reach of each other, by regions."""
