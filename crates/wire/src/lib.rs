//! IPv4 and TCP headers, and capture files, written to a byte sink.

mod capture;
mod segment;

pub use capture::CaptureWriter;
pub use segment::{ACK, CWR, ECE, FIN, Options, PSH, SYN, Segment, SynOptions};
