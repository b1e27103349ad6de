//! Subset of the packetdrill language that drives one connection.
//!
//! ```text
//!   text -> items -> events -> world: application, packets in, virtual time, packets out -> outcome
//!           (items)  (event, packet, call, shell, assertion)
//! ```

mod assertion;
mod call;
mod comparison;
mod event;
mod items;
mod packet;
mod setup;
mod world;

use std::fmt;

use tcpcast_sim::tcp::modern::Preset;

/// Outcome of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All expectations were checked and hold.
    Passed {
        /// Number of sent packets that the script does not mention.
        unmentioned: usize,
    },
    /// An expectation does not hold.
    Failed {
        /// Line number.
        line: usize,
        /// Expected and actual behaviour.
        what: String,
    },
    /// The script uses an unsupported feature. The lines before it hold.
    NotChecked {
        /// Line number.
        line: usize,
        /// Unsupported feature.
        what: String,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed { unmentioned: 0 } => write!(out, "passed"),
            Self::Passed { unmentioned } => {
                write!(out, "passed ({unmentioned} packets sent that the script does not mention)")
            }
            Self::Failed { line, what } => write!(out, "failed at line {line}: {what}"),
            Self::NotChecked { line, what } => write!(out, "not checked from line {line}: {what}"),
        }
    }
}

/// Reason for the end of a script before its last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Failed(String),
    NotSupported(String),
}

impl Stop {
    fn at(self, line: usize) -> Outcome {
        match self {
            Self::Failed(what) => Outcome::Failed { line, what },
            Self::NotSupported(what) => Outcome::NotChecked { line, what },
        }
    }
}

/// Returns an error for an unsupported feature.
pub(crate) fn not_supported<T>(what: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::NotSupported(what.into()))
}

/// Returns an error for an expectation that does not hold.
pub(crate) fn failed<T>(what: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(what.into()))
}

/// Runs a script against a stack, whose settings the script may change.
pub fn run(script: &str, preset: Preset) -> Outcome {
    let items = match items::split(script) {
        Ok(items) => items,
        Err((line, stop)) => return stop.at(line),
    };
    let mut world = world::World::new(preset);
    for item in &items {
        if let Err(stop) = event::parse(item).and_then(|event| world.execute(event)) {
            return stop.at(item.line);
        }
    }
    if items.is_empty() {
        return Outcome::NotChecked { line: 1, what: "the script has no events".into() };
    }
    match world.finish() {
        Ok(unmentioned) => Outcome::Passed { unmentioned },
        Err(stop) => stop.at(items.last().map_or(0, |item| item.line)),
    }
}
