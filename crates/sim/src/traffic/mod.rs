//! What the sources want to send: files and silences, one endless flow each, or single transfers.

mod law;

pub use law::Law;

/// The traffic of one class of sources.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// A silence, a file, a silence, ...; a fresh silence comes first.
    OnOff {
        /// Law of the silences, in seconds.
        off: Law,
        /// Law of the file sizes, in packets; a draw is rounded to the nearest, at least 1.
        size: Law,
    },
    /// One endless flow a source.
    Bulk {
        /// When each flow starts, in seconds.
        start: Start,
    },
    /// Single transfers one after the other, each from fresh state on the empty path.
    Transfers {
        /// Their sizes in packets, taken in turn.
        sizes: Vec<u32>,
    },
    /// Single transfers that begin at random times, each a new connection, on one network.
    Arrivals {
        /// Law of the times between their beginnings, in seconds.
        gap: Law,
        /// Law of their sizes, in packets; a draw is rounded to the nearest, at least 1.
        size: Law,
    },
}

/// When bulk flows start.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// Each at a draw from a law, in seconds.
    Law(Law),
    /// The n-th flow at the n-th time, in seconds; the list repeats when it is shorter.
    Times(Vec<f64>),
}
