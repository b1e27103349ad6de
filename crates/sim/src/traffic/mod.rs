//! Traffic of the sources: files and OFF times, endless flows, or single transfers.

mod distribution;
mod residual_time;
mod size_off_time_coupling;
mod start;
mod survival_function;

pub use distribution::Distribution;
pub use size_off_time_coupling::SizeOffTimeCoupling;
pub use start::{SourceStart, draw_source_start};
pub(crate) use survival_function::{normal_probability_above, normal_quantile};

use crate::clock::{Nanos, SECOND};
use crate::random::RandomStream;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::num::NonZeroU32;
pub use tcpcast_tcp::FileSize;

/// Deserialises a list and rejects an empty one.
pub(crate) fn deserialize_non_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    list: D,
) -> Result<Vec<T>, D::Error> {
    let values = Vec::deserialize(list)?;
    if values.is_empty() { Err(D::Error::invalid_length(0, &"at least one")) } else { Ok(values) }
}

/// Traffic of a class of sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Traffic {
    /// Alternating OFF times and files.
    OnOff {
        /// Distribution of the OFF times, in seconds.
        off: Distribution,
        /// Distribution of the file sizes, in packets.
        size: Distribution,
        /// Rounding of a drawn size to packets, at least 1.
        rounding: SizeRounding,
        /// Whether all files of a source use one connection instead of a connection per file.
        persistent: bool,
        /// Correlation of the normal variables behind the size of a file and the following OFF time
        /// (Gaussian copula); 0 for independent draws.
        coupling: f64,
        /// Initial state.
        begin: OnOffInitialState,
    },
    /// One endless flow per source.
    Bulk {
        /// Start times of the flows, in seconds.
        start: BulkStartTimes,
        /// Stop time of all flows, in seconds; afterwards the flows send nothing, not even
        /// retransmissions.
        stop: Option<f64>,
    },
    /// Isolated single transfers in sequence, each on the idle path with reset state.
    Transfers {
        /// Sizes, used cyclically; at least one.
        #[serde(deserialize_with = "deserialize_non_empty")]
        sizes: Vec<FileSize>,
    },
    /// Single transfers that start at random times on new connections and share the network.
    Arrivals {
        /// Distribution of the times between starts, in seconds.
        gap: Distribution,
        /// Distribution of the sizes, in packets.
        size: Distribution,
        /// Rounding of a drawn size to packets, at least 1.
        rounding: SizeRounding,
    },
}

impl Traffic {
    /// Whether senders close their connections after a file.
    #[must_use]
    pub fn closes_after_file(&self) -> bool {
        match self {
            Self::OnOff { persistent, .. } => !persistent,
            Self::Bulk { .. } => false,
            Self::Transfers { .. } | Self::Arrivals { .. } => true,
        }
    }
}

/// Time from the end of a transfer to the start of the next one on an idle path, or to the next
/// check whether the path is idle.
pub(crate) const TRANSFER_GAP: Nanos = SECOND / 100;

/// Rounding of a drawn size to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeRounding {
    /// To the nearest number of packets.
    Nearest,
    /// Down to a number of packets.
    Down,
    /// To the nearest number of bytes, with a shorter last packet; the value is the payload per
    /// packet.
    Bytes(NonZeroU32),
}

impl SizeRounding {
    /// Rounds a drawn size in packets to a file of at least one packet or, with rounding to bytes,
    /// at least one byte.
    #[inline]
    #[must_use]
    pub fn round_to_file_size(self, size: f64) -> FileSize {
        let max = f64::from(u32::MAX - 1);
        let packets = match self {
            Self::Nearest => libm::round(size),
            Self::Down => libm::floor(size),
            Self::Bytes(payload) => {
                let payload = u64::from(payload.get());
                let scale = payload as f64;
                let bytes = libm::round(size * scale).clamp(1.0, max * scale) as u64;
                let packets = bytes.div_ceil(payload);
                let lacking = packets * payload - bytes;
                return FileSize { packets: packets as u32, lacking: lacking as u32 };
            }
        };
        FileSize::of_full_packets(packets.clamp(1.0, max) as u32)
    }
}

/// Initial state of an on/off source.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum OnOffInitialState {
    /// The start of an OFF time.
    Off,
    /// Equilibrium: the residual of an OFF time or, with probability `active`, of a file. Residual
    /// files start within the first `within` seconds.
    Equilibrium {
        /// Probability of a file.
        active: f64,
        /// Maximum start time of residual files in seconds.
        within: f64,
    },
}

/// Start times of bulk flows.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BulkStartTimes {
    /// Drawn from a distribution, in seconds.
    Drawn(Distribution),
    /// Listed times in seconds, one per flow; the list is used cyclically.
    Times(#[serde(deserialize_with = "deserialize_non_empty")] Vec<f64>),
}

impl BulkStartTimes {
    /// Start time in seconds of the flow with this index in its class.
    pub(crate) fn start_time(&self, index: usize, stream: &mut RandomStream) -> f64 {
        match self {
            Self::Drawn(distribution) => distribution.draw_value(stream),
            Self::Times(times) => times[index % times.len()],
        }
    }
}
