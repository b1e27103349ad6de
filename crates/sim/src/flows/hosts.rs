//! Hosts: deliveries to the ends of connections, segments that they send, and their timers.

use super::config::FlowTraffic;
use super::flow::{DeliveredStatistics, Flow, FlowClass, FlowEnd, ROLES, ScheduledChecks};
use super::parcel::{CLIENT, NOT_WANTED, Parcel, ParcelContent};
use super::wire::{DroppedParcel, LinkRole, Wire, other_end};
use super::{FlowSimulation, FlowTimer, Timers};
use crate::clock::{NEVER, Nanos};
use crate::packet::{Packet as NumberedPacket, PacketKind};
use crate::probe::{CrossPacketEvent, Probes, SenderListener, SourceRecord};
use crate::random::RandomSource;
use crate::round_loss::RoundLoss;
use tcpcast_link::{Ecn, Packet};
use tcpcast_net::{DropCause, Network, RouteId};
use tcpcast_tcp::modern::cc::path_model::BbrState;
use tcpcast_tcp::modern::{Segment, SegmentOutcome, SegmentSink};
use tcpcast_tcp::quic::{Datagram, DatagramSink};
use tcpcast_tcp::{
    ConnectionEnd, End, EndDeadlines, EndTcp, TcpEvent, TcpProbe, Transmission, with_kind_of_end,
};

/// Sends the segments of an end, and reports its events.
pub(super) struct FlowSink<'a> {
    network: &'a mut Network<u32>,
    pub(super) wire: &'a mut Wire,
    record: &'a mut SourceRecord,
    pub(super) class: &'a FlowClass,
    now: Nanos,
    flow: u32,
    connection: u32,
    end: usize,
    route: RouteId,
    is_opening: bool,
    /// Burst of segmentation offload that is being filled.
    pub(super) burst: Option<Packet<u32>>,
}

impl TcpProbe for FlowSink<'_> {
    #[inline(always)]
    fn on_tcp_event(&mut self, now: Nanos, event: TcpEvent) {
        SenderListener::new(&mut self.wire.probes, self.record, self.flow).on_tcp_event(now, event);
    }

    #[inline(always)]
    fn records_windows(&self) -> bool {
        self.record.is_traced() && self.class.sends[self.end]
    }

    fn on_bbr_state(&mut self, now: Nanos, state: BbrState, mss: u32) {
        self.wire.probes.trace.record_bbr(now, self.flow, state, mss);
    }
}

impl SegmentSink for FlowSink<'_> {
    #[inline(always)]
    fn send_segment(&mut self, segment: &Segment, number: u32, kind: PacketKind) {
        let bytes = if segment.len > 0 || segment.flags.fin {
            self.class.packet_length(segment.len)
        } else if segment.options.sacks.is_empty() && segment.options.accurate_ecn.is_none() {
            self.class.ack_bytes
        } else {
            self.class.ack_bytes.max(segment.ack_bytes())
        };
        self.send(Content::Segment(segment), number, kind, bytes);
    }
}

impl DatagramSink for FlowSink<'_> {
    fn send_datagram(&mut self, datagram: &Datagram, number: u32, kind: PacketKind) {
        let bytes = match kind {
            // The length of TCP's acks is a minimum, because implementations pad small packets.
            PacketKind::Ack => self.class.ack_bytes.max(datagram.ip_bytes()),
            _ => datagram.ip_bytes(),
        };
        self.send(Content::Datagram(datagram), number, kind, bytes);
    }
}

