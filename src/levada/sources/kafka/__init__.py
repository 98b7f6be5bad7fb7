"""Topics of Kafka: the driver asks for offsets (``source``), tasks read messages (``reader``). The
driver's questions are librdkafka's (``confluent_kafka``), a task's are our own:

    partition   a range of offsets, from the leader     wire   requests and answers
    batches     what came -> records -> one text        link   a connection; ``sasl`` a login
    codecs      how it was packed

Source: https://kafka.apache.org/protocol.html. docs/decisions/0024, 0044.
"""
