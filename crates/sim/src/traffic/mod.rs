//! What the sources want to send: files and OFF times, one endless flow each, or single transfers.

mod coupling;
mod distribution;
mod residual;
mod start;
mod survival;

pub use coupling::Coupling;
pub use distribution::Distribution;
pub use start::{SourceStart, draw_start};
pub(crate) use survival::{above, deviate};

use crate::random::Stream;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::num::NonZeroU32;

/// A list of a configuration that is drawn from, or taken in turn.
pub(crate) fn not_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    list: D,
) -> Result<Vec<T>, D::Error> {
    let values = Vec::deserialize(list)?;
    if values.is_empty() { Err(D::Error::invalid_length(0, &"at least one")) } else { Ok(values) }
}

/// The traffic of one class of sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Traffic {
    /// An OFF time, a file, an OFF time, ...
    OnOff {
        /// Distribution of the OFF times, in seconds.
        off: Distribution,
        /// Distribution of the file sizes, in packets.
        size: Distribution,
        /// How a drawn size becomes whole packets, at least 1.
        rounding: Rounding,
        /// Whether all files of a source go over one connection; if not, each has its own.
        persistent: bool,
        /// Correlation of the two normal numbers that a file's size and the OFF time after it are
        /// made of (a Gaussian copula); 0 if they are drawn each by itself.
        coupling: f64,
        /// What comes first.
        begin: Begin,
    },
    /// One endless flow a source.
    Bulk {
        /// When each flow starts, in seconds.
        start: Start,
        /// When all stop, in seconds: from then on they send nothing, not even what was lost.
        stop: Option<f64>,
    },
    /// Single transfers one after the other, each from fresh state on the empty path.
    Transfers {
        /// Their sizes, taken in turn; at least one.
        #[serde(deserialize_with = "not_empty")]
        sizes: Vec<FileSize>,
    },
    /// Single transfers that begin at random times, each a new connection, on one network.
    Arrivals {
        /// Distribution of the times between their beginnings, in seconds.
        gap: Distribution,
        /// Distribution of their sizes, in packets.
        size: Distribution,
        /// How a drawn size becomes whole packets, at least 1.
        rounding: Rounding,
    },
}

impl Traffic {
    /// Whether the sender of a file closes its connection behind it.
    #[must_use]
    pub fn closes(&self) -> bool {
        match self {
            Self::OnOff { persistent, .. } => !persistent,
            Self::Bulk { .. } => false,
            Self::Transfers { .. } | Self::Arrivals { .. } => true,
        }
    }
}

/// A file to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSize {
    /// Its packets.
    pub packets: u32,
    /// Bytes that the last of them lacks of a full one.
    pub lacking: u32,
}

impl FileSize {
    /// Of so many full packets.
    #[must_use]
    pub fn of_full(packets: u32) -> Self {
        Self { packets, lacking: 0 }
    }
}

/// How a drawn size becomes whole packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// To the nearest.
    Nearest,
    /// What is not whole is cut off.
    Down,
    /// Bytes are whole, and the last packet is as long as what is left; each packet has room for
    /// so many.
    Bytes(NonZeroU32),
}

impl Rounding {
    /// The file of a drawn size: at least one packet, or one byte.
    #[inline]
    #[must_use]
    pub fn file(self, size: f64) -> FileSize {
        let most = f64::from(u32::MAX - 1);
        let whole = match self {
            Self::Nearest => libm::round(size),
            Self::Down => libm::floor(size),
            Self::Bytes(payload) => {
                let payload = u64::from(payload.get());
                let room = payload as f64;
                let bytes = libm::round(size * room).clamp(1.0, most * room) as u64;
                let packets = bytes.div_ceil(payload);
                let lacking = packets * payload - bytes;
                return FileSize { packets: packets as u32, lacking: lacking as u32 };
            }
        };
        FileSize::of_full(whole.clamp(1.0, most) as u32)
    }
}

/// What an on/off source begins with.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Begin {
    /// An OFF time from its beginning on.
    Off,
    /// What is left of an OFF time or, with probability `active`, of a file, as someone finds who
    /// comes at any time. What is left of files begins within the first `within` seconds.
    Equilibrium {
        /// Probability of being in a file.
        active: f64,
        /// In seconds.
        within: f64,
    },
}

/// When bulk flows start.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Each at a draw from a distribution, in seconds.
    Drawn(Distribution),
    /// The n-th flow at the n-th time, in seconds; the list repeats when it is shorter.
    Times(#[serde(deserialize_with = "not_empty")] Vec<f64>),
}

impl Start {
    /// When the flow at `place` of its class starts, in seconds.
    pub(crate) fn of(&self, place: usize, stream: &mut Stream) -> f64 {
        match self {
            Self::Drawn(distribution) => distribution.draw(stream),
            Self::Times(times) => times[place % times.len()],
        }
    }
}
