//! Cross traffic on a link: packets that do not react to congestion and end behind the link.
//!
//! Each instance of the link has a stream of its own. On links of single sources, cross traffic is a
//! fluid instead ([`crate::cross::FluidHop`]), because it may be a thousand times as much as that of
//! the source.

use super::config::{CrossStreamConfig, NetworkConfig};
use super::parcel::{Parcel, ParcelContent, SERVER};
use super::{FlowSimulation, FlowTimer};
use crate::cross::CrossArrivals;
use crate::merge::Merge;
use crate::probe::CrossPacketEvent;
use tcpcast_link::Packet;
use tcpcast_net::{LinkId, RouteId};

/// A stream on one instance of a link.
#[derive(Debug)]
pub(super) struct CrossStream {
    /// Index of the stream in the configuration.
    stream: usize,
    bytes: u32,
    arrivals: CrossArrivals,
    route: RouteId,
}

/// Queues see streams as flows with numbers above those of all sources.
pub(super) const LAST_CROSS_FLOW: u32 = (1 << 31) - 1;
/// A lower bound of the numbers of streams, above those of all sources.
pub(super) const FIRST_CROSS_FLOW: u32 = 1 << 30;

/// Class of cross traffic in the counters of links: behind all configured classes.
pub(super) fn cross_class(config: &NetworkConfig) -> u16 {
    config.classes.len() as u16
}

impl FlowSimulation {
    /// Starts the streams of the links that were created since the last call.
    pub(super) fn start_cross_streams(&mut self) {
        let config = std::sync::Arc::clone(&self.config);
        for (declared, instance, link) in self.links.take_new_instances() {
            for (stream, cross) in (0..).zip(&config.cross) {
                if cross.link == declared && !self.links.has_fluid(declared) {
                    self.start_cross_stream(stream, cross, instance, link);
                }
            }
        }
    }

    fn start_cross_stream(
        &mut self,
        stream: usize,
        config: &CrossStreamConfig,
        instance: u32,
        link: LinkId,
    ) {
        let number = stream as u32 + instance * self.config.cross.len() as u32;
        let mut arrivals =
            CrossArrivals::for_stream(&config.process, self.config.seed, self.replication, number);
        let first = arrivals.next_arrival_time().max(self.now);
        let route = self.network.add_route(&[link], 0, cross_class(&self.config), 1);
        self.timers.set(FlowTimer::Cross, self.cross.len(), SERVER, first);
        self.cross.push(CrossStream { stream, bytes: config.packet_bytes, arrivals, route });
    }

    /// Sends the next packet of a stream.
    pub(super) fn send_cross_packet(&mut self, index: usize) {
        let CrossStream { stream, bytes, arrivals, route } = &mut self.cross[index];
        let next = arrivals.next_arrival_time().max(self.now);
        self.timers.set(FlowTimer::Cross, index, SERVER, next);
        let counters = &mut self.wire.probes.cross;
        counters.stream_mut(*stream).rates.merge(&arrivals.take_rate_counters());
        counters.count_event(*stream, CrossPacketEvent::Offered);
        let (token, slot) = self.wire.parcels.add();
        *slot = Parcel {
            flow: index as u32,
            number: *stream as u32,
            content: ParcelContent::Cross,
            ..Parcel::default()
        };
        let packet = Packet::new(token, LAST_CROSS_FLOW - index as u32, *bytes);
        self.network.send(self.now, *route, packet, &mut self.wire);
    }
}
