"""The types of the configuration that the native simulator takes: plain data.

The Rust types define the keys (``crates/sim/src/config.rs`` and its fields' types): serde reads
plain data into them, rejects an unknown or missing key, and states its path. Times are whole
nanoseconds, rates whole bits per second and buffers whole packets; None is unlimited.
"""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]
"""A struct: the values of its fields by their names."""

Choice = str | Config
"""An enum: the name of a case, or a dict with one key, the name, and the data of the case."""
