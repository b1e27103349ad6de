//! Named random streams: (seed, replication, entity, purpose) names one, and nothing else does.
//!
//! There is no global generator, so the draws of one source do not depend on what another does,
//! nor on the order in which threads run. Every draw goes through `libm`, which gives the same
//! bits on every platform. The generator is that of the crate `link`, which names no streams.

pub use tcpcast_link::random::{Draws, Stream, scatter};

/// What a stream is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// OFF times, and start times of bulk flows.
    OffTime = 1,
    /// File sizes.
    Size = 2,
    /// Random loss on the bottleneck.
    BottleneckLoss = 3,
    /// Random loss on a source's own link.
    IngressLoss = 4,
    /// Random loss on a receiver's own link.
    EgressLoss = 5,
    /// Early drops of the bottleneck's queue.
    EarlyDrop = 6,
    /// Cross traffic at a hop.
    Cross = 7,
    /// Where in that traffic the stream of one source begins.
    CrossPlace = 8,
    /// What a cross flow of a fixed point draws: times between its packets, times of service.
    CrossFlow = 9,
    /// Which of several longest queues loses a packet.
    Tie = 10,
    /// Which of a source's packets get in where cross traffic keeps a hop full.
    CrossRoom = 11,
    /// Where the clock of a host stands when a connection begins, and the cycle of BBR.
    Connection = 12,
    /// Times between the beginnings of transfers.
    Arrival = 16,
    /// Sizes of the transfers that begin at random times.
    ArrivalSize = 17,
    /// Random loss at a hop that is not the bottleneck.
    HopLoss = 32,
    /// Early drops of such a hop's queue.
    HopEarlyDrop = 33,
    /// Random loss of acknowledgements on the return path.
    AckLoss = 34,
    /// Early drops of the return link's queue.
    ReturnEarlyDrop = 35,
    /// Random delays behind the bottleneck.
    Jitter = 36,
    /// Lateness of hosts.
    HostNoise = 37,
    /// Gaps between the ends of OFF times of a scaled population.
    ScaledGap = 40,
    /// File sizes of a scaled population.
    ScaledSize = 41,
}

/// A stream by its name.
pub trait Named {
    /// The stream of that name.
    #[must_use]
    fn named(seed: u64, replication: u32, entity: u32, purpose: Purpose) -> Self;

    /// The stream of that name at one of several hops.
    #[must_use]
    fn at_hop(seed: u64, replication: u32, entity: u32, purpose: Purpose, hop: u32) -> Self;
}

impl Named for Stream {
    fn named(seed: u64, replication: u32, entity: u32, purpose: Purpose) -> Self {
        Self::of(name(seed, replication, entity, purpose))
    }

    fn at_hop(seed: u64, replication: u32, entity: u32, purpose: Purpose, hop: u32) -> Self {
        Self::of(scatter(name(seed, replication, entity, purpose) ^ u64::from(hop)))
    }
}

fn name(seed: u64, replication: u32, entity: u32, purpose: Purpose) -> u64 {
    let mut name = scatter(seed ^ 0x7463_7063_6173_7431);
    name = scatter(name ^ u64::from(replication));
    name = scatter(name ^ u64::from(entity));
    scatter(name ^ purpose as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_name_matters() {
        let first = |seed, replication, entity, purpose| {
            Stream::named(seed, replication, entity, purpose).unit()
        };
        let base = first(1, 0, 0, Purpose::Size);
        assert_eq!(base.to_bits(), first(1, 0, 0, Purpose::Size).to_bits());
        for other in [
            first(2, 0, 0, Purpose::Size),
            first(1, 1, 0, Purpose::Size),
            first(1, 0, 1, Purpose::Size),
            first(1, 0, 0, Purpose::OffTime),
        ] {
            assert_ne!(base.to_bits(), other.to_bits());
        }
        let at = |hop| Stream::at_hop(1, 0, 0, Purpose::Size, hop).unit().to_bits();
        assert_eq!(at(3), at(3));
        assert!(at(0) != at(1) && at(0) != base.to_bits());
    }
}
