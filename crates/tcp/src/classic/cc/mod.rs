//! Congestion control: size of the window, independent of loss detection and retransmission.

mod fractional_reno;
mod reno;

pub use fractional_reno::FractionalReno;
pub use reno::Reno;

use crate::TcpConfig;

/// Congestion control: each event changes the window, which is counted in packets.
///
/// Events are named as in RFC 5681 and RFC 6582. The sender does loss detection, retransmission
/// and the timer. Add a new algorithm as a file next to `reno.rs`.
pub trait CongestionControl {
    /// Starts a new connection.
    fn start_connection(&mut self, tcp: &TcpConfig);
    /// Nothing was sent for longer than a timeout: limits cwnd to the initial window (RFC 5681,
    /// section 4.1).
    fn on_idle(&mut self, tcp: &TcpConfig);
    /// Whether the window grows by one packet per acknowledgement.
    fn in_slow_start(&self) -> bool;
    /// Congestion window.
    fn cwnd(&self) -> u32;
    /// Slow-start threshold.
    fn ssthresh(&self) -> u32;
    /// New data was acknowledged outside recovery.
    fn on_ack(&mut self);
    /// A loss was detected by this number of `duplicates`, with `flight` packets outstanding.
    fn on_loss(&mut self, flight: u32, duplicates: u32);
    /// A further duplicate acknowledgement during recovery: another packet has left the network.
    fn on_further_duplicate(&mut self);
    /// A partial acknowledgement of `acked` packets during recovery.
    fn on_partial_ack(&mut self, acked: u32);
    /// Recovery has ended.
    fn on_recovered(&mut self);
    /// The timer expired with `flight` packets outstanding; `repeated` is true if the timer already
    /// expired for the same packet.
    fn on_timeout(&mut self, flight: u32, repeated: bool);
}
