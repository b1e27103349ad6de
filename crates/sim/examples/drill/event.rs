//! Events of a script and their times.

use super::items::Item;
use super::packet::{self, PacketSpec};
use super::system_call::{self, SystemCall};
use super::{ScriptError, not_supported};

/// Nanoseconds per second.
const NANOS_PER_SECOND: f64 = 1e9;

/// Time of an event in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTime {
    /// At a time of the script, or relative to the previous event.
    At { from: u64, to: u64, relative: bool, range: bool },
    /// At any time.
    Any,
}

/// Action of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A command-line option.
    Option(String),
    /// Shell commands.
    Shell(String),
    /// A system call of the application.
    Call(SystemCall),
    /// A packet that arrives.
    Arrives(PacketSpec),
    /// A packet that must be sent.
    Leaves(PacketSpec),
    /// An assertion.
    Asserts(String),
}

/// An event of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub when: Option<EventTime>,
    pub act: Action,
}

/// Parses an item.
pub fn parse(item: &Item) -> Result<Event, ScriptError> {
    let text = item.text.trim();
    if text.starts_with("--") {
        return Ok(Event { when: None, act: Action::Option(text.to_owned()) });
    }
    if let Some(shell) = strip_backquotes(text) {
        return Ok(Event { when: None, act: Action::Shell(shell.to_owned()) });
    }
    let (when, rest) = parse_time(text)?;
    let act = if let Some(shell) = strip_backquotes(rest) {
        Action::Shell(shell.to_owned())
    } else if let Some(python) = rest.strip_prefix("%{") {
        Action::Asserts(python.trim_end_matches("}%").to_owned())
    } else if let Some(packet) = rest.strip_prefix('<') {
        Action::Arrives(packet::parse(packet.trim())?)
    } else if let Some(packet) = rest.strip_prefix('>') {
        Action::Leaves(packet::parse(packet.trim())?)
    } else {
        Action::Call(system_call::parse(rest)?)
    };
    Ok(Event { when: Some(when), act })
}

fn strip_backquotes(text: &str) -> Option<&str> {
    text.strip_prefix('`').map(|shell| shell.trim_end_matches('`'))
}

/// `0`, `+.1`, `.2~.3`, `+.2~+.3`, `+.1...0.2`, `*`.
fn parse_time(text: &str) -> Result<(EventTime, &str), ScriptError> {
    let end = text.find(|c: char| c.is_whitespace() || c == '<' || c == '>' || c == '%');
    let end = end.filter(|&end| end > 0);
    let Some(end) = end else { return not_supported(format!("{text:?} is not an event")) };
    let (time, rest) = (&text[..end], text[end..].trim_start());
    if time == "*" {
        return Ok((EventTime::Any, rest));
    }
    let relative = time.starts_with('+');
    // Uses only the start time of a blocking call; later events show when it returned.
    let (time, rest) = match (time.split_once("..."), rest.strip_prefix("...")) {
        (Some((begins, _)), _) => (begins, rest),
        (None, Some(ends)) => (time, ends.trim_start().split_once(' ').unwrap_or_default().1),
        (None, None) => (time, rest),
    };
    let (from, to) = time.split_once('~').unwrap_or((time, time));
    let (from, to) = (parse_seconds(from)?, parse_seconds(to)?);
    let range = time.contains('~');
    Ok((EventTime::At { from, to, relative, range }, rest))
}

fn parse_seconds(text: &str) -> Result<u64, ScriptError> {
    match text.trim_start_matches('+').parse::<f64>() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => {
            Ok((seconds * NANOS_PER_SECOND).round() as u64)
        }
        _ => not_supported(format!("{text:?} is not a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> EventTime {
        parse(&Item { line: 1, text: format!("{text} %{{ }}%") }).unwrap().when.unwrap()
    }

    #[test]
    fn parse_reads_absolute_relative_and_range_times() {
        let exact = |from, relative| EventTime::At { from, to: from, relative, range: false };
        assert_eq!(at("0"), exact(0, false));
        assert_eq!(at("+.1"), exact(100_000_000, true));
        assert_eq!(at("+.01...0.011"), exact(10_000_000, true));
        assert_eq!(at("+.01 ... 0.011"), exact(10_000_000, true));
        let (from, to) = (300_000_000, 303_000_000);
        assert_eq!(at("+.3~+.303"), EventTime::At { from, to, relative: true, range: true });
        assert_eq!(at("*"), EventTime::Any);
    }
}
