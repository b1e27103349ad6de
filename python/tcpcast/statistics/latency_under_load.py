"""Indices of latency under load: responsiveness (RPM), Quality of Outcome, bufferbloat grade."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TRIMMED_SHARE = 0.95
"""Share of the smallest samples that the trimmed mean of RPM includes."""

GRADES = (("A+", 0.005), ("A", 0.030), ("B", 0.060), ("C", 0.200), ("D", 0.400))
"""Bufferbloat grades with the increase of the delay below which each holds, in seconds; F above."""

MAX_PROFILE_BYTES = 1_000_000
PROFILE_VERSION = 2


def trimmed_mean(samples: Sequence[float], share: float = TRIMMED_SHARE) -> float:
    """Return the mean of the smallest samples.

    Parameters
    ----------
    samples
        At least one sample, in any unit.
    share
        Share of the samples that count, above 0 and at most 1; at least one sample counts.

    Examples
    --------
    >>> trimmed_mean([10, 20, 30, 940], 0.75)
    20.0
    """
    kept = sorted(samples)[: max(1, math.floor(share * len(samples) + 1e-9))]
    return math.fsum(kept) / len(kept)


def rpm(
    tcp_s: Sequence[float],
    tls_s: Sequence[float],
    http_s: Sequence[float],
    loaded_s: Sequence[float],
) -> float:
    """Return the responsiveness under working load in round trips per minute.

    draft-ietf-ippm-responsiveness, section 4.3.1: new connections and the connections that carry
    the load count half each.

    Parameters
    ----------
    tcp_s, tls_s, http_s
        Times of handshakes of TCP and TLS (of one round trip) and of requests on new connections,
        in seconds.
    loaded_s
        Times of requests on connections that carry the load, in seconds.

    Examples
    --------
    >>> round(rpm([0.03], [0.03], [0.03], [0.09]))
    1000
    """
    new = [trimmed_mean(each) for each in (tcp_s, tls_s, http_s)]
    return rpm_of_means(math.fsum(new) / len(new), trimmed_mean(loaded_s))


def rpm_of_means(new_s: float, loaded_s: float) -> float:
    """Return RPM of the trimmed means on new connections and on those that carry the load."""
    return 60.0 / ((new_s + loaded_s) / 2)


def bufferbloat_grade(increase_s: float) -> str:
    """Return the grade of the common web test of bufferbloat (Waveform), A+ to F.

    Parameters
    ----------
    increase_s
        Delay under load minus idle delay, in seconds.

    Examples
    --------
    >>> bufferbloat_grade(0.012), bufferbloat_grade(0.25)
    ('A', 'D')
    """
    return next((grade for grade, below in GRADES if increase_s < below), "F")


@dataclass(frozen=True, slots=True)
class QooProfile:
    """Requirements of an application: draft-ietf-ippm-qoo, as LibreQoS stores them.

    Attributes
    ----------
    name
        Identifier of the profile.
    latency
        For each percentile (0 to 100), the RTT in seconds up to which the network is perfect, and
        from which it is useless.
    loss
        The same for the ratio of lost packets.
    """

    name: str
    latency: tuple[tuple[float, float, float], ...]
    loss: tuple[float, float]

    def score(self, rtt_s: Mapping[float, float], loss_ratio: float) -> float:
        """Return the Quality of Outcome, 0 to 100: the worst of all components.

        Parameters
        ----------
        rtt_s
            RTT in seconds by percentile; it needs those of the profile.
        loss_ratio
            Lost packets per packet sent.

        Examples
        --------
        >>> profile = QooProfile("web", ((95, 0.05, 0.15),), (0.005, 0.01))
        >>> profile.score({95: 0.075}, 0.0)
        75.0
        """
        parts = [_score(rtt_s[p], perfect, useless) for p, perfect, useless in self.latency]
        return min(*parts, _score(loss_ratio, *self.loss))


def _score(value: float, perfect: float, useless: float) -> float:
    return 100.0 * min(1.0, max(0.0, (useless - value) / (useless - perfect)))


def read_qoo_profiles(path: Path) -> dict[str, QooProfile]:
    """Return the profiles of a file ``qoo_profiles.json`` of LibreQoS by name.

    Raises
    ------
    ScenarioError
        The file is too large, is not JSON, or lacks a value.
    OSError
        The file cannot be read.
    """
    with path.open("rb") as stream:
        data = stream.read(MAX_PROFILE_BYTES + 1)
    if len(data) > MAX_PROFILE_BYTES:
        raise ScenarioError(
            f"{path}: the file is larger than {MAX_PROFILE_BYTES:,} B, so it is not a profile file"
        )
    try:
        document = json.loads(data)
        if document["schema_version"] != PROFILE_VERSION:
            raise ValueError(
                f"schema_version must be {PROFILE_VERSION}, not {document['schema_version']}"
            )
        profiles = [_read_profile(each) for each in document["profiles"]]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: the file contains no QoO profiles ({error})") from None
    return {profile.name: profile for profile in profiles}


def _read_profile(table: Mapping[str, Any]) -> QooProfile:
    latency = tuple(
        (float(each["percentile"]), each["high_ms"] * 1e-3, each["low_ms"] * 1e-3)
        for each in table["latency"]
    )
    loss = (table["loss_percent"]["high"] * 1e-2, table["loss_percent"]["low"] * 1e-2)
    if not latency or any(high >= low for _, high, low in latency) or loss[0] >= loss[1]:
        raise ValueError("the values for good must be below those for bad")
    return QooProfile(str(table["id"]), latency, loss)