/// What a packet of a connection carries.
#[derive(Clone, Copy)]
enum Content<'a> {
    Segment(&'a Segment),
    Datagram(&'a Datagram),
}

impl FlowSink<'_> {
    /// Counts a packet and hands it to the network.
    #[inline(always)]
    fn send(&mut self, content: Content<'_>, number: u32, kind: PacketKind, bytes: u32) {
        let is_data = self.class.sends[self.end] && kind != PacketKind::Ack;
        let counts = is_data && number != 0 && !self.is_opening;
        if counts {
            let (source, connection) = (self.flow, self.connection);
            let packet = NumberedPacket { source, connection, number, kind };
            self.wire.probes.count_sent(self.now, self.record, &packet);
            if kind == PacketKind::Data && !self.class.has_loss_feedback {
                self.record.count_entering_flight(self.now);
            }
        } else if is_data {
            self.wire.probes.count_control_packet_sent(self.record);
        }
        if let Content::Segment(segment) = content {
            if self.burst.is_some() && self.extend_burst(segment, number, bytes) {
                return;
            }
        }
        let (token, parcel) = self.wire.parcels.add();
        match content {
            Content::Segment(segment) => parcel.segment.copy_from(segment),
            Content::Datagram(datagram) => {
                parcel.segment.describe_datagram(datagram.stream_bytes(), datagram.ecn);
            }
        }
        let ecn = parcel.segment.ecn;
        parcel.flow = self.flow;
        parcel.connection = self.connection;
        parcel.number = number;
        parcel.packets = 1;
        parcel.of = self.record.interval();
        parcel.content = ParcelContent::Segment;
        parcel.to = other_end(self.end) as u8;
        (parcel.is_data, parcel.counts) = (is_data, counts);
        (parcel.is_lost, parcel.is_copy) = (false, false);
        parcel.is_delayed = self.class.delays[other_end(self.end)];
        if let Content::Datagram(datagram) = content {
            self.wire.parcels.set_datagram(token, datagram);
        }
        let flow = flow_number(self.flow, self.end);
        let packet = Packet::new(token, flow, bytes).with_ecn(ecn);
        if self.class.prepares_packets {
            self.prepare_packet(packet, kind);
        } else {
            self.send_packet(packet);
        }
    }

    /// Sends a packet that needs special processing: correlated loss may lose it, captures show it,
    /// it begins a burst, or the network notifies the sender of its loss.
    #[cold]
    #[inline(never)]
    fn prepare_packet(&mut self, packet: Packet<u32>, kind: PacketKind) {
        let Wire { parcels, round_losses, taps, .. } = &mut *self.wire;
        let parcel = parcels.get_mut(packet.token);
        if self.class.has_loss_feedback {
            parcel.is_copy = kind == PacketKind::Retransmission;
            parcel.sent_at = self.now;
        }
        if let Some(losses) = round_losses {
            parcel.is_lost = parcel.counts
                && losses.loses_sent_packet(self.flow, self.connection, parcel.number);
        }
        if let Some(taps) = taps {
            parcel.serial = taps.next_serial(self.flow, self.end);
            self.wire.report_sent(packet.token, self.end);
        }
        if self.class.offload.sends_bursts && self.wire.parcels.get(packet.token).segment.len > 0 {
            return self.begin_burst(packet);
        }
        self.send_packet(packet);
    }
}

impl FlowSink<'_> {
    #[inline(always)]
    pub(super) fn send_packet(&mut self, packet: Packet<u32>) {
        self.network.send(self.now, self.route, packet, self.wire);
    }
}

/// Number of the flow for queue disciplines: both directions are different flows.
pub(super) fn flow_number(flow: u32, from: usize) -> u32 {
    flow | if from == CLIENT { 1 << 31 } else { 0 }
}

/// What any end needs to send.
struct Sending<'a> {
    network: &'a mut Network<u32>,
    wire: &'a mut Wire,
    timers: &'a mut Timers,
    segment: &'a mut Segment,
    now: Nanos,
}

/// The end that sends.
struct SendingEnd<'a> {
    class: &'a FlowClass,
    record: &'a mut SourceRecord,
    checks: &'a mut ScheduledChecks,
    flow: usize,
    end: usize,
    connection: u32,
    route: RouteId,
}

impl Sending<'_> {
    /// Sends all segments that an end may send now, and sets its timers. Returns whether the send
    /// buffer has space for which the application waits.
    #[inline(always)]
    fn transmit<E: ConnectionEnd>(
        &mut self,
        from: SendingEnd<'_>,
        endpoint: &mut E,
        tcp: &E::Tcp,
    ) -> bool {
        let SendingEnd { class, record, checks, flow, end, connection, route } = from;
        let mut is_writable = false;
        let number = record.class();
        let transmission = endpoint.transmission();
        if transmission != Transmission::Nothing {
            let sink = &mut FlowSink {
                network: self.network,
                wire: self.wire,
                record,
                class,
                now: self.now,
                flow: flow as u32,
                connection,
                end,
                route,
                is_opening: transmission == Transmission::Opening,
                burst: None,
            };
            endpoint.transmit(self.now, tcp, self.segment, sink);
            if sink.burst.is_some() {
                sink.send_burst();
            }
            is_writable = class.waits_for_space && endpoint.take_writable();
        }
        checks.set_timers(endpoint, self.timers, flow, end, self.wire, number);
        is_writable
    }
}

