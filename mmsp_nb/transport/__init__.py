"""Bytes: HTTP with retries, time limits and abort; server-sent events; images; recordings."""
