//! IPv4 and TCP headers, and capture files, written to a byte sink.

mod capture;
mod segment;

pub use capture::CaptureWriter;
pub use segment::{ACK, Options, PSH, SYN, Segment, SynOptions};