/// A segment that reaches an end.
struct Delivery<'a> {
    now: Nanos,
    class: &'a FlowClass,
    parcel: &'a Parcel,
    datagrams: &'a [Datagram],
    index: u32,
}

impl Delivery<'_> {
    /// Passes the segment to its end, and counts it.
    #[inline(always)]
    fn pass_to<E: ConnectionEnd>(
        self,
        endpoint: &mut E,
        tcp: &E::Tcp,
        record: &mut SourceRecord,
        probes: &mut Probes,
        round_losses: &mut Option<Box<RoundLoss>>,
    ) -> SegmentOutcome {
        let Self { now, class, parcel, datagrams, index } = self;
        let datagram = datagrams.get(index as usize);
        let listener = &mut SenderListener::new(probes, record, parcel.flow);
        let outcome = endpoint.on_packet(now, &parcel.segment, datagram, tcp, listener);
        if parcel.counts {
            let delivered = DeliveredPacket { now, class, endpoint, tcp };
            if parcel.packets == 1 {
                delivered.count(probes, record, parcel, outcome.has_new_data);
            } else {
                for part in parcel.split(class.payload_bytes) {
                    delivered.count(probes, record, &part, outcome.has_new_data);
                }
            }
        } else if let (true, Some(losses)) = (class.sends[usize::from(parcel.to)], round_losses) {
            let next = endpoint.acked_packets() as u32 + 1;
            losses.on_acknowledged(parcel.flow, parcel.connection, next);
        }
        outcome
    }
}

impl FlowSimulation {
    /// Processes what the network reported in the current event.
    #[inline(always)]
    pub(super) fn process_network_events(&mut self) {
        let mut delivered = self.wire.delivered.take();
        while let Some((index, ecn)) = delivered {
            self.process_delivery(index, ecn);
            delivered = self.wire.delivered_parts.pop_front();
        }
        if !self.wire.dropped.is_empty() {
            self.process_drops();
        }
    }

    /// Processes a packet that has reached its host.
    #[inline(always)]
    fn process_delivery(&mut self, index: u32, ecn: Ecn) {
        if self.wire.taps.is_some() {
            self.wire.report_delivered(index, ecn);
        }
        let Self { network, wire, flows, classes, timers, segment, now, .. } = self;
        let Wire { parcels, probes, round_losses, .. } = &mut *wire;
        let (parcel, datagrams) = parcels.remove(index, ecn);
        if parcel.content != ParcelContent::Segment {
            let parcel = *parcel;
            return self.process_message(&parcel);
        }
        let (flow, to) = (parcel.flow as usize, usize::from(parcel.to));
        let state = &mut flows[flow];
        let class = &classes[state.record.class()];
        let Some(tcp) = class.tcp(to) else { return };
        let end = &mut state.ends[to];
        if parcel.is_copy {
            return;
        }
        // The receiver of classic TCP acknowledges its old connection until the first segment of
        // the next connection reaches it.
        if end.connection != parcel.connection {
            if parcel.connection != state.connection {
                return;
            }
            end.start_connection(*now, state.connection, to, 0, tcp);
        }
        let Some(endpoint) = &mut end.endpoint else { return };
        if state.stopped && !endpoint.is_finished() {
            return;
        }
        if parcel.packets > 1 && !class.offload.receives_bursts {
            let burst = *parcel;
            return wire.deliver_parts(&burst, class.payload_bytes);
        }
        let connection = end.connection;
        let Flow { record, routes, size, wanted, .. } = state;
        let delivery = Delivery { now: *now, class, parcel, datagrams, index };
        let mut is_writable = false;
        let for_application = with_kind_of_end!((endpoint, tcp), (endpoint, tcp) => {
            let endpoint = &mut **endpoint;
            let outcome = delivery.pass_to(endpoint, tcp, record, probes, round_losses);
            let SegmentOutcome { has_new_data, opened } = outcome;
            // An end whose connection opens now has not written its data yet.
            let is_finished = !opened
                && *size > 0
                && !class.is_endless()
                && to == class.file_sender()
                && ConnectionEnd::is_finished(endpoint);
            let is_wanted = has_new_data && wanted[to] != NOT_WANTED;
            if !(opened || is_wanted || (is_finished && !has_new_data)) {
                let checks = &mut end.checks;
                let route = routes[to];
                let from = SendingEnd { class, record, checks, flow, end: to, connection, route };
                let sending = &mut Sending { network, wire, timers, segment, now: *now };
                is_writable = sending.transmit(from, endpoint, tcp);
                None
            } else {
                Some((outcome, is_finished))
            }
        });
        if let Some((outcome, is_finished)) = for_application {
            self.pass_to_application(flow, to, outcome, is_finished);
        } else if is_writable {
            self.on_writable(flow, to);
        }
    }

