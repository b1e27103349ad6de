//! One-way messages, and pings with their echoes.

use crate::clock::seconds_to_nanos;
use crate::flows::config::FlowTraffic;
use crate::flows::hosts::flow_number;
use crate::flows::parcel::{CLIENT, Parcel, ParcelContent, SERVER};
use crate::flows::wire::other_end;
use crate::flows::{FlowSimulation, FlowTimer};
use crate::probe::{ClassCell, TimeKind};
use tcpcast_link::{Ecn, Packet};
use tcpcast_tcp::modern::Segment;

/// Maximum length of a packet.
const MAX_BYTES: f64 = 65_535.0;

impl FlowSimulation {
    /// An end sends a message or ping, and schedules the next one.
    pub(in crate::flows) fn send_message(&mut self, flow: usize, end: usize) {
        let state = &mut self.flows[flow];
        let (bytes, interval, content, ecn) = match &self.classes[state.record.class()].traffic {
            FlowTraffic::Messages(messages) => {
                let bytes = libm::round(messages.bytes.draw_value(&mut state.sizes));
                let bytes = bytes.clamp(1.0, MAX_BYTES) as u32;
                (bytes, &messages.interval, ParcelContent::Message, messages.ecn)
            }
            FlowTraffic::Ping(ping) => {
                (ping.bytes, &ping.interval, ParcelContent::Ping, Ecn::NotEct)
            }
            _ => return,
        };
        let next = seconds_to_nanos(interval.draw_value(&mut state.off_times)).max(1);
        self.timers.set(FlowTimer::Application, flow, end, self.now + next);
        self.wire.probes.counters.add_to_class(state.record.class(), ClassCell::Messages, 1);
        let parcel = Parcel { sent_at: self.now, content, packets: 1, ..Parcel::default() };
        self.send_parcel(flow, end, bytes, ecn, parcel);
    }

    /// Sends a packet that is no segment.
    fn send_parcel(&mut self, flow: usize, end: usize, bytes: u32, ecn: Ecn, parcel: Parcel) {
        let state = &mut self.flows[flow];
        let record = &mut state.record;
        self.wire.probes.counters.add_to_class(record.class(), ClassCell::Sent, 1);
        let (token, slot) = self.wire.parcels.add();
        *slot = Parcel {
            segment: Segment { len: bytes, ..Segment::default() },
            flow: flow as u32,
            of: record.interval(),
            to: other_end(end) as u8,
            is_data: true,
            is_delayed: self.classes[record.class()].delays[other_end(end)],
            ..parcel
        };
        let packet = Packet::new(token, flow_number(flow as u32, end), bytes).with_ecn(ecn);
        self.network.send(self.now, state.routes[end], packet, &mut self.wire);
    }

    /// Counts a delivered packet.
    fn count_parcel(&mut self, parcel: &Parcel) {
        let record = &mut self.flows[parcel.flow as usize].record;
        record.packets += 1;
        let full = self.classes[record.class()].packet_bytes;
        let probes = &mut self.wire.probes;
        probes.counters.add_to_class(record.class(), ClassCell::Delivered, 1);
        probes.count_short_delivery(record, full.saturating_sub(parcel.segment.len));
    }

    /// A message has arrived.
    pub(in crate::flows) fn on_message(&mut self, parcel: &Parcel) {
        self.count_parcel(parcel);
        self.count_delay(parcel);
    }

    /// A ping has arrived at the server, which answers, or its echo at the client.
    pub(in crate::flows) fn on_ping(&mut self, parcel: &Parcel) {
        let flow = parcel.flow as usize;
        self.count_parcel(parcel);
        if usize::from(parcel.to) == CLIENT {
            return self.count_delay(parcel);
        }
        if let FlowTraffic::Ping(ping) = self.traffic_of(flow) {
            let bytes = ping.bytes;
            self.send_parcel(flow, SERVER, bytes, Ecn::NotEct, *parcel);
        }
    }

    /// Counts the delay of a message or the round trip of a ping.
    fn count_delay(&mut self, parcel: &Parcel) {
        let (class, delay) = (parcel.of.class(), self.now - parcel.sent_at);
        let probes = &mut self.wire.probes;
        probes.counters.add_to_class(class, ClassCell::Received, 1);
        probes.counters.add_to_class(class, ClassCell::Delay, delay);
        probes.add_time(class, TimeKind::Delay, delay);
    }
}
