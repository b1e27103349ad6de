//! What the sources want to send: files and silences, or one endless flow each.

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
}

/// When bulk flows start.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// Each at a draw from a law, in seconds.
    Law(Law),
    /// The n-th flow at the n-th time, in seconds; the list repeats when it is shorter.
    Times(Vec<f64>),
}
