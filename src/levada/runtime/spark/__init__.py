"""Spark: the only package that imports pyspark.

``session`` starts it quietly, ``daemon`` is what its Python workers are forked from, ``executor``
runs an epoch's job on it (with ``work``, what a task does around the job's functions, and
``carrier``, how blobs travel).
"""
