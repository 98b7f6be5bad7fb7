"""Replication of operators and their placement on sockets (Zhang et al., BriskStream, SIGMOD
2019).
"""
