"""What is no file, written as files: rows of DataFrames, of frames, of iterables, and pushed ones.

    rows --frames or lines--> spool/<stream>/data/<name> --source of files--> epochs

A batch is one file, there whole or not at all; it goes when the manifest of an epoch says that the
stream has been read beyond it.
"""
