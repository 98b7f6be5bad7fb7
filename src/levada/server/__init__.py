"""HTTP over the files of a checkpoint: status, results, queries, pushed rows, a page.

A process of its own: it works as other terminals do, by requests, the index of published epochs and
the spools of a checkpoint, so it never delays an epoch, and may die and come back as it likes.
"""