    /// The application of an end reacts to a segment, and its end sends.
    #[inline(never)]
    fn pass_to_application(
        &mut self,
        flow: usize,
        to: usize,
        outcome: SegmentOutcome,
        is_finished: bool,
    ) {
        if outcome.opened {
            self.on_opened(flow, to);
        }
        if !outcome.has_new_data {
            if is_finished {
                return self.finish_transfer(flow);
            }
        } else if self.flows[flow].wanted[to] != NOT_WANTED {
            self.pass_data_to_application(flow, to);
        }
        self.transmit(flow, to);
    }

    /// Wakes the application of an end if it has received all the data for which it waits.
    fn pass_data_to_application(&mut self, flow: usize, to: usize) {
        let state = &self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (Some(endpoint), Some(tcp)) = (&state.ends[to].endpoint, class.tcp(to)) else { return };
        if endpoint.received_bytes(tcp) >= state.wanted[to] {
            self.on_received(flow, to);
        }
    }

    /// Sends all segments that an end may send now, and sets its timers.
    #[inline(never)]
    pub(super) fn transmit(&mut self, flow: usize, end: usize) {
        let Self { network, wire, flows, classes, timers, segment, now, .. } = self;
        let Flow { record, ends, routes, stopped, .. } = &mut flows[flow];
        let class = &classes[record.class()];
        let FlowEnd { endpoint: Some(endpoint), connection, checks } = &mut ends[end] else {
            return;
        };
        let Some(tcp) = class.tcp(end) else { return };
        if *stopped && !endpoint.is_finished() {
            return;
        }
        let (connection, route) = (*connection, routes[end]);
        let from = SendingEnd { class, record, checks, flow, end, connection, route };
        let sending = &mut Sending { network, wire, timers, segment, now: *now };
        let is_writable = with_kind_of_end!((endpoint, tcp), (endpoint, tcp) => {
            sending.transmit(from, &mut **endpoint, tcp)
        });
        if is_writable {
            self.on_writable(flow, end);
        }
    }

    /// Removes dropped packets, and counts those with data.
    #[inline(never)]
    fn process_drops(&mut self) {
        let mut dropped = std::mem::take(&mut self.wire.dropped);
        for DroppedParcel { at, link, index, cause } in dropped.drain(..) {
            let LinkRole { is_headline, is_own, .. } = *self.wire.role(link);
            let Wire { probes, parcels, .. } = &mut self.wire;
            let (parcel, _) = parcels.remove(index, Ecn::NotEct);
            let Parcel { flow, connection, number: first, packets, of, .. } = *parcel;
            if parcel.content == ParcelContent::Cross {
                probes.cross.count_event(first as usize, CrossPacketEvent::Dropped);
            }
            if !parcel.is_data {
                continue;
            }
            let state = &mut self.flows[flow as usize];
            for number in (0..packets).map(|at| if first == 0 { 0 } else { first + at }) {
                state.record.losses += u32::from(connection == state.connection && number != 0);
                let record = &state.record;
                let packet = NumberedPacket {
                    source: flow,
                    connection,
                    number,
                    ..NumberedPacket::default()
                };
                if is_headline {
                    if cause == DropCause::Early {
                        probes.early.count_drop();
                    }
                    let is_random = cause == DropCause::Random;
                    probes.count_bottleneck_drop(at, record, &packet, is_random);
                } else {
                    probes.count_drop_elsewhere(at, record, &packet, is_own);
                }
            }
            if self.classes[of.class()].has_loss_feedback {
                let parcel = *self.wire.parcels.get(index);
                self.notify_of_loss(at, &parcel);
            }
        }
        self.wire.dropped = dropped;
    }

