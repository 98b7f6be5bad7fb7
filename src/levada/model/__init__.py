"""What both paths speak: terms, times, windows, frames of columns. Imports no stage."""
