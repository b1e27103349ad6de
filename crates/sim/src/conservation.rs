//! Conservation checks at the end of a run.

/// Inconsistent counters: an error in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConservationError {
    /// Data packets are not conserved.
    #[error(
        "packets are not conserved: {sent} sent, but {received} received, {dropped} dropped and \
         {in_flight} in flight"
    )]
    Packets {
        /// Data packets sent.
        sent: u64,
        /// Data packets received.
        received: u64,
        /// Data packets dropped.
        dropped: u64,
        /// Data packets in flight.
        in_flight: u64,
    },
    /// Packets are not conserved on a link.
    #[error(
        "packets are not conserved on link {declared}: {entered} entered, but {left} left, {dropped} \
         were dropped and {inside} are on it"
    )]
    Link {
        /// Number of the link.
        declared: u32,
        /// Packets that entered.
        entered: u64,
        /// Packets that left.
        left: u64,
        /// Packets dropped.
        dropped: u64,
        /// Packets on the link.
        inside: u64,
    },
    /// A stored segment is missing for a packet in flight, or remains after its packet left.
    #[error("{stored} segments are stored, but {in_flight} packets are in flight")]
    Segments {
        /// Segments stored.
        stored: u64,
        /// Data packets and acknowledgements in flight.
        in_flight: u64,
    },
    /// Little's law is violated: the integral of the queue length differs from the sum of the
    /// waiting times.
    #[error(
        "Little's law does not hold: the integral of the queue length is {held} packet nanoseconds, but \
         the sum of the waiting times is {waited} (both modulo 2^64)"
    )]
    Waiting {
        /// Integral of the queue length.
        held: u64,
        /// Sum of the times in the queue.
        waited: u64,
    },
}
