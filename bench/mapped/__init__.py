"""BriskStream's evaluation (Zhang, He, Zhou, He: SIGMOD 2019) where it maps onto a cluster of
Spark: what ``bench edges`` (Fig. 8), ``bench factors`` (Fig. 16) and ``bench mappings`` (placements
run by the engine) have in common.
"""
