"""Where query path and data path meet: epochs, checkpoints, the loop that drives them. ``epoch`` is
its table of contents.
"""
