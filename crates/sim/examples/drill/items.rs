//! A script as items: options, shell commands, and events with the line where each begins.

use super::Stop;

/// A piece of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// First line, counting from 1.
    pub line: usize,
    /// Its text without comments.
    pub text: String,
}

/// Delimiters of texts that can have several lines.
const ENCLOSED: [(&str, &str); 2] = [("`", "`"), ("%{", "}%")];

/// Splits a script into items.
pub fn split(script: &str) -> Result<Vec<Item>, (usize, Stop)> {
    let mut items = Vec::new();
    let lines: Vec<&str> = script.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let line = at + 1;
        let mut text = uncommented(lines[at]).trim().to_owned();
        at += 1;
        if text.starts_with("/*") {
            while !text.contains("*/") && at < lines.len() {
                text = lines[at].to_owned();
                at += 1;
            }
            continue;
        }
        if let Some((open, close)) = ENCLOSED.into_iter().find(|(open, _)| text.contains(open)) {
            while !is_closed(&text, open, close) {
                let Some(next) = lines.get(at) else {
                    return Err((line, Stop::NotRead(format!("{open} is not closed"))));
                };
                text = format!("{text}\n{next}");
                at += 1;
            }
            text = without_tail(&text, close);
        } else {
            while opens(&text) {
                let Some(next) = lines.get(at) else { break };
                text = format!("{text} {}", uncommented(next).trim());
                at += 1;
            }
        }
        if !text.is_empty() {
            items.push(Item { line, text });
        }
    }
    Ok(items)
}

/// Removes a comment after `//`, unless it is within quotes, a shell command or an assertion.
fn uncommented(line: &str) -> &str {
    let mut quoted = false;
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("%{") && !quoted {
            match rest.find("}%") {
                Some(end) => at += end,
                None => return line,
            }
        } else if rest.starts_with("//") && !quoted {
            return &line[..at];
        } else if rest.starts_with(['"', '`']) {
            quoted = !quoted;
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    line
}

fn is_closed(text: &str, open: &str, close: &str) -> bool {
    let Some(begins) = text.find(open) else { return true };
    text[begins + open.len()..].contains(close)
}

/// Removes a comment after the end.
fn without_tail(text: &str, close: &str) -> String {
    match text.rfind(close) {
        Some(end) => text[..end + close.len()].to_owned(),
        None => text.to_owned(),
    }
}

/// Whether a call continues on the next line.
fn opens(text: &str) -> bool {
    let count = |wanted: char| text.chars().filter(|&c| c == wanted).count();
    count('(') > count(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_lines() {
        let script = "// a\n--tolerance_usecs=9\n`sysctl a=1\nsysctl b=2`\n\n+0 > . 1:1(0) // x\n\
                      +0 %{\nassert a\n}%\n+0 sendmsg(4, {a,\n b}, 0) = 1\n";
        let items = split(script).unwrap();
        let lines: Vec<_> = items.iter().map(|item| item.line).collect();
        assert_eq!(lines, [2, 3, 6, 7, 10]);
        assert_eq!(items[2].text, "+0 > . 1:1(0)");
        assert_eq!(items[4].text, "+0 sendmsg(4, {a, b}, 0) = 1");
        assert!(split("+0 %{ assert").is_err());
        let item = &split("+0 %{ assert 7 // 2 == 3 }% // why\n").unwrap()[0];
        assert_eq!(item.text, "+0 %{ assert 7 // 2 == 3 }%");
    }
}
