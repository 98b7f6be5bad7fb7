"""What queries that come have in common without being equal: sides of joins."""
