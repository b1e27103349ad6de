//! Events of a script with their times.

use super::call::{self, Call};
use super::items::Item;
use super::packet::{self, Spec};
use super::{Stop, not_read};

/// Nanoseconds per second of script time.
const SECOND: f64 = 1e9;

/// Time of an event, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Absolute time in the script, or relative to the previous event.
    At { from: u64, to: u64, relative: bool, range: bool },
    /// At any time.
    Any,
}

/// Action of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A command-line option in the script.
    Option(String),
    /// Shell commands.
    Shell(String),
    /// The application makes a system call.
    Call(Call),
    /// A packet arrives.
    Arrives(Spec),
    /// A packet must be sent.
    Leaves(Spec),
    /// An assertion must hold.
    Asserts(String),
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub when: Option<When>,
    pub act: Act,
}

/// Parses an item.
pub fn parse(item: &Item) -> Result<Event, Stop> {
    let text = item.text.trim();
    if text.starts_with("--") {
        return Ok(Event { when: None, act: Act::Option(text.to_owned()) });
    }
    if let Some(shell) = quoted(text) {
        return Ok(Event { when: None, act: Act::Shell(shell.to_owned()) });
    }
    let (when, rest) = time(text)?;
    let act = if let Some(shell) = quoted(rest) {
        Act::Shell(shell.to_owned())
    } else if let Some(python) = rest.strip_prefix("%{") {
        Act::Asserts(python.trim_end_matches("}%").to_owned())
    } else if let Some(packet) = rest.strip_prefix('<') {
        Act::Arrives(packet::parse(packet.trim())?)
    } else if let Some(packet) = rest.strip_prefix('>') {
        Act::Leaves(packet::parse(packet.trim())?)
    } else {
        Act::Call(call::parse(rest)?)
    };
    Ok(Event { when: Some(when), act })
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('`').map(|shell| shell.trim_end_matches('`'))
}

/// `0`, `+.1`, `.2~.3`, `+.2~+.3`, `+.1...0.2`, `*`.
fn time(text: &str) -> Result<(When, &str), Stop> {
    let end = text.find(|c: char| c.is_whitespace() || c == '<' || c == '>' || c == '%');
    let end = end.filter(|&end| end > 0);
    let Some(end) = end else { return not_read(format!("{text:?} is not an event")) };
    let (time, rest) = (&text[..end], text[end..].trim_start());
    if time == "*" {
        return Ok((When::Any, rest));
    }
    let relative = time.starts_with('+');
    // A blocking call starts at the first time; later events show when it returns.
    let (time, rest) = match (time.split_once("..."), rest.strip_prefix("...")) {
        (Some((begins, _)), _) => (begins, rest),
        (None, Some(ends)) => (time, ends.trim_start().split_once(' ').unwrap_or_default().1),
        (None, None) => (time, rest),
    };
    let (from, to) = time.split_once('~').unwrap_or((time, time));
    let (from, to) = (seconds(from)?, seconds(to)?);
    let range = time.contains('~');
    Ok((When::At { from, to, relative, range }, rest))
}

fn seconds(text: &str) -> Result<u64, Stop> {
    match text.trim_start_matches('+').parse::<f64>() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok((seconds * SECOND).round() as u64),
        _ => not_read(format!("{text:?} is not a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> When {
        parse(&Item { line: 1, text: format!("{text} %{{ }}%") }).unwrap().when.unwrap()
    }

    #[test]
    fn times_are_absolute_relative_or_ranges() {
        let exact = |from, relative| When::At { from, to: from, relative, range: false };
        assert_eq!(at("0"), exact(0, false));
        assert_eq!(at("+.1"), exact(100_000_000, true));
        assert_eq!(at("+.01...0.011"), exact(10_000_000, true));
        assert_eq!(at("+.01 ... 0.011"), exact(10_000_000, true));
        let (from, to) = (300_000_000, 303_000_000);
        assert_eq!(at("+.3~+.303"), When::At { from, to, relative: true, range: true });
        assert_eq!(at("*"), When::Any);
    }
}
