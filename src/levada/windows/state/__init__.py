"""The state that windows remember: immutable pieces, runs, tallies."""
