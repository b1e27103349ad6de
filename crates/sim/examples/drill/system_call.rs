//! System calls of scripts: `write(4, ..., 1000) = 1000`.

use super::{ScriptError, not_supported};

/// A system call with its arguments and expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCall {
    pub name: String,
    pub arguments: Vec<String>,
    /// Expected return value, and the name of the expected error.
    pub returns: i64,
    pub error: Option<String>,
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
    let error = words.next().map(str::to_owned);
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
