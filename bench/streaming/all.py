"""The applications by name."""

from __future__ import annotations

from bench.streaming.application import Application
from bench.streaming.fraud_detection import FRAUD_DETECTION
from bench.streaming.linear_road import LINEAR_ROAD
from bench.streaming.spike_detection import SPIKE_DETECTION
from bench.streaming.word_count import WORD_COUNT

APPLICATIONS: dict[str, Application] = {
    app.name: app for app in (WORD_COUNT, FRAUD_DETECTION, SPIKE_DETECTION, LINEAR_ROAD)
}
