"""A better order of joins for a query that runs: when it may be switched to, and how."""
