"""A network of links with routes: ``[link.NAME]``, ``[site.NAME]``, and the routes of classes."""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)

from tcpcast.process.errors import UnitError, did_you_mean_text
from tcpcast.quantity import units
from tcpcast.scenario.csv_file import data_rows, read_file_of_table
from tcpcast.scenario.jitter import JitterRule
from tcpcast.scenario.link import UNLIMITED, Link
from tcpcast.scenario.loss import LossRule, RestOfRound, add_ratio_to_schema
from tcpcast.scenario.name_patterns import Name
from tcpcast.scenario.quantities import Duration, PositiveDuration, Rate
from tcpcast.scenario.remark import RemarkRule
from tcpcast.scenario.table import Errors, Table, make_error_at, make_key_error
from tcpcast.scenario.traffic import Count

SENDER = "sender"
"""Value of ``each`` for one link per sender."""

MAX_LINKS = 10_000
MAX_CHANGES = 100_000


_CHANGE_COLUMNS = ("rate", "delay", "loss")
_FILE_ADVICE = 'use file = "pass.csv" (columns `time`, and `rate`, `delay` or `loss`, with units)'


class Change(Table):
    """New values of a link from a time on."""

    rate: Rate | None = Field(default=None, examples=["500mbit"], description="rate in IP bytes")
    delay: Duration | None = Field(
        default=None, examples=["40ms"], description="one-way propagation delay"
    )
    loss_rule: LossRule | None = Field(
        default=None,
        alias="loss",
        examples=["1%"],
        description="random loss",
        json_schema_extra=add_ratio_to_schema,
    )

    def _find_errors(self) -> Errors:
        if not self.model_fields_set:
            yield make_error_at('changes nothing; use { rate = "500mbit" }, for example')
        if isinstance(self.loss_rule, RestOfRound):
            yield make_error_at(_NO_ROUNDS, "loss")


_NO_ROUNDS = (
    "correlated loss requires the rounds of TCP, which a link cannot detect; use a random loss, "
    'such as "1%"'
)


def _read_changes(value: object, info: ValidationInfo) -> object:
    """Read the file of changes, and check the times."""
    if not isinstance(value, Mapping):
        return value
    if "file" in value:
        others = [key for key in value if key != "file"]
        value = read_file_of_table(value, ("file", *others), info, _FILE_ADVICE, _read_change_rows)
    for time in value:
        try:
            units.parse_duration(time, example="20s")
        except UnitError as error:
            raise make_key_error(str(error), str(time)) from None
    return value


def _read_change_rows(rows: Iterable[list[str]], name: str) -> dict[str, dict[str, str]]:
    columns: list[str] = []
    changes: dict[str, dict[str, str]] = {}
    for number, cells in data_rows(rows):
        if not columns:
            columns = cells
            if columns[0] != "time" or not set(columns[1:]) <= set(_CHANGE_COLUMNS):
                raise UnitError(f"{name}, line {number}: {_FILE_ADVICE}")
            continue
        if len(cells) != len(columns):
            raise UnitError(
                f"{name}, line {number}: this line contains {len(cells)} columns, but the header "
                f"line {len(columns)}"
            )
        values = zip(columns[1:], cells[1:], strict=True)
        changes[cells[0]] = {key: cell for key, cell in values if cell}
        if len(changes) > MAX_CHANGES:
            raise UnitError(f"{name} contains more than {MAX_CHANGES:,} rows; use fewer changes")
    return changes


Changes = Annotated[dict[str, Change], BeforeValidator(_read_changes)]
"""Changes by time as typed."""


MAX_GRANT_TIME_S = 1.0
"""Longest MAP interval, and longest time from a request to its grant."""


class Docsis(Table):
    """Requests and grants of the upstream channel of a cable network (DOCSIS 3.0 and 3.1).

    The defaults are those of CableLabs' model for ns-3 (docsis-ns3): 1.7 ms are its times for
    processing, framing and propagation.
    """

    map_interval: PositiveDuration = Field(
        default=2e-3, examples=["1ms"], description="length of a MAP interval"
    )
    min_delay: Duration = Field(
        default=1.7e-3,
        examples=["1.7ms"],
        description="minimum time from a request to the MAP interval that contains its grant",
    )

    @property
    def idle_delay_s(self) -> float:
        """Mean time to the grant of a packet for which no grant is pending, in seconds.

        The packet waits for half an interval on average until the interval of its request. The
        interval of the grant begins one interval and the minimum delay later on average, and the
        grant is in the middle of it.
        """
        return 2.0 * self.map_interval + self.min_delay

    def _find_errors(self) -> Errors:
        yield from super()._find_errors()
        for key, usual in (("map_interval", "2ms"), ("min_delay", "1.7ms")):
            if getattr(self, key) > MAX_GRANT_TIME_S:
                text = units.format_duration(MAX_GRANT_TIME_S)
                yield make_error_at(f'must be at most {text}; use "{usual}", for example', key)


