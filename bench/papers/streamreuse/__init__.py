"""STREAMREUSE (Seshadri, Bamba, Cooper, Kumar, Liu, Schwan, Zhang: "Grouping Distributed Stream
Query Services by Operator Similarity and Network Locality"): its claims, each with what became of
it here.

*quoted*: the paper's words. *re-derived*: its examples, worked by our lattice. *measured*: on the
simulator (``simulate``) with parameters that are all ours, since the text that told the paper's is
*lost*: what we have breaks off at the start of its section 5.1.
"""

FIGURES = {
    "Fig. 1": ("quoted, lost in part", "its links are not in the text: two regions of our own"),
    "3.2": ("re-derived", "Q1 and Q2 on one join: tests/unit/bench/test_relaxation.py"),
    "Fig. 2": ("re-derived", "the order of windows: tests/unit/bench/test_lattice.py"),
    "network": ("quoted, measured", "up to 96 % less; ours: `network_saved_pct`"),
    "computation": ("quoted, measured", "more than 10 times less; ours: `cpu_times_less`"),
    "latency": ("quoted, measured", "its increase is negligible; ours: `latency_ms`"),
    "time to deployment": ("quoted, measured", "likewise; ours: `plan_ms_p50`, `plan_ms_p99`"),
    "throughput": ("quoted, lost", "an order of magnitude (prototype); ours: `bench sharing`"),
    "5.1 and after": ("lost", "workloads, networks, figures, tables"),
}
"""What each is here, and where."""
