"""A whole application: the app file, and running it to its end."""
