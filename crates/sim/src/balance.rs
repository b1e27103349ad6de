//! What every run is checked for at its end.

/// Counters that do not balance: a fault in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbalanced {
    /// A packet got lost, or came from nowhere.
    #[error(
        "packets are not conserved: {sent} sent, but {received} received, {dropped} dropped and \
         {in_flight} in flight"
    )]
    Packets {
        /// Data packets sent.
        sent: u64,
        /// Those that reached their receivers.
        received: u64,
        /// Those that were dropped.
        dropped: u64,
        /// Those that are on their way.
        in_flight: u64,
    },
    /// An acknowledgement got lost at the return link, or came from nowhere.
    #[error(
        "acks are not conserved at the return link: {entered} came, but {left} left, {dropped} were \
         dropped and {waiting} wait"
    )]
    Acks {
        /// Those that came.
        entered: u64,
        /// Those that left it.
        left: u64,
        /// Those that were dropped.
        dropped: u64,
        /// Those that wait.
        waiting: u64,
    },
    /// The length of the queue, summed up over time, is not what its packets waited.
    #[error(
        "Little's law does not hold: the queue's length adds up to {held} packet nanoseconds, but \
         its packets waited {waited} (both modulo 2^64)"
    )]
    Waiting {
        /// The integral of its length.
        held: u64,
        /// The sum of the times in it.
        waited: u64,
    },
}
