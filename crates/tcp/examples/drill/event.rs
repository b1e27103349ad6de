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
    /// Time at which a blocking call must return, as `when` either absolute or relative.
    pub returns_at: Option<u64>,
    pub act: Action,
}

/// Parses an item.
pub fn parse(item: &Item) -> Result<Event, ScriptError> {
    let text = item.text.trim();
    if text.starts_with("--") {
        return Ok(Event::without_time(Action::Option(text.to_owned())));
    }
    if let Some(shell) = strip_backquotes(text) {
        return Ok(Event::without_time(Action::Shell(shell.to_owned())));
    }
    let (when, returns_at, rest) = parse_time(text)?;
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
    if returns_at.is_some() && !matches!(act, Action::Call(_)) {
        return not_supported(format!("{text:?} blocks but is not a call"));
    }
    Ok(Event { when: Some(when), returns_at, act })
}

impl Event {
    fn without_time(act: Action) -> Self {
        Self { when: None, returns_at: None, act }
    }
}

fn strip_backquotes(text: &str) -> Option<&str> {
    text.strip_prefix('`').map(|shell| shell.trim_end_matches('`'))
}

/// Parses a time: `0`, `+.1`, `.2~.3`, `+.2~+.3`, `+.1...0.2`, or `*`. Returns the time, the end of
/// a blocking call, and the rest of the text.
fn parse_time(text: &str) -> Result<(EventTime, Option<u64>, &str), ScriptError> {
    let end = text.find(|c: char| c.is_whitespace() || c == '<' || c == '>' || c == '%');
    let end = end.filter(|&end| end > 0);
    let Some(end) = end else { return not_supported(format!("{text:?} is not an event")) };
    let (time, rest) = (&text[..end], text[end..].trim_start());
    if time == "*" {
        return Ok((EventTime::Any, None, rest));
    }
    let relative = time.starts_with('+');
    let (time, ends, rest) = match (time.split_once("..."), rest.strip_prefix("...")) {
        (Some((begins, ends)), _) => (begins, Some(ends), rest),
        (None, Some(rest)) => {
            let (ends, rest) = rest.trim_start().split_once(' ').unwrap_or_default();
            (time, Some(ends), rest)
        }
        (None, None) => (time, None, rest),
    };
    let returns_at = ends.map(parse_seconds).transpose()?;
    let (from, to) = time.split_once('~').unwrap_or((time, time));
    let (from, to) = (parse_seconds(from)?, parse_seconds(to)?);
    let range = time.contains('~');
    Ok((EventTime::At { from, to, relative, range }, returns_at, rest))
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
        for text in ["+.01...0.011 read(4)", "+.01 ... 0.011 read(4)"] {
            let (time, returns_at, rest) = parse_time(text).unwrap();
            assert_eq!((time, rest), (exact(10_000_000, true), "read(4)"));
            assert_eq!(returns_at, Some(11_000_000));
        }
        let (from, to) = (300_000_000, 303_000_000);
        assert_eq!(at("+.3~+.303"), EventTime::At { from, to, relative: true, range: true });
        assert_eq!(at("*"), EventTime::Any);
    }
}
