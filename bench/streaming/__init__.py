"""The four applications that BriskStream is measured with (Zhang et al., SIGMOD 2019, appendix):
word count, fraud detection, spike detection, Linear Road. Each is queries in CQL, a generator of
its input, and its answers by plain Python that shares nothing with the engine.
"""
