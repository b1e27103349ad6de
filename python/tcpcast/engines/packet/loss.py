"""Random loss as the simulator takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpcast.engines.packet.plain import BottleneckLoss, LossModel
    from tcpcast.scenario.loss import Loss


def loss_model(loss: Loss | None) -> LossModel | None:
    """Return how a link loses packets, whoever sent them; None for no loss.

    Raises
    ------
    TypeError
        The loss is that of rounds; scenarios have it at the bottleneck only.
    """
    if loss is None:
        return None
    if loss.model == "bernoulli":
        return {"bernoulli": loss.rate}
    if loss.model == "rest-of-round":
        raise TypeError("only the bottleneck loses the rest of a round")
    return {
        "gilbert-elliott": {
            "to_bad": loss.to_bad,
            "to_good": loss.to_good,
            "loss_good": loss.loss_good,
            "loss_bad": loss.loss_bad,
        }
    }


def bottleneck_loss(loss: Loss | None) -> BottleneckLoss | None:
    """Return how the bottleneck loses packets, which knows flows; None for no loss."""
    if loss is not None and loss.model == "rest-of-round":
        return {"rest-of-round": loss.rate}
    found = loss_model(loss)
    return None if found is None else {"packet": found}
