//! Reno and NewReno with acknowledgements that consist of one number: the most common and fastest
//! ends.

pub mod cc;
mod receiver;
mod reorder;
mod rto;
mod sender;

pub use receiver::{ArrivalResult, Receiver};
pub use rto::RtoEstimator;
pub use sender::{PacketsToSend, Sender};
