//! The link that acknowledgements share.

use super::LossDict;
use super::queues::{ManagedDict, queue};
use pyo3::prelude::*;
use tcpcast_sim::ReturnConfig;

/// The link of the return path; where acknowledgements are lost alone, one without a queue.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ReturnDict {
    rate_bps: Option<u64>,
    buffer_pkts: Option<u64>,
    managed: Option<ManagedDict>,
    loss: Option<LossDict>,
}

impl ReturnDict {
    pub(super) fn into_config(self) -> PyResult<ReturnConfig> {
        Ok(ReturnConfig {
            rate_bps: self.rate_bps,
            buffer: self.buffer_pkts,
            queue: queue(None, None, self.managed)?,
            loss: self.loss.map(LossDict::into_law),
        })
    }
}