    /// Notifies a sender with instantaneous loss feedback that a packet was lost at `at`.
    ///
    /// If a packet is lost at the time of its transmission, a sender in front of a full buffer would
    /// send indefinitely at that time. So the notification is delayed by the transmission time of a
    /// packet on the headline link, or at 1 Gbit/s if that link has no constant rate.
    fn notify_of_loss(&mut self, at: Nanos, parcel: &Parcel) {
        let flow = parcel.flow as usize;
        let (state, end) = (&mut self.flows[flow], other_end(usize::from(parcel.to)));
        if parcel.is_copy || parcel.connection != state.connection {
            return;
        }
        let class = state.record.class();
        let link = &self.config.links[self.config.headline];
        let bytes = self.classes[class].packet_bytes;
        let later = match link.transmission_time(bytes) {
            0 => Nanos::from(bytes) * 8,
            time => time,
        };
        let due = at + if at <= parcel.sent_at { later } else { 0 };
        let FlowEnd { endpoint: Some(endpoint), checks, .. } = &mut state.ends[end] else { return };
        endpoint.add_loss(due, parcel.number);
        with_kind_of_end!(endpoint, endpoint => {
            checks.set_timers(&**endpoint, &mut self.timers, flow, end, &self.wire, class);
        });
    }

    /// Processes the first timer.
    #[inline(always)]
    pub(super) fn process_timer(&mut self) {
        let Some((timer, flow, end)) = self.timers.take() else { return };
        match timer {
            FlowTimer::Sender => self.on_sender_timer(flow, end),
            FlowTimer::Receiver => self.on_receiver_timer(flow, end),
            FlowTimer::Pacing => self.on_pacing_timer(flow, end),
            FlowTimer::Start => self.start_flow(flow),
            FlowTimer::Arrival => self.on_class_timer(flow),
            FlowTimer::Application => self.on_application_timer(flow, end),
            FlowTimer::Stop => self.stop_flow(flow),
            FlowTimer::Cross => self.send_cross_packet(flow),
        }
        if !self.wire.dropped.is_empty() {
            self.process_drops();
        }
    }

    fn on_sender_timer(&mut self, flow: usize, end: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        let FlowEnd { endpoint: Some(endpoint), checks, .. } = &mut state.ends[end] else { return };
        if checks.timer != now {
            return;
        }
        checks.timer = NEVER;
        // Usually the timer has been postponed since the event was scheduled.
        let mut expires = endpoint.deadlines().sender_lower_bound;
        if expires <= now {
            expires = endpoint.sender_deadline();
        }
        if expires > now {
            if expires < NEVER {
                checks.timer = expires;
                self.timers.set(FlowTimer::Sender, flow, end, expires);
            }
            return;
        }
        self.expire_timer(flow, end);
    }

    fn on_receiver_timer(&mut self, flow: usize, end: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        let FlowEnd { endpoint: Some(endpoint), checks, .. } = &mut state.ends[end] else { return };
        if checks.ack_timer != now {
            return;
        }
        checks.ack_timer = NEVER;
        let expires = endpoint.deadlines().receiver;
        if expires > now {
            if expires < NEVER {
                checks.ack_timer = expires;
                self.timers.set(FlowTimer::Receiver, flow, end, expires);
            }
            return;
        }
        self.expire_timer(flow, end);
    }

    /// Calls an end at the deadline of its timer.
    fn expire_timer(&mut self, flow: usize, end: usize) {
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (Some(endpoint), Some(tcp)) = (&mut state.ends[end].endpoint, class.tcp(end)) else {
            return;
        };
        let probes = &mut self.wire.probes;
        let listener = &mut SenderListener::new(probes, &mut state.record, flow as u32);
        endpoint.on_timer(self.now, tcp, listener);
        self.transmit(flow, end);
    }

    fn on_pacing_timer(&mut self, flow: usize, end: usize) {
        let pacing = &mut self.flows[flow].ends[end].checks.pacing;
        if *pacing == self.now {
            *pacing = NEVER;
            self.transmit(flow, end);
        }
    }

    /// A packet that is no segment has arrived.
    #[inline(never)]
    fn process_message(&mut self, parcel: &Parcel) {
        match parcel.content {
            ParcelContent::Segment | ParcelContent::Cross => (),
            ParcelContent::Message => self.on_message(parcel),
            ParcelContent::Ping => self.on_ping(parcel),
        }
    }

