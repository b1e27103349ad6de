//! Random loss on links; `round_loss` contains the loss that depends on flows.

pub use tcpcast_link::loss::{LinkLossConfig, LossModel, LossPlace};
