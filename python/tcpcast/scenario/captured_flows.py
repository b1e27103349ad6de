"""Measured traffic: flows of a packet capture."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema

from tcpcast import units
from tcpcast.errors import UnitError
from tcpcast.protected_inputs import protect_inputs
from tcpcast.scenario.table import Table, get_validation_context

MAX_CONNECTION_NUMBER = 10**12
CAPTURE = "capture"
"""Kind of measured traffic; its scenario has no network, TCP and run."""


def is_captured(tables: Mapping[str, Any]) -> bool:
    """Return True if the traffic is of kind ``capture``."""
    traffic = tables.get("traffic")
    return isinstance(traffic, Mapping) and traffic.get("kind") == CAPTURE


def _read_capture_name(value: object, info: ValidationInfo) -> str:
    """Read the name of a capture, relative to the scenario's folder."""
    needs = 'write file = "slow.pcap"'
    if not isinstance(value, str) or not value or "\0" in value:
        raise UnitError(f"{units.quote(value)} is not a file name; {needs}")
    path = (get_validation_context(info).folder or Path()) / value
    protect_inputs(path)
    try:
        is_file = path.is_file()
    except OSError as error:
        raise UnitError(f"{path} cannot be read ({error}); {needs}") from None
    if not is_file:
        raise UnitError(f"the file {path} does not exist; {needs}")
    return str(path)


def _read_connection_selection(value: object) -> int | str:
    if isinstance(value, str) and not value.strip():
        raise UnitError(
            "is empty; write the number of a connection, such as 0, or an endpoint such as "
            '"10.0.0.1:5001", or "all"'
        )
    if isinstance(value, str) and not value.strip().isdecimal():
        return value.strip()
    try:
        number = int(value) if isinstance(value, str) else value
        return units.parse_count(number, minimum=0, maximum=MAX_CONNECTION_NUMBER)
    except ValueError as error:
        raise UnitError(f'{error}, or an endpoint such as "10.0.0.1:5001", or "all"') from None


ConnectionChoice = Annotated[
    int | str,
    PlainValidator(_read_connection_selection),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_CONNECTION_NUMBER},
                {"type": "string", "pattern": r"\S"},
            ]
        }
    ),
]
"""A selected connection of a capture: its number, or its end points."""


class CapturedFlows(Table):
    """Flows of a packet capture, whose measured values are the inputs of models.

    The capture determines network, TCP and run, so the scenario does not have these tables.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        "flows": 'the capture determines the number of flows; write connection = "all"',
        "sources": 'the capture determines the number of sources; write connection = "all"',
        "size": "the capture determines the sizes; leave this key out",
        "count": "the capture determines the number of transfers; leave this key out",
    }

    kind: Literal["capture"]
    file: Annotated[str, BeforeValidator(_read_capture_name)] = Field(
        examples=["slow.pcap"], description="pcap or pcapng, relative to the scenario's folder"
    )
    connection: ConnectionChoice | None = Field(
        default=None,
        examples=[3],
        description=(
            "number of a connection in `tcpcast trace --csv`, an endpoint "
            '("10.0.0.1:5001"), both endpoints ("10.0.0.1 > 10.0.0.2"), or "all"; the default is '
            "the direction with the most data"
        ),
    )

    @property
    def declared(self) -> int:
        """0: the capture determines the number of flows."""
        return 0

    @property
    def count(self) -> int:
        """0: the capture determines the number of flows."""
        return 0