    /// Starts a new connection of a flow: the server and the client, or without a handshake only
    /// the ends in `ends`, because the other end starts when its first segment arrives.
    pub(super) fn start_connection(&mut self, flow: usize, ends: &[usize]) {
        self.flows[flow].connection += 1;
        self.select_routes(flow);
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        for end in ends {
            let seed = state.seeds.next_bits();
            // The client is a different host, so it has a different clock.
            let seed = if *end == CLIENT { seed.rotate_left(u64::BITS / 2) } else { seed };
            if let Some(tcp) = class.tcp(*end) {
                let connection = state.connection;
                state.ends[*end].start_connection(self.now, connection, *end, seed, tcp);
            }
        }
    }

    /// The application of an end writes `bytes`; call [`FlowSimulation::transmit`] next.
    pub(super) fn write(&mut self, flow: usize, end: usize, bytes: u64) {
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (Some(endpoint), Some(tcp)) = (&mut state.ends[end].endpoint, class.tcp(end)) else {
            return;
        };
        let probes = &mut self.wire.probes;
        let listener = &mut SenderListener::new(probes, &mut state.record, flow as u32);
        endpoint.write(self.now, bytes, tcp, listener);
    }

    /// Whether the traffic of a flow uses this kind of file.
    pub(super) fn traffic_of(&self, flow: usize) -> &FlowTraffic {
        &self.classes[self.flows[flow].record.class()].traffic
    }
}

/// What counts a data packet that has reached its receiver.
struct DeliveredPacket<'a, E: ConnectionEnd> {
    now: Nanos,
    class: &'a FlowClass,
    endpoint: &'a E,
    tcp: &'a E::Tcp,
}

impl<E: ConnectionEnd> DeliveredPacket<'_, E> {
    /// Counts a packet; `is_new` if its data is new.
    #[inline(always)]
    fn count(&self, probes: &mut Probes, record: &mut SourceRecord, parcel: &Parcel, is_new: bool) {
        let Self { now, class, endpoint, tcp } = *self;
        let Parcel { flow, number, segment: Segment { len: bytes, .. }, .. } = *parcel;
        probes.count_delivery(record, is_new);
        if is_new {
            let payload = class.payload_bytes;
            if bytes < payload {
                probes.count_short_delivery(record, payload - bytes);
            }
        } else if number != 0 {
            probes.count_spurious_retransmission(record);
        }
        match class.statistics {
            DeliveredStatistics::LastOfFile => record.record_data_arrival(now, is_new),
            DeliveredStatistics::Packets => record.packets += u64::from(is_new),
            DeliveredStatistics::BlocksOfFile => {
                record.record_data_arrival(now, is_new);
                if is_new {
                    probes.count_delivery_for_blocks(now, record, flow);
                }
            }
            DeliveredStatistics::PacketsByTime => {
                record.packets += u64::from(is_new);
                if is_new {
                    let packets = endpoint.packets_in_order(tcp);
                    probes.record_in_order_delivery(now, record, flow, packets);
                }
            }
        }
    }
}

impl FlowEnd {
    /// Starts a connection in the memory of the previous one.
    fn start_connection(
        &mut self,
        now: Nanos,
        connection: u32,
        end: usize,
        seed: u64,
        tcp: &EndTcp,
    ) {
        self.connection = connection;
        match &mut self.endpoint {
            Some(endpoint) => endpoint.restart(now, seed, tcp),
            none => *none = Some(End::start(now, ROLES[end], seed, tcp)),
        }
    }
}

impl ScheduledChecks {
    /// Schedules checks of the timers of an end that are due earlier than the scheduled ones.
    #[inline(always)]
    fn set_timers(
        &mut self,
        endpoint: &impl ConnectionEnd,
        timers: &mut Timers,
        flow: usize,
        end: usize,
        wire: &Wire,
        class: usize,
    ) {
        let EndDeadlines { sender_lower_bound, receiver, pacer } = endpoint.deadlines();
        if sender_lower_bound < self.timer {
            let due = endpoint.sender_deadline();
            if due < self.timer {
                self.timer = due;
                timers.set(FlowTimer::Sender, flow, end, due);
            }
        }
        if receiver < self.ack_timer {
            self.ack_timer = receiver;
            timers.set(FlowTimer::Receiver, flow, end, receiver);
        }
        if pacer < self.pacing {
            let host = wire.host_delays[class].as_ref();
            let due = pacer + host.map_or(0, |host| host.delay.timer_delay(flow as u32, pacer));
            if due < self.pacing {
                self.pacing = due;
                timers.set(FlowTimer::Pacing, flow, end, due);
            }
        }
    }
}
