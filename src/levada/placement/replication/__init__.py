"""The number of replicas of each operator, and their sockets (Zhang et al., BriskStream, SIGMOD
2019).
"""
