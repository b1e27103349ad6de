//! Runs packetdrill scripts against a modern connection in virtual time.
//!
//! ```text
//! cargo run -p tcpcast-sim --example drill -- [--stack=linux-cubic] FILE.pkt...
//! ```
//!
//! Prints one line per script: *passed*, *failed at line N: expected, got*, or *not checked*
//! with the reason. Exits with 0 if none failed, 1 if one did, 2 for wrong usage or a file
//! that cannot be read.

#[path = "drill/mod.rs"]
mod drill;

use std::process::ExitCode;

use drill::{Outcome, run};
use tcpcast_sim::tcp::modern::Preset;

fn main() -> ExitCode {
    let mut preset = Preset::LinuxCubic;
    let mut files = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix("--stack=") {
            Some(name) => match Preset::named(name) {
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
        return usage("no script");
    }
    let (mut failed, mut unread) = (false, false);
    for file in files {
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("drill: {file}: {error}");
                unread = true;
                continue;
            }
        };
        let outcome = run(&text, preset);
        failed |= matches!(outcome, Outcome::Failed { .. });
        println!("{file}: {outcome}");
    }
    ExitCode::from(if unread { 2 } else { u8::from(failed) })
}

fn usage(problem: &str) -> ExitCode {
    let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name()).collect();
    eprintln!("drill: {problem}");
    eprintln!("usage: drill [--stack={}] FILE.pkt...", names.join("|"));
    ExitCode::from(2)
}
