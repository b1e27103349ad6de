"""What all tests need of the process that they run in."""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator

# A job in the background begins with Ctrl-C ignored, and so would every command that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables are laid out for a terminal of the width that the environment tells of, if it does.
os.environ.pop("COLUMNS", None)

# An example that takes long on a busy machine is no fault.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is collected: it all stays, and that takes a third longer."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
