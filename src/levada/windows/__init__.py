"""Event times -> instants at which rows count, and the state that remembers them: pieces, runs,
report times.
"""
