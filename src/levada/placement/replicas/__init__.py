"""How many replicas each operator of a dataflow gets, and in which place of a machine each stands.

Zhang et al., BriskStream (SIGMOD 2019): a rate model that knows how far a replica is from those
that feed it (``models``), and a search that replicates and places together (``branch``, ``scale``,
``refine``). Replicas of one operator in one place are alike, so a plan is a matrix of counts,
operators by places, and everything here works on that. docs/replication.md tells how to use it.
"""
