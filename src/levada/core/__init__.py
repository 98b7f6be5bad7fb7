"""Terms, event times, windows, frames of columns, options and errors. Imports no other package."""
