//! System calls of scripts: `write(4, ..., 1000) = 1000`.

use std::fmt;

use super::{ScriptError, failed, not_supported};

/// A system call with its arguments and expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCall {
    pub name: String,
    pub arguments: Vec<String>,
    /// Expected return value, and the name of the expected error.
    pub returns: i64,
    pub error: Option<String>,
}

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// A return value.
    Returns(i64),
    /// The name of an error.
    Fails(&'static str),
    /// The call waits for an event.
    Blocks,
}

impl fmt::Display for CallResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returns(value) => write!(out, "{value}"),
            Self::Fails(error) => write!(out, "-1 {error}"),
            Self::Blocks => write!(out, "no return"),
        }
    }
}

/// Parses a call.
pub fn parse(text: &str) -> Result<SystemCall, ScriptError> {
    let parts = text.split_once('(').zip(text.rfind(')'));
    let Some(((name, _), close)) = parts.filter(|((name, _), _)| is_name(name.trim())) else {
        return not_supported(format!("{text:?} is not an event"));
    };
    // The text of an error is also in parentheses.
    let close = text.rfind("=").and_then(|equals| text[..equals].rfind(')')).unwrap_or(close);
    let arguments = split_arguments(&text[name.len() + 1..close]);
    let result = text[close + 1..].trim().strip_prefix('=').unwrap_or_default().trim();
    let mut words = result.split_whitespace();
    let Some(returns) = words.next().and_then(number) else {
        return not_supported(format!("{text:?} has no result"));
    };
    // A comment in parentheses can follow a value.
    let error = words.next().filter(|word| !word.starts_with('(')).map(str::to_owned);
    Ok(SystemCall { name: name.trim().to_owned(), arguments, returns, error })
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses a decimal or hexadecimal number.
pub fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Splits at commas outside of brackets.
fn split_arguments(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => (),
        }
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

impl SystemCall {
    /// An argument; empty if there is none.
    pub fn argument(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }

    /// Compares the result with the expected one.
    pub fn check_result(&self, result: CallResult) -> Result<(), ScriptError> {
        let error = self.error.as_deref();
        let agrees = match result {
            CallResult::Returns(value) => value == self.returns && error.is_none(),
            CallResult::Fails(name) => self.returns == -1 && error == Some(name),
            CallResult::Blocks => false,
        };
        if agrees {
            return Ok(());
        }
        let error = error.map_or(String::new(), |error| format!(" {error}"));
        failed(format!("expected {} to return {}{error}, got {result}", self.name, self.returns))
    }

    /// Values of a key in the arguments: `key=value`, or `key(n)=value`.
    pub fn values_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.arguments.iter().flat_map(move |text| {
            text.match_indices(key).filter_map(move |(at, _)| {
                let starts =
                    at == 0 || !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                let (_, value) =
                    text[at + key.len()..].split_once('=').filter(|(between, _)| {
                        starts && (between.is_empty() || between.starts_with('('))
                    })?;
                Some(value[..value.find([',', '}', ']']).unwrap_or(value.len())].trim())
            })
        })
    }

    /// Lengths of the parts of `msg_iov(n)=[{..., length}, ...]`.
    pub fn vector_lengths(&self) -> Vec<&str> {
        let texts = self.arguments.iter().filter_map(|text| text.split_once("msg_iov("));
        let vectors = texts.filter_map(|(_, rest)| rest.split_once("=[")?.1.split_once(']'));
        vectors
            .flat_map(|(vector, _)| vector.split('}'))
            .filter_map(|part| Some(part.rsplit_once(',')?.1.trim()).filter(|len| !len.is_empty()))
            .collect()
    }

    /// Total length of these parts.
    pub fn vector_bytes(&self) -> Option<i64> {
        let lengths = self.vector_lengths();
        let bytes = lengths.iter().try_fold(0_i64, |sum, len| sum.checked_add(number(len)?));
        if lengths.is_empty() { None } else { bytes }
    }

    /// An argument as a number, without the brackets of a value.
    pub fn number(&self, index: usize) -> Option<i64> {
        number(self.argument(index).trim_matches(['[', ']', '"']))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_arguments_and_result() {
        let call = parse("setsockopt(4, SOL_SOCKET, SO_SNDBUF, [200000], 4) = 0").unwrap();
        assert_eq!(
            (call.name.as_str(), call.number(3), call.returns),
            ("setsockopt", Some(200_000), 0)
        );
        let call =
            parse("connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)").unwrap();
        assert_eq!((call.returns, call.error.as_deref()), (-1, Some("EINPROGRESS")));
        assert!(parse("nonsense").is_err());
    }
}
