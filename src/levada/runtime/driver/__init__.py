"""The driver's side of epochs: decide, write ahead, run, commit, publish."""
