//! Tahoe, Reno and NewReno without SACK and timestamps: the fastest senders and receivers, because
//! an acknowledgement is a single number.

pub mod cc;
mod packets_to_send;
mod receiver;
mod reorder_bitmap;
mod rto;
mod sender;

pub use packets_to_send::PacketsToSend;
pub use receiver::{ArrivalResult, Receiver};
pub use rto::RtoEstimator;
pub use sender::Sender;
