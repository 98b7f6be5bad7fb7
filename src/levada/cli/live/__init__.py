"""Results for people: tables on the terminal, at once or as they come."""
