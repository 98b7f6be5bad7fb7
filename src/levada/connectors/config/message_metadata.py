"""Names the metadata of messages: columns, the format, the watermark of the producer.

message_key, message_topic, message_partition, message_offset, message_time
                          of a message of Kafka, in schemas and mappings; the time in ms
message_header_NAME       a header of Kafka, a property of MQTT 5: of its name's letters, in
                          lower case, what is no letter or digit is written _
RDF-Message-Content-Type  a header: the media type of this message, whatever the stream's format
                          is (RDF Messages, a draft of the W3C's RSP group)
Levada-Watermark          a header, also of what is pushed: what its sender sends from here on
                          is not before this time (ms, or an xsd:dateTime)
"""

from __future__ import annotations

import re

CONTENT, WATERMARK = "rdf-message-content-type", "levada-watermark"
MEDIA = {
    "application/n-triples": "nt",
    "application/n-quads": "nq",
    "text/turtle": "ttl",
    "application/trig": "trig",
    "application/rdf+xml": "rdf",
    "application/ld+json": "jsonld",
    "application/x-jelly-rdf": "jelly",
}
"""Media types of RDF, and the words of their formats."""
HEADER = "message_header_"
_COLUMN = re.compile(r"message_(key|topic|partition|offset|time|header_[A-Za-z0-9_]+)")
_OTHER = re.compile(r"[^a-z0-9]")
SHOWN = 100


def is_beside(name: str) -> bool:
    """Whether a column is metadata of a message.

    >>> is_beside("message_key"), is_beside("message_header_room"), is_beside("key")
    (True, True, False)
    """
    return _COLUMN.fullmatch(name) is not None


def header_column(name: str) -> str:
    """Returns the column for the values of a header.

    >>> header_column("Room-No")
    'message_header_room_no'
    """
    return HEADER + _OTHER.sub("_", name.lower())


def format_said(value: bytes | None) -> str:
    """Returns the format of a media type; the media type itself after a ``?`` if it is not one of
    RDF.

    >>> format_said(b"text/turtle; charset=utf-8"), format_said(b"text/plain")
    ('ttl', '?text/plain')
    """
    said = (value or b"").decode("utf-8", "replace").partition(";")[0].strip().lower()
    return MEDIA.get(said, f"?{said[:SHOWN]}")
