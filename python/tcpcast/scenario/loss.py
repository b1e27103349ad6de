"""Random loss of a link: independent, in bursts, or of the rest of a round."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_serializer, model_validator

from tcpcast import units
from tcpcast.errors import UnitError
from tcpcast.scenario.quantities import RATIO_SCHEMA, Ratio
from tcpcast.scenario.table import Table, choice, fault, faults

LossPlace = Literal["before", "behind"]
"""Where on its link a packet is lost at random: before the queue or behind the transmitter."""

_MODELS = ("bernoulli", "gilbert-elliott", "rest-of-round")


class Bernoulli(Table):
    """Each data packet is lost with the same probability, independently."""

    model: Literal["bernoulli"]
    rate: Ratio = Field(examples=["1%"])

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rate >= 1:
            raise faults([fault('loses every packet; write less than "100%"', "rate")])
        return self

    @model_serializer
    def _as_text(self) -> str:
        return units.format_ratio(self.rate)

    def mean_ratio(self) -> float:
        """Return the share of packets lost in the long run."""
        return self.rate


class GilbertElliott(Table):
    """A good and a bad state, changed after each packet; losses come in bursts.

    ``to_bad`` is the probability to leave the good state after a packet, ``to_good`` to leave the
    bad one; ``loss_good`` and ``loss_bad`` are the loss probabilities within the states.
    """

    model: Literal["gilbert-elliott"]
    to_bad: Ratio = Field(examples=["0.1%"], description="probability of leaving the good state")
    to_good: Ratio = Field(examples=["20%"], description="probability of leaving the bad state")
    loss_good: Ratio = Field(default=0.0, examples=["0%"], description="loss in the good state")
    loss_bad: Ratio = Field(default=1.0, examples=["100%"], description="loss in the bad state")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in ("to_bad", "to_good"):
            if getattr(self, key) == 0:
                message = 'must be above 0, or a state is never left; write "1%"'
                raise faults([fault(message, key)])
        if self.mean_ratio() >= 1:
            raise faults([fault('loses every packet; write less than "100%"', "loss_bad")])
        return self

    def mean_ratio(self) -> float:
        """Return the share of packets lost in the long run."""
        bad = self.to_bad / (self.to_bad + self.to_good)
        return (1 - bad) * self.loss_good + bad * self.loss_bad


class RestOfRound(Table):
    """A packet is lost with probability ``rate``, and with it the rest of its flow's round.

    The loss that PFTK assumes (Padhye, Firoiu, Towsley and Kurose 1998, section 2.1), with its p
    as ``rate``: independent between rounds, certain after the first loss in one.
    """

    model: Literal["rest-of-round"]
    rate: Ratio = Field(
        examples=["1%"],
        description="loss probability of a packet if no earlier one of its round was lost",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rate >= 1:
            raise faults([fault('loses every packet; write less than "100%"', "rate")])
        return self

    def mean_ratio(self) -> float:
        """Return ``rate``, PFTK's p.

        The share of packets lost is larger, and depends on how many packets rounds have.
        """
        return self.rate


Loss = Bernoulli | GilbertElliott | RestOfRound


def _read_loss(value: object) -> object:
    """Turn ``"1%"`` or 0.01 into the table it stands for."""
    if isinstance(value, Table):
        return value
    if not isinstance(value, Mapping):
        ratio = units.parse_ratio(value)
        if ratio >= 1:
            raise UnitError(f'{units.show(value)} loses every packet; write "1%", say')
        return {"model": "bernoulli", "rate": ratio}
    if "model" not in value:
        raise faults([fault('missing; write model = "gilbert-elliott", or loss = "1%"', "model")])
    check = choice("loss model", _MODELS)
    try:
        return {**value, "model": check(value["model"])}
    except ValueError as error:
        raise faults([fault(str(error), "model")]) from None


def ratio_too(schema: dict[str, Any]) -> None:
    """Tell the JSON Schema that a plain ratio stands for independent losses."""
    tables = schema.pop("oneOf", None) or schema.pop("anyOf")
    schema["anyOf"] = [RATIO_SCHEMA, *tables]


LossRule = Annotated[Loss, Field(discriminator="model"), BeforeValidator(_read_loss)]
