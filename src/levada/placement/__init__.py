"""Where work goes: which machine each task goes to, so that few messages cross machines and none
has too much to do, and models of what a placement costs.

The room stands by itself: it takes a send graph (what tasks sent each other) and gives a placement,
and knows nothing of queries, epochs or Spark (docs/placement.md).
"""
