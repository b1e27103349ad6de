//! Subset of the packetdrill language that drives one connection.
//!
//! ```text
//!   text -> items -> events -> script runner -> outcome
//!           (items)  (event, packet, system_call, assertion, stack_settings)
//!                                                  (application, error_queue)
//! ```
//!
//! The script runner has an application, a connection and a virtual clock. It passes the script's
//! packets to the connection, and compares the packets that the connection sends with the expected
//! ones.

mod application;
mod assertion;
mod comparison;
mod error_queue;
mod event;
mod items;
mod packet;
mod script_runner;
mod stack_settings;
mod system_call;

use std::fmt;

use tcpcast_tcp::modern::Preset;

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
pub(crate) enum ScriptError {
    Failed(String),
    NotSupported(String),
}

impl ScriptError {
    fn at_line(self, line: usize) -> Outcome {
        match self {
            Self::Failed(what) => Outcome::Failed { line, what },
            Self::NotSupported(what) => Outcome::NotChecked { line, what },
        }
    }
}

/// Returns an error for an unsupported feature.
pub(crate) fn not_supported<T>(what: impl Into<String>) -> Result<T, ScriptError> {
    Err(ScriptError::NotSupported(what.into()))
}

/// Returns an error for an expectation that does not hold.
pub(crate) fn failed<T>(what: impl Into<String>) -> Result<T, ScriptError> {
    Err(ScriptError::Failed(what.into()))
}

/// Runs a script against a stack, whose settings the script may change.
pub fn run(script: &str, preset: Preset) -> Outcome {
    let items = match items::split_items(script) {
        Ok(items) => items,
        Err((line, error)) => return error.at_line(line),
    };
    let mut runner = script_runner::ScriptRunner::new(preset);
    for item in &items {
        let event = event::parse(item).map_err(|error| error.at_line(item.line));
        if let Err(outcome) = event.and_then(|event| runner.execute(item.line, event)) {
            return outcome;
        }
    }
    if items.is_empty() {
        return Outcome::NotChecked { line: 1, what: "the script has no events".into() };
    }
    match runner.finish() {
        Ok(unmentioned) => Outcome::Passed { unmentioned },
        Err(outcome) => outcome,
    }
}
