"""What of rows is enough for who has all of a report in one place."""
