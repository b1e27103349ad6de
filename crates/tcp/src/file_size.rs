//! Sizes of files.

use serde::Deserialize;

/// Size of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSize {
    /// Number of packets.
    pub packets: u32,
    /// Number of bytes by which the last packet is shorter than a full packet.
    pub lacking: u32,
}

impl FileSize {
    /// A file of `packets` full packets.
    #[must_use]
    pub fn of_full_packets(packets: u32) -> Self {
        Self { packets, lacking: 0 }
    }
}
