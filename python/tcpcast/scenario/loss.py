"""Random loss of a link: independent, in bursts, or correlated within a round."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_serializer

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.quantities import RATIO_SCHEMA, Ratio
from tcpcast.scenario.table import (
    Errors,
    Table,
    check_selecting_key,
    make_error_at,
)

LossPlace = Literal["before", "behind"]
"""Position of random loss on a link: before the queue or behind the transmitter."""

LOSS_MODELS = ("bernoulli", "gilbert-elliott", "rest-of-round")


class Bernoulli(Table):
    """Each data packet is lost with the same probability, independently."""

    model: Literal["bernoulli"]
    rate: Ratio = Field(examples=["1%"])

    def _find_errors(self) -> Errors:
        if self.rate >= 1:
            yield make_error_at('loses every packet; use less than "100%"', "rate")

    @model_serializer
    def _write_as_percentage(self) -> str:
        return units.format_ratio(self.rate)

    def mean_ratio(self) -> float:
        """Return the long-term share of lost packets."""
        return self.rate


class GilbertElliott(Table):
    """Loss in bursts: a Markov chain with a good and a bad state.

    After each packet, the state changes with probability ``to_bad`` (from good) or ``to_good``
    (from bad). ``loss_good`` and ``loss_bad`` are the loss probabilities in the two states.
    """

    model: Literal["gilbert-elliott"]
    to_bad: Ratio = Field(
        examples=["0.1%"], description="probability per packet of leaving the good state"
    )
    to_good: Ratio = Field(
        examples=["20%"], description="probability per packet of leaving the bad state"
    )
    loss_good: Ratio = Field(
        default=0.0, examples=["0%"], description="loss probability in the good state"
    )
    loss_bad: Ratio = Field(
        default=1.0, examples=["100%"], description="loss probability in the bad state"
    )

    def _find_errors(self) -> Errors:
        for key in ("to_bad", "to_good"):
            if getattr(self, key) == 0:
                message = 'must be above 0, otherwise a state never ends; use "1%", for example'
                yield make_error_at(message, key)
        if self.to_bad and self.to_good and self.mean_ratio() >= 1:
            yield make_error_at('loses every packet; use less than "100%"', "loss_bad")

    def mean_ratio(self) -> float:
        """Return the long-term share of lost packets."""
        bad = self.to_bad / (self.to_bad + self.to_good)
        return (1 - bad) * self.loss_good + bad * self.loss_bad


class RestOfRound(Table):
    """Correlated loss: after the first loss in a round of a flow, the rest of the round is lost.

    This is the loss model of PFTK (Padhye, Firoiu, Towsley and Kurose 1998, section 2.1), with
    its p as ``rate``. Losses in different rounds are independent.
    """

    model: Literal["rest-of-round"]
    rate: Ratio = Field(
        examples=["1%"],
        description="loss probability of a packet if its round has lost no earlier packet",
    )

    def _find_errors(self) -> Errors:
        if self.rate >= 1:
            yield make_error_at('loses every packet; use less than "100%"', "rate")

    def mean_ratio(self) -> float:
        """Return ``rate``, PFTK's p.

        The share of lost packets is larger than p, and depends on the number of packets per round.
        """
        return self.rate


Loss = Bernoulli | GilbertElliott | RestOfRound


def _read_loss(value: object) -> object:
    """Convert ``"1%"`` or 0.01 to a table."""
    if isinstance(value, Table):
        return value
    if not isinstance(value, Mapping):
        ratio = units.parse_ratio(value)
        if ratio >= 1:
            raise UnitError(f'{units.quote(value)} loses every packet; use "1%", for example')
        return {"model": "bernoulli", "rate": ratio}
    return check_selecting_key(value, key="model", what="loss model", words=LOSS_MODELS)


def add_ratio_to_schema(schema: dict[str, Any]) -> None:
    """Add a plain ratio, for independent losses, to the JSON Schema."""
    tables = schema.pop("oneOf", None) or schema.pop("anyOf")
    schema["anyOf"] = [RATIO_SCHEMA, *tables]


LossRule = Annotated[Loss, Field(discriminator="model"), BeforeValidator(_read_loss)]
