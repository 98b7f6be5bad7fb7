"""Benchmarks: ``python -m bench NAME [--json] [--scale X]``; ``bench/results`` says what each
measures, ``docs/benchmarks.md`` what was measured.

- data, srbench        the workloads' data, on disk, the same bytes for both sides, with the results
                       that are known of them
- steady               rounds of a workload, one after the other, until what is measured is steady
- measure, meter       wall clock and CPU of all processes, from the publication of one epoch to
                       that of another
- apart                each side in a process of its own
- engine, spark        the two kinds of sides: Levada's engine; Spark's own Structured Streaming
- against, pairs       this tree and an earlier commit (trees), epoch by epoch in turn: a process
                       each (against_side), workloads, counts (epoch_counts, spark_counts)
- tree_engine          what all commits' engines have in common
- result               what a benchmark says: JSON, a table
- parse .. growth      one module a benchmark: ``run(scale, stepped) -> Result``
"""
