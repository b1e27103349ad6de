"""Convert random loss to the simulator's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.loss import Loss


def loss_model_config(loss: Loss | None) -> Config | None:
    """Return a link's loss model, which is independent of flows; None for no loss.

    Raises
    ------
    TypeError
        The model loses the rest of a round, which scenarios allow only at the bottleneck.
    """
    if loss is None:
        return None
    if loss.model == "bernoulli":
        return {"bernoulli": loss.rate}
    if loss.model == "rest-of-round":
        raise TypeError('loss model "rest-of-round" is supported only at the bottleneck')
    return {"gilbert-elliott": {name: value for name, value in loss if name != "model"}}


def link_loss_config(link: Link) -> Config | None:
    """Return the random loss of a link and its position; None for no loss."""
    model = loss_model_config(link.loss)
    return None if model is None else {"model": model, "at": link.loss_at}


def bottleneck_loss_config(link: Link) -> Config | None:
    """Return the random loss of the bottleneck, which may depend on flows, and its position."""
    if link.loss is not None and link.loss.model == "rest-of-round":
        return {"model": {"rest-of-round": link.loss.rate}, "at": link.loss_at}
    config = link_loss_config(link)
    return None if config is None else {"model": {"packet": config["model"]}, "at": config["at"]}
