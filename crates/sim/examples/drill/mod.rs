//! The part of packetdrill's script language that drives one connection.
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

/// The outcome of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was checked and holds.
    Passed {
        /// Number of sent packets that the script does not mention.
        unmentioned: usize,
    },
    /// A check failed.
    Failed {
        /// Line of the failure.
        line: usize,
        /// Expected and actual value.
        what: String,
    },
    /// Part of the script is not supported. Everything before it holds.
    NotChecked {
        /// Line of the unsupported part.
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

/// Reason to stop a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Failed(String),
    NotRead(String),
}

impl Stop {
    fn at(self, line: usize) -> Outcome {
        match self {
            Self::Failed(what) => Outcome::Failed { line, what },
            Self::NotRead(what) => Outcome::NotChecked { line, what },
        }
    }
}

/// Returns an error for an unsupported feature.
pub(crate) fn not_read<T>(what: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::NotRead(what.into()))
}

/// Returns an error for a failed check.
pub(crate) fn failed<T>(what: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(what.into()))
}

/// Runs a script against a stack; set-up lines change its defaults.
pub fn run(script: &str, preset: Preset) -> Outcome {
    let items = match items::split(script) {
        Ok(items) => items,
        Err((line, stop)) => return stop.at(line),
    };
    let mut world = world::World::new(preset);
    for item in &items {
        if let Err(stop) = event::parse(item).and_then(|event| world.follow(event)) {
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
