"""What papers report, beside what is seen here."""
