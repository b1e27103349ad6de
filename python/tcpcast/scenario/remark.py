"""Middleboxes that change the ECN field of packets: ``remark`` of a link."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units

CODEPOINTS = ("not-ect", "ect1", "ect0", "ce")
"""Codepoints by their numbers in the IP header."""

_EXAMPLE = '"bleach", "random" or { ect1 = "ect0" }'


@dataclass(frozen=True, slots=True)
class Remark:
    """New codepoints of packets, in the order of :data:`CODEPOINTS`; None for random ones.

    ``share`` is the probability with which a packet is changed.
    """

    to: tuple[str, str, str, str] | None
    share: float = 1.0

    @property
    def typed(self) -> str | dict[str, str]:
        """The value as in a scenario."""
        if self.to is None:
            table, word = {"kind": "random"}, "random"
        else:
            changes = zip(CODEPOINTS, self.to, strict=True)
            table = {old: new for old, new in changes if new != old}
            word = "bleach" if set(self.to) == {"not-ect"} else ""
        if self.share < 1.0:
            return table | {"share": units.format_ratio(self.share)}
        return word or table


def _read_remark(value: object) -> Remark:
    if isinstance(value, Remark):
        return value
    table = {"kind": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        raise UnitError(f"{units.quote(value)} does not change the ECN field; use {_EXAMPLE}")
    changes = {str(key): new for key, new in table.items() if key not in ("kind", "share")}
    share = units.parse_ratio(table["share"]) if "share" in table else 1.0
    if not share > 0:
        raise UnitError('a share of 0 changes nothing; use share = "5%", for example')
    for key, new in changes.items():
        for name in (key, new):
            if name not in CODEPOINTS:
                words = ", ".join(f'"{each}"' for each in CODEPOINTS)
                raise UnitError(f"{units.quote(name)} is not an ECN codepoint; use {words}")
    kind = table.get("kind")
    if kind is not None and changes:
        raise UnitError("kind and codepoints are mutually exclusive; use one")
    if kind == "random":
        return Remark(None, share)
    if kind == "bleach":
        changes = dict.fromkeys(CODEPOINTS, "not-ect")
    elif kind is not None:
        raise UnitError(f"{units.quote(kind)} does not change the ECN field; use {_EXAMPLE}")
    if not changes:
        raise UnitError(f"changes nothing; use {_EXAMPLE}")
    first, second, third, fourth = (changes.get(name, name) for name in CODEPOINTS)
    return Remark((first, second, third, fourth), share)


_KIND = {"enum": ["bleach", "random"]}
_SHARE = {
    "anyOf": [{"type": "number"}, {"type": "string"}],
    "description": "Probability with which a packet is changed.",
}


def _word_schema(name: str) -> dict[str, object]:
    return {"enum": list(CODEPOINTS), "description": f"New codepoint of packets with {name}."}


RemarkRule = Annotated[
    Remark,
    PlainValidator(_read_remark),
    PlainSerializer(lambda remark: remark.typed),
    WithJsonSchema(
        {
            "anyOf": [
                _KIND,
                {
                    "type": "object",
                    "properties": {
                        "kind": _KIND | {"description": "Change of all packets."},
                        **{name: _word_schema(name) for name in CODEPOINTS},
                        "share": _SHARE,
                    },
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
"""A change of the ECN field."""
