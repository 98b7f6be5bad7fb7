"""One epoch, from its splits to its committed result: driver, tasks, Spark, cost model."""
