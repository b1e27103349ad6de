"""The scenario of a home: a line in both directions, and the people who use it at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.options.command_option import FormField, Option, options_by_key
from tcpcast.process.errors import InputError, ScenarioError, UnitError, naming_options
from tcpcast.quantity import units

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.scenario import Scenario

DOWN, UP = "down", "up"
"""Names of the links: from and to the internet."""

USES: dict[str, dict[str, Any]] = {
    "download": {"traffic": {"kind": "bulk"}},
    "upload": {"sends": "client", "traffic": {"kind": "bulk"}},
    "film": {"traffic": {"kind": "stream", "rate": "8mbit"}},
    "page": {
        "traffic": {
            "kind": "requests",
            "request": "500B",
            "answer": "1MB",
            "pause": {"distribution": "exponential", "mean": "2s"},
        }
    },
    "call": {
        "sends": "client",
        "traffic": {"kind": "messages", "size": "200B", "interval": "20ms"},
    },
    "game": {
        "sends": "client",
        "traffic": {"kind": "messages", "size": "100B", "interval": "15ms"},
    },
    "ping": {"traffic": {"kind": "ping", "interval": "100ms"}},
}
"""What people do: the class of each, without its route. Each has a device of its own."""

HOME_OPTIONS = {
    row.name: row
    for row in (
        Option(
            "down",
            "RATE",
            "Rate of the line from the internet.",
            default="100mbit",
            keys=(f"link.{DOWN}.rate",),
            example="100mbit",
            form_field=FormField("Download rate", "", "100mbit", "2mbit", "2gbit"),
        ),
        Option(
            "up",
            "RATE",
            "Rate of the line to the internet.",
            default="20mbit",
            keys=(f"link.{UP}.rate",),
            example="20mbit",
            form_field=FormField("Upload rate", "", "20mbit", "1mbit", "1gbit"),
        ),
        Option(
            "rtt",
            "TIME",
            "RTT to the servers on the idle line.",
            default="20ms",
            example="20ms",
            form_field=FormField("Round-trip time", "", "20ms", "2ms", "300ms"),
        ),
        Option(
            "buffer",
            "SIZE",
            "Buffer of the line in each direction; default: as much as the line sends in 250 ms.",
            keys=(f"link.{DOWN}.buffer",),
            example="250pkt",
            form_field=FormField("Buffer"),
        ),
        Option(
            "queue",
            "NAMES",
            "Queue disciplines of the line to compare.",
            default="droptail,fq_codel,cake",
            keys=(f"link.{DOWN}.queue",),
            example="droptail,fq_codel,cake",
            form_field=FormField("Queues", "", "droptail,fq_codel,cake"),
        ),
        Option(
            "uses",
            "NAMES",
            "Simultaneous activities, each with an optional count: "
            f"{', '.join(USES)}; such as call,upload,download=2.",
            default="call,page,upload,download",
            form_field=FormField("Uses", "", "call,page,upload,download"),
        ),
    )
}
"""Options of a home by name."""

QUEUE_KEY = "link.*.queue"
"""Key of the queue disciplines of both links."""

BUFFER_S = 0.25
"""Default buffer: the time that it takes to send it."""

DURATION_S, WARMUP_S = 220.0, 20.0
MAX_PACKETS, MIN_DURATION_S = 2.5e6, 40.0
"""Duration of a run, unless the line then sends more packets."""

MAX_FLOWS = 1000


def make_home_scenario(
    values: Mapping[str, Any], changes: Mapping[str, Any]
) -> tuple[Scenario, list[str]]:
    """Return the scenario of the options, and the queues of its links.

    Parameters
    ----------
    values
        The options by name, as typed.
    changes
        Further keys of the scenario.

    Raises
    ------
    ScenarioError
        A value is wrong; the message names the option.
    """
    # Slow imports, which the help of commands does not need.
    from tcpcast.scenario import Scenario  # noqa: PLC0415
    from tcpcast.scenario.changes import apply_changes  # noqa: PLC0415

    # No key of both directions, which the options set, changes for one of them.
    for changed in changes:
        table, _, rest = changed.partition(".")
        own = rest.split(".")[1:2]
        if table == "link" and (own == ["queue"] or (own == ["buffer"] and values.get("buffer"))):
            message = (
                f"--{own[0]} sets the value for both directions; remove this change, or save the "
                "scenario with --print-scenario and edit the saved file"
            )
            raise ScenarioError(InputError(changed, message))
    rates = {name: _read("--" + name, units.parse_rate, values[name]) for name in (DOWN, UP)}
    delay = units.format_duration(_read("--rtt", units.parse_duration, values["rtt"]) / 2)
    queues = [name.strip() for name in values["queue"].split(",") if name.strip()]
    if not queues:
        raise ScenarioError(
            InputError("--queue", "contains no queue discipline; use droptail,fq_codel")
        )
    links = {
        name: {"rate": values[name], "buffer": f"{max(3000, round(BUFFER_S * rate / 8))}B"}
        for name, rate in rates.items()
    }
    # Checked for one direction, so that an error names the option once, and then set for both.
    typed = {"buffer": values["buffer"]} if values.get("buffer") else {}
    links[DOWN] |= {**typed, "queue": queues[0]}
    way = {"route": [DOWN], "back": [UP], "delay": delay}
    classes = [
        {"name": name, "flows": flows, "host": name, **way, **USES[name]}
        for name, flows in _read_uses(values["uses"]).items()
    ]
    per_s = sum(rate / (8 * 1500) for rate in rates.values())
    seconds = max(MIN_DURATION_S, min(DURATION_S, MAX_PACKETS / per_s))
    run = {
        "duration": units.format_duration(float(f"{seconds:.3g}")),
        "warmup": units.format_duration(float(f"{seconds * WARMUP_S / DURATION_S:.2g}")),
        "seed": 1,
    }
    tables = {"name": "home", "link": links, "class": classes, "run": run}
    with naming_options(options_by_key(HOME_OPTIONS.values())):
        scenario = Scenario.from_dict(apply_changes(tables, changes))
        for queue in queues[1:]:
            scenario.with_changes({f"link.{DOWN}.queue": queue})
    both = {f"link.*.{key}": value for key, value in typed.items()}
    return scenario.with_changes({**both, QUEUE_KEY: queues[0]}), queues


def _read(option: str, read: Any, text: str) -> float:
    try:
        value: float = read(text)
    except UnitError as error:
        raise ScenarioError(InputError(option, str(error))) from None
    if value == float("inf"):
        raise ScenarioError(
            InputError(option, "the rate of a line must be finite; use 20mbit, for example")
        )
    return value


def _read_uses(text: str) -> dict[str, int]:
    from tcpcast.process.errors import did_you_mean_text  # noqa: PLC0415 - slow

    uses: dict[str, int] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, count = part.partition("=")
        if name not in USES:
            near = did_you_mean_text(name, USES)
            message = f"{units.quote(name)} is not an activity{near}; use {', '.join(USES)}"
            raise ScenarioError(InputError("--uses", message))
        try:
            uses[name] = units.parse_count(int(count or 1), minimum=1, maximum=MAX_FLOWS)
        except ValueError:
            message = f"{units.quote(part)}: use a number from 1 to {MAX_FLOWS}, as in {name}=2"
            raise ScenarioError(InputError("--uses", message)) from None
    if not uses:
        raise ScenarioError(
            InputError("--uses", "contains no activity; use call,upload, for example")
        )
    return uses
