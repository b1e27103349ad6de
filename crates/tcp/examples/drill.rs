//! Runs packetdrill scripts against a modern connection in virtual time.
//!
//! ```text
//! cargo run -p tcpcast-tcp --example drill -- [--stack=linux-cubic] FILE.pkt...
//! ```
//!
//! Prints one line per script: *passed*, *failed at line N: expected, got*, or *not checked* with
//! the unsupported feature; with several scripts, also the number of each. Exit status: 0 if no script failed, 1 if one failed, 2 for wrong usage
//! or an unreadable file.

#[path = "drill/mod.rs"]
mod drill;

use std::process::ExitCode;

use drill::{Outcome, run};
use tcpcast_tcp::modern::Preset;

fn main() -> ExitCode {
    let mut preset = Preset::LinuxCubic;
    let mut files = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix("--stack=") {
            Some(name) => match Preset::from_name(name) {
                Some(named) => preset = named,
                None => return usage(&format!("unknown stack {name:?}")),
            },
            None if argument.starts_with("--") => {
                return usage(&format!("unknown option {argument}"));
            }
            None => files.push(argument),
        }
    }
    if files.is_empty() {
        return usage("missing script");
    }
    let (mut passed, mut failed, mut not_checked, mut unread) = (0, 0, 0, false);
    for file in &files {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("drill: {file}: {error}");
                unread = true;
                continue;
            }
        };
        let outcome = run(&text, preset);
        match outcome {
            Outcome::Passed { .. } => passed += 1,
            Outcome::Failed { .. } => failed += 1,
            Outcome::NotChecked { .. } => not_checked += 1,
        }
        println!("{file}: {outcome}");
    }
    if files.len() > 1 {
        println!("{passed} passed, {failed} failed, {not_checked} not checked");
    }
    ExitCode::from(if unread { 2 } else { u8::from(failed > 0) })
}

fn usage(problem: &str) -> ExitCode {
    let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name()).collect();
    eprintln!("drill: {problem}");
    eprintln!("usage: drill [--stack={}] FILE.pkt...", names.join("|"));
    ExitCode::from(2)
}
