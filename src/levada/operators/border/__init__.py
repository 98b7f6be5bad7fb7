"""The border between rows with event times and report rows, and what makes a report due."""