class NetworkLink(Link):
    """A link of a network, or one such link per sender or per member of a site."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        **Link.elsewhere,
        "measured": "belongs to [[network.hop]] tables; use probes.link",
        "shared": 'belongs to [[network.hop]] tables; use each = "sender"',
        "name": "belongs to [[network.hop]] tables; add [link.NAME]",
    }

    each: Name | None = Field(
        default=None,
        examples=["home"],
        description="create one link per member of this site or per sender; default: one for all",
    )
    jitter: JitterRule | None = Field(
        default=None,
        examples=[{"distribution": "exponential", "mean": "5ms"}],
        description="distribution of a random delay behind the queue; with reorder = true, "
        "packets overtake each other",
    )
    docsis: Docsis | None = Field(
        default=None,
        examples=[{"map_interval": "2ms"}],
        description="cable modem, whose packets wait for grants of the upstream channel; {} "
        "selects the defaults",
    )
    remark: RemarkRule | None = Field(
        default=None,
        examples=[{"ect1": "ect0"}],
        description='change of the ECN field by a middlebox: it is cleared ("bleach"), random '
        '("random"), or replaced by a table of codepoints',
    )
    at: Changes = Field(
        default={},
        examples=[{"20s": {"rate": "500mbit"}}],
        json_schema_extra={"properties": {"file": {"type": "string"}}},
        description="times with new values of rate, delay or loss; or { file = ... } with a column "
        "`time` and a column per changed key",
    )

    @property
    def idle_access_s(self) -> float:
        """Mean time to the grant of a packet on an idle cable network, in seconds."""
        return 0.0 if self.docsis is None else self.docsis.idle_delay_s

    @property
    def changes(self) -> list[tuple[float, Change]]:
        """Time in seconds and new values of each change, in order."""
        timed = [(units.parse_duration(time), change) for time, change in self.at.items()]
        return sorted(timed, key=lambda entry: entry[0])

    def _find_errors(self) -> Errors:
        yield from super()._find_errors()
        if math.isinf(self.rate) and not any(change.rate for change in self.at.values()):
            for key, typed in (
                ("buffer", self.buffer != UNLIMITED),
                ("queue", self.queue != "droptail"),
            ):
                if typed:
                    message = (
                        "a link without a rate has no queue; remove this key, or use "
                        'rate = "10mbit"'
                    )
                    yield make_error_at(message, key)
        if isinstance(self.loss_rule, RestOfRound):
            yield make_error_at(_NO_ROUNDS, "loss")
        if self.docsis is not None and self.jitter is not None:
            message = (
                "docsis and jitter are mutually exclusive on one link; remove jitter, or use "
                "another link"
            )
            yield make_error_at(message, "jitter")
        for time, change in self.at.items():
            if units.parse_duration(time) == 0:
                yield make_error_at(
                    "is the start of the run; set the value as a key of the link", "at", time
                )
            if change.rate is not None and self.varying is not None:
                message = (
                    f"the rate is a {self.varying.kind}; use a constant rate, or remove this change"
                )
                yield make_error_at(message, "at", time, "rate")


DSCP_NAMES = {
    **{f"cs{number}": 8 * number for number in range(8)},
    **{f"af{number}{drop}": 8 * number + 2 * drop for number in range(1, 5) for drop in (1, 2, 3)},
    "be": 0,
    "le": 1,
    "va": 44,
    "ef": 46,
}
"""Codepoints by the names of RFC 2474, 2597, 3246, 5865 and 8622, as ``tc`` reads them."""


def _read_dscp(value: object) -> int:
    if isinstance(value, str) and value.lower() in DSCP_NAMES:
        return DSCP_NAMES[value.lower()]
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 64:
        return value
    near = did_you_mean_text(value, DSCP_NAMES)
    raise UnitError(f'{units.quote(value)} is not a codepoint{near}; use "ef", or 0 to 63')


Dscp = Annotated[
    int,
    BeforeValidator(_read_dscp),
    WithJsonSchema(
        {"anyOf": [{"enum": list(DSCP_NAMES)}, {"type": "integer", "minimum": 0, "maximum": 63}]}
    ),
]
"""A codepoint of differentiated services, by name or number."""


class Site(Table):
    """Hosts that share the links with ``each`` = the name of the site, such as a home."""

    count: Count = Field(examples=[250], description="number of members, such as homes")


def _read_routes(value: object) -> object:
    """Convert a single route to a list of routes."""
    if isinstance(value, list) and not any(isinstance(route, list) for route in value):
        return [value]
    return value


Routes = Annotated[
    list[list[Name]],
    Field(min_length=1, max_length=1024),
    BeforeValidator(_read_routes),
    PlainSerializer(lambda routes: routes[0] if len(routes) == 1 else routes),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            ]
        }
    ),
]
"""A list of links, or several such lists: one per connection, chosen by a hash."""
