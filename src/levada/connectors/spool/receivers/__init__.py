"""Receivers of feeds (MQTT, SSE, WebSocket). Each is the only module that imports its library."""
