//! Random streams, identified by (seed, replication, entity, purpose).
//!
//! There is no global generator, so the draws of a source depend neither on other sources nor on
//! the scheduling of threads. All functions are from `libm`, whose results are identical on all
//! platforms. The generator is defined in the crate `link`.

pub use tcpcast_link::random::{RandomSource, RandomStream, mix_bits};

/// Purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPurpose {
    /// OFF times, and start times of bulk flows.
    OffTime = 1,
    /// File sizes.
    Size = 2,
    /// Random loss on the bottleneck.
    BottleneckLoss = 3,
    /// Random loss on an ingress link.
    IngressLoss = 4,
    /// Random loss on an egress link.
    EgressLoss = 5,
    /// Early drops of the bottleneck's queue.
    EarlyDrop = 6,
    /// Cross traffic at a hop.
    Cross = 7,
    /// Position in the series of cross traffic at which a source starts.
    CrossPlace = 8,
    /// Draws of a cross flow of a fixed point: gaps between packets, service times.
    CrossFlow = 9,
    /// Selection among equally long queues.
    Tie = 10,
    /// Acceptance of packets at a per-source hop that cross traffic has filled.
    CrossRoom = 11,
    /// Clock offset of a host at the start of a connection, and random draws of BBR.
    Connection = 12,
    /// Reads and writes of applications in steps.
    Application = 13,
    /// Times between the starts of transfers.
    Arrival = 16,
    /// Sizes of transfers that start at random times.
    ArrivalSize = 17,
    /// Random loss at a hop other than the bottleneck.
    HopLoss = 32,
    /// Early drops at a hop other than the bottleneck.
    HopEarlyDrop = 33,
    /// Random loss of acknowledgements on the return path.
    AckLoss = 34,
    /// Early drops of the return link's queue.
    ReturnEarlyDrop = 35,
    /// Random delays behind the bottleneck.
    Jitter = 36,
    /// Processing delays of hosts.
    HostNoise = 37,
    /// Random loss on a link of a network.
    LinkLoss = 50,
    /// Early drops, ties and flow hashes of the queue of a link of a network.
    LinkEarlyDrop = 51,
    /// Random delays behind a link of a network.
    LinkJitter = 52,
    /// Backoffs and errors of a Wi-Fi link of a network.
    LinkAccess = 55,
    /// Changes of the ECN field on a link of a network.
    LinkRemark = 54,
    /// Selection among equal routes.
    Route = 53,
    /// Factors of the delays of replications.
    RttSpread = 56,
    /// Gaps between the ends of OFF times of a scaled population.
    ScaledGap = 40,
    /// File sizes of a scaled population.
    ScaledSize = 41,
}

/// Construction of a stream from its identifiers.
pub trait NamedStream {
    /// Creates the stream of an entity and purpose.
    #[must_use]
    fn for_entity(seed: u64, replication: u32, entity: u32, purpose: StreamPurpose) -> Self;

    /// Creates the stream of an entity and purpose at a hop.
    #[must_use]
    fn for_entity_at_hop(
        seed: u64,
        replication: u32,
        entity: u32,
        purpose: StreamPurpose,
        hop: u32,
    ) -> Self;
}

impl NamedStream for RandomStream {
    fn for_entity(seed: u64, replication: u32, entity: u32, purpose: StreamPurpose) -> Self {
        Self::from_seed(derive_stream_seed(seed, replication, entity, purpose))
    }

    fn for_entity_at_hop(
        seed: u64,
        replication: u32,
        entity: u32,
        purpose: StreamPurpose,
        hop: u32,
    ) -> Self {
        Self::from_seed(mix_bits(
            derive_stream_seed(seed, replication, entity, purpose) ^ u64::from(hop),
        ))
    }
}

fn derive_stream_seed(seed: u64, replication: u32, entity: u32, purpose: StreamPurpose) -> u64 {
    let mut name = mix_bits(seed ^ 0x7463_7063_6173_7431);
    name = mix_bits(name ^ u64::from(replication));
    name = mix_bits(name ^ u64::from(entity));
    mix_bits(name ^ purpose as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_identifier() {
        let first = |seed, replication, entity, purpose| {
            RandomStream::for_entity(seed, replication, entity, purpose).draw_unit()
        };
        let base = first(1, 0, 0, StreamPurpose::Size);
        assert_eq!(base.to_bits(), first(1, 0, 0, StreamPurpose::Size).to_bits());
        for other in [
            first(2, 0, 0, StreamPurpose::Size),
            first(1, 1, 0, StreamPurpose::Size),
            first(1, 0, 1, StreamPurpose::Size),
            first(1, 0, 0, StreamPurpose::OffTime),
        ] {
            assert_ne!(base.to_bits(), other.to_bits());
        }
        let first_at = |hop| {
            RandomStream::for_entity_at_hop(1, 0, 0, StreamPurpose::Size, hop).draw_unit().to_bits()
        };
        assert_eq!(first_at(3), first_at(3));
        assert!(first_at(0) != first_at(1) && first_at(0) != base.to_bits());
    }
}
