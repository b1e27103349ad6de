//! Counts the frames and segments of captures, and measures the reading rate.
//!
//! Usage: `count FILE...`; `-` reads standard input.

use std::io::{Read, stdin};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tcpcast_trace::{CaptureReader, ReadError, ReadSummary};

fn count<R: Read>(reader: CaptureReader<R>) -> (u64, ReadSummary) {
    let mut payload = 0;
    let summary = reader.for_each(|segment| payload += u64::from(segment.payload));
    (payload, summary)
}

fn read(name: &str) -> Result<(u64, ReadSummary), ReadError> {
    match name {
        "-" => Ok(count(CaptureReader::new(stdin().lock())?)),
        _ => Ok(count(CaptureReader::open(Path::new(name))?)),
    }
}

fn main() -> ExitCode {
    let mut damaged = false;
    for name in std::env::args().skip(1) {
        let start = Instant::now();
        match read(&name) {
            Ok((payload, summary)) => {
                let rate = summary.segments as f64 / start.elapsed().as_secs_f64() / 1e6;
                let ReadSummary { frames, segments, .. } = summary;
                println!(
                    "{name}: {frames} frames, {segments} segments, {payload} bytes, {rate:.2} M/s"
                );
                for line in summary.warnings() {
                    println!("  {line}");
                }
                damaged |= summary.is_damaged();
            }
            Err(error) => {
                println!("{name}: {error}");
                damaged = true;
            }
        }
    }
    u8::from(damaged).into()
}
