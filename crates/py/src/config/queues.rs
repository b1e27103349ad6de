//! Queue disciplines: a dict for each that has parameters.

use super::unknown;
use pyo3::prelude::*;
use tcpcast_sim::queue::{FairConfig, Overflow, QueueConfig, RedConfig, Room, Ties};

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct RedDict {
    min_threshold: f64,
    max_threshold: f64,
    max_probability: f64,
    weight: f64,
    gentle: bool,
    packets_per_second: f64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct FairDict {
    quantum_bytes: u32,
    packet_bytes: u32,
    room: String,
    overflow: String,
    ties: String,
}

/// The discipline that has a dict; drop-tail if none has.
pub(super) fn queue(red: Option<RedDict>, fair: Option<FairDict>) -> PyResult<QueueConfig> {
    Ok(match (red, fair) {
        (Some(red), _) => red.into_queue(),
        (None, Some(fair)) => fair.into_queue()?,
        (None, None) => QueueConfig::DropTail,
    })
}

impl RedDict {
    fn into_queue(self) -> QueueConfig {
        QueueConfig::Red(RedConfig {
            min_threshold: self.min_threshold,
            max_threshold: self.max_threshold,
            max_probability: self.max_probability,
            weight: self.weight,
            gentle: self.gentle,
            packets_per_second: self.packets_per_second,
        })
    }
}

impl FairDict {
    fn into_queue(self) -> PyResult<QueueConfig> {
        Ok(QueueConfig::Fair(FairConfig {
            quantum_bytes: self.quantum_bytes,
            packet_bytes: self.packet_bytes,
            room: match self.room.as_str() {
                "shared" => Room::OfAll,
                "individual" => Room::OfFlow,
                other => return Err(unknown("room", other)),
            },
            overflow: match self.overflow.as_str() {
                "arriving" => Overflow::Arriving,
                "longest" => Overflow::LongestTail,
                "longest-head" => Overflow::LongestHead,
                other => return Err(unknown("overflow", other)),
            },
            ties: match self.ties.as_str() {
                "latest" => Ties::Latest,
                "random" => Ties::Random,
                "random-others" => Ties::RandomOthers,
                other => return Err(unknown("rule for ties", other)),
            },
        }))
    }
}
