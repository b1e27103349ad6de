"""Fixtures that several comparisons with other simulators share."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="module")
def punctual_hosts() -> Generator[None]:
    """Remove the noise that breaks ties between classes: reference simulators have none."""
    configuration = importlib.import_module("tcpcast.engines.packet.configuration")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configuration, "TIE_NOISE_NS", 0)
        yield
