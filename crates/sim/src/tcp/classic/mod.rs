//! Reno and NewReno with acknowledgements that are one number: the ends that most runs have, and the
//! fastest.

pub mod cc;
mod receiver;
mod reorder;
mod rto;
mod sender;

pub use receiver::{Arrival, Receiver};
pub use rto::RtoEstimator;
pub use sender::{Sender, Transmission};
