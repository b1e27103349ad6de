//! Splits a script into items (options, shell commands, events) with their line numbers.

use super::ScriptError;

/// An item of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Line number, from 1.
    pub line: usize,
    /// Text without comments.
    pub text: String,
}

/// Delimiters of items that may span several lines.
const MULTILINE_DELIMITERS: [(&str, &str); 2] = [("`", "`"), ("%{", "}%")];

/// Splits a script into items.
pub fn split_items(script: &str) -> Result<Vec<Item>, (usize, ScriptError)> {
    let mut items = Vec::new();
    let lines: Vec<&str> = script.lines().collect();
    let mut index = 0;
    while index < lines.len() {
        let line = index + 1;
        let mut text = strip_comment(lines[index]).trim().to_owned();
        index += 1;
        if text.starts_with("/*") {
            while !text.contains("*/") && index < lines.len() {
                text = lines[index].to_owned();
                index += 1;
            }
            continue;
        }
        if let Some((open, close)) =
            MULTILINE_DELIMITERS.into_iter().find(|(open, _)| text.contains(open))
        {
            while !is_closed(&text, open, close) {
                let Some(next) = lines.get(index) else {
                    return Err((line, ScriptError::NotSupported(format!("{open} is not closed"))));
                };
                text = format!("{text}\n{next}");
                index += 1;
            }
            text = truncate_after(&text, close);
        } else {
            while has_unclosed_parenthesis(&text) {
                let Some(next) = lines.get(index) else { break };
                text = format!("{text} {}", strip_comment(next).trim());
                index += 1;
            }
        }
        if !text.is_empty() {
            items.push(Item { line, text });
        }
    }
    Ok(items)
}

/// Removes a `//` comment, except within quotes, shell commands and assertions.
fn strip_comment(line: &str) -> &str {
    let mut quoted = false;
    let mut index = 0;
    while let Some(rest) = line.get(index..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("%{") && !quoted {
            match rest.find("}%") {
                Some(end) => index += end,
                None => return line,
            }
        } else if rest.starts_with("//") && !quoted {
            return &line[..index];
        } else if rest.starts_with(['"', '`']) {
            quoted = !quoted;
        }
        index += rest.chars().next().map_or(1, char::len_utf8);
    }
    line
}

fn is_closed(text: &str, open: &str, close: &str) -> bool {
    let Some(begins) = text.find(open) else { return true };
    text[begins + open.len()..].contains(close)
}

/// Removes a comment after the closing delimiter.
fn truncate_after(text: &str, close: &str) -> String {
    match text.rfind(close) {
        Some(end) => text[..end + close.len()].to_owned(),
        None => text.to_owned(),
    }
}

/// Whether a call continues in the next line.
fn has_unclosed_parenthesis(text: &str) -> bool {
    let count = |wanted: char| text.chars().filter(|&c| c == wanted).count();
    count('(') > count(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_returns_items_with_line_numbers() {
        let script = "// a\n--tolerance_usecs=9\n`sysctl a=1\nsysctl b=2`\n\n+0 > . 1:1(0) // x\n\
                      +0 %{\nassert a\n}%\n+0 sendmsg(4, {a,\n b}, 0) = 1\n";
        let items = split_items(script).unwrap();
        let lines: Vec<_> = items.iter().map(|item| item.line).collect();
        assert_eq!(lines, [2, 3, 6, 7, 10]);
        assert_eq!(items[2].text, "+0 > . 1:1(0)");
        assert_eq!(items[4].text, "+0 sendmsg(4, {a, b}, 0) = 1");
        assert!(split_items("+0 %{ assert").is_err());
        let item = &split_items("+0 %{ assert 7 // 2 == 3 }% // why\n").unwrap()[0];
        assert_eq!(item.text, "+0 %{ assert 7 // 2 == 3 }%");
    }
}
