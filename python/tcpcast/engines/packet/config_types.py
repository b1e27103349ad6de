"""Types of the native simulator's configuration, which is plain data.

The Rust types define the keys (``crates/sim/src/flows/config.rs`` and the types of its fields).
serde reads plain data into these types, rejects an unknown or missing key, and reports the key's
path. Times are whole nanoseconds, rates whole bits per second and buffers whole packets; None is
unlimited.
"""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]
"""A struct: values by field name."""

Choice = str | Config
"""An enum: the name of a variant, or a dict whose only key is the name of the variant."""
