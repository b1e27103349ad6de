//! Congestion control: how large the window is, apart from what is lost and retransmitted.

mod reno;
mod reno_bytes;

pub use reno::Reno;
pub use reno_bytes::RenoBytes;

use crate::tcp::TcpConfig;

/// A congestion control hears of events and answers with a window, in packets.
///
/// The names of the events are those of RFC 5681 and RFC 6582. Loss detection, retransmission and
/// the timer are the sender's; a new algorithm is a file beside `reno.rs`.
pub trait CongestionControl {
    /// A fresh connection.
    fn start(&mut self, tcp: &TcpConfig);
    /// Nothing was sent for longer than a timeout: cwnd is at most the initial window (RFC 5681,
    /// section 4.1).
    fn on_idle(&mut self, tcp: &TcpConfig);
    /// Whether the window grows by a packet an acknowledgement.
    fn in_slow_start(&self) -> bool;
    /// The congestion window, cwnd.
    fn cwnd(&self) -> u32;
    /// The slow-start threshold, ssthresh.
    fn ssthresh(&self) -> u32;
    /// New data was acknowledged outside recovery.
    fn on_ack(&mut self);
    /// A loss was found by as many `duplicates` with `flight` packets outstanding.
    fn on_loss(&mut self, flight: u32, duplicates: u32);
    /// One more duplicate acknowledgement during recovery: a packet has left the network.
    fn on_duplicate(&mut self);
    /// An acknowledgement during recovery of `acked` packets, but not of all.
    fn on_partial_ack(&mut self, acked: u32);
    /// Recovery is over.
    fn on_recovered(&mut self);
    /// The timer expired with `flight` packets outstanding; `repeated` when it did so already for
    /// the same packet.
    fn on_timeout(&mut self, flight: u32, repeated: bool);
}
