"""Topics of Kafka: the driver asks for offsets (``source``), tasks read messages (``reader``). The
one place that imports ``confluent_kafka``.
"""
