//! Writers of IPv4 and TCP headers, and of capture files.

mod capture;
mod segment;

pub use capture::CaptureWriter;
pub use segment::{ACK, CWR, ECE, FIN, PSH, SYN, SynOptions, TcpOptions, ZeroPayloadSegment};
