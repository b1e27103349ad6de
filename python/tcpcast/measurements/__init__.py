"""Tests of lines by other programs (flent, iperf3, Crusader) as scenarios and as answers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.captures.iperf3_log import read_iperf3
from tcpcast.measurements.crusader_file import read_crusader
from tcpcast.measurements.flent_file import read_flent
from tcpcast.measurements.line_test import DOWN, LINKS, STACKS, UP, FlowGroup, LineTest
from tcpcast.measurements.traffic_shaping import LINK_RATE
from tcpcast.process.errors import CaptureError, OptionError, UnitError
from tcpcast.process.json_file import read_content
from tcpcast.quantity import units
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_BITS = 8


def read_iperf3_test(path: Path) -> LineTest:
    """Return the test of a file; the host that wrote it is at home.

    Raises
    ------
    CaptureError
        The file is damaged, too large, or has no flow of TCP.
    """
    file = str(path)
    logged, warnings = read_iperf3(read_content(path).decode("utf-8", "replace").strip(), file)
    flows: dict[FlowGroup, list[float]] = {}
    rtts: dict[FlowGroup, list[float]] = {}
    notes = []
    for flow in logged:
        control = flow.control or "cubic"
        if control not in STACKS:
            notes.append(f"tcpcast simulates the congestion control {control} as CUBIC")
        group = FlowGroup(UP if flow.is_measured_by_sender else DOWN, control, "BE")
        flows.setdefault(group, []).append(_BITS * flow.unique_bytes / flow.seconds)
        if flow.rtt_s > 0:
            rtts.setdefault(group, []).append(flow.rtt_s)
    seconds = max(flow.seconds for flow in logged)
    if not (0 < seconds < math.inf):
        raise CaptureError(
            "the file does not contain the duration of the test; repeat the test", file=file
        )
    smallest = [flow.rtt_min_s for flow in logged if flow.rtt_min_s > 0]
    return LineTest(
        "iperf3",
        "iperf3",
        seconds,
        flows,
        idle_rtt_s=min(smallest, default=math.nan),
        rtt_mean_s={group: math.fsum(each) / len(each) for group, each in rtts.items()},
        notes=[*dict.fromkeys(notes), *(each for each in warnings if "did not end" in each)],
    )


READERS = {"flent": read_flent, "iperf3": read_iperf3_test, "crusader": read_crusader}
"""Function that reads a file of each program."""

BUFFER_S = 0.25
"""Buffer of a line whose queue is not known: the time that it takes to send it."""


def read_line_test(program: str, file: str | Path) -> LineTest:
    """Return the test in a file of another program.

    Parameters
    ----------
    program
        ``flent``, ``iperf3`` or ``crusader``.
    file
        Name of the file.

    Raises
    ------
    OptionError
        The program is not known.
    CaptureError
        The file is damaged, too large, or not of this program.
    """
    if program not in READERS:
        raise OptionError(
            "PROGRAM",
            f"{units.quote(program)} is not known; use {', '.join(READERS)}, or a scenario",
        )
    return READERS[program](Path(file))


def make_line_scenario(test: LineTest, options: Mapping[str, str | None]) -> Scenario:
    """Return the scenario of a test, and add notes to it about what the file does not state.

    Parameters
    ----------
    test
        The test; notes are added.
    options
        ``down``, ``up`` (rates), ``queue``, ``buffer`` and ``rtt`` as typed; None or missing for
        what the file states.

    Raises
    ------
    OptionError
        The file does not state a rate or the RTT, and no option does.
    ScenarioError
        A value is wrong.
    """
    if rtt := options.get("rtt"):
        test.idle_rtt_s = _quantity("--rtt", units.parse_duration, rtt)
    if not test.idle_rtt_s > 0:
        raise OptionError(
            "--rtt",
            (
                "the file does not contain the RTT of the idle line; add this RTT, for "
                "example --rtt 20ms"
            ),
        )
    typed = {key: options[key] for key in ("queue", "buffer") if options.get(key)}
    links = {direction: _link(test, direction, options) for direction in (DOWN, UP)}
    # Checked for one direction, so that an error names the option once, and then set for both.
    links[DOWN] |= typed
    scenario = Scenario.from_dict(test.scenario_tables(links))
    return scenario.with_changes({f"link.*.{key}": value for key, value in typed.items()})


def _quantity(option: str, parse: Callable[[str], float], text: str) -> float:
    try:
        return parse(text)
    except UnitError as error:
        raise OptionError(option, str(error)) from None


def _link(test: LineTest, direction: str, options: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the link of a direction, without the queue and the buffer of the options."""
    option = LINKS[direction]
    rate = options.get(option)
    if rate:
        _quantity(f"--{option}", units.parse_rate, rate)
    other = test.links.get(UP if direction == DOWN else DOWN)
    link = test.links.get(direction)
    if link is None:
        if rate is None and test.has_flows(direction):
            example = units.format_rate(float(f"{max(1e6, test.rate_bps(direction) / 0.95):.2g}"))
            raise OptionError(
                f"--{option}",
                f"the file does not describe the shaper of the {direction}; add the rate of the "
                f"line, for example --{option} {example}",
            )
        if rate is None:
            test.notes.append(
                f"the file does not describe the shaper of the {direction}; tcpcast assumes a rate "
                f"of {LINK_RATE}"
            )
            return {"rate": LINK_RATE, "buffer": "unlimited"}
        if other is not None and not options.get("queue"):
            test.notes.append(
                f"the file does not describe the queue of the {direction}; tcpcast assumes the "
                "queue of the other direction"
            )
            link = other
    if link is not None and not options.get("queue"):
        return _with_rate(link, rate) if rate else dict(link)
    rate = rate or _rate_of(link or {})
    if not options.get("queue"):
        test.notes.append(
            f"the file does not describe the queue of the {direction}; tcpcast assumes drop-tail; "
            "see --queue"
        )
    if not options.get("buffer"):
        test.notes.append(
            f"the file does not contain the buffer size of the {direction}; tcpcast assumes 250 "
            "ms; see --buffer"
        )
    shaper = (link or {}).get("rate")
    size = max(3000, round(BUFFER_S * units.parse_rate(rate) / 8))
    return {
        "rate": shaper | {"bucket": rate} if isinstance(shaper, dict) else rate,
        "buffer": f"{size}B",
    }


def _rate_of(link: Mapping[str, Any]) -> str:
    """Return the rate of a shaper."""
    queue, rate = link.get("queue"), link["rate"]
    if isinstance(queue, dict) and "rate" in queue:
        return str(queue["rate"])
    return str(rate["bucket"] if isinstance(rate, dict) else rate)


def _with_rate(link: Mapping[str, Any], rate: str) -> dict[str, Any]:
    """Return a link whose shaper has another rate."""
    queue, old = link.get("queue"), link["rate"]
    if isinstance(queue, dict) and "rate" in queue:
        return {**link, "queue": queue | {"rate": rate}}
    return {**link, "rate": old | {"bucket": rate} if isinstance(old, dict) else rate}
