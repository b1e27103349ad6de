"""Random loss in the simulator's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpcast.scenario.loss import Loss


def loss_law(loss: Loss | None) -> dict[str, float] | None:
    """Return a law of random loss in plain numbers; None for no loss."""
    if loss is None:
        return None
    if loss.model == "bernoulli":
        # A good state that is never left.
        return {"to_bad": 0.0, "to_good": 1.0, "loss_good": loss.rate, "loss_bad": 0.0}
    if loss.model == "rest-of-round":
        return {"rest_of_round": loss.rate}
    return {
        "to_bad": loss.to_bad,
        "to_good": loss.to_good,
        "loss_good": loss.loss_good,
        "loss_bad": loss.loss_bad,
    }
