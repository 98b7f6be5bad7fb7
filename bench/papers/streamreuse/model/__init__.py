"""What overlapping queries could have in common: operators as descriptors in a lattice, the least
operator that serves several, what it costs and what it saves (STREAMREUSE).

The room stands by itself: it takes descriptors, rates and delays and gives decisions, and knows
nothing of plans, epochs or Spark. What the engine itself shares is in ``plan/binding``
(docs/sharing.md says how both compare).
"""
