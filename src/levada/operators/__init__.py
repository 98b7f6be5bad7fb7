"""Rows -> rows: pure functions of frames and state, one operator a module, without a JVM or
a file.
"""
