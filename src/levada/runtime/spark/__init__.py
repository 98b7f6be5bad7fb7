"""Spark: only this package and ``levada.spark`` import pyspark."""
