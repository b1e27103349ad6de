//! Per-flow packet counters, updated by the link during a run.

use super::rtt_samples::RttSamples;
use super::{FlowKind, LinkRole, TallyConfig, format_json_list};
use crate::forwarding::{LATE_THRESHOLD, lateness_reason};
use crate::path::{PacketInTransit, PacketObserver, TcpHeader, is_sequence_after};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tcpcast_link::time::{MICROSECOND, MILLISECOND, Nanos};
use tcpcast_net::{DropCause, LinkId, Service};

/// Number of the end of the client.
const CLIENT: usize = 1;
const IP_HEADER_BYTES: usize = 20;
/// Echo requests and replies (RFC 792).
const PROTOCOL_ICMP: u8 = 1;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// Resolution of the histograms of times.
pub(super) const TIME_RESOLUTION: Nanos = 20 * MICROSECOND;

/// Upper bounds of the lateness classes; the last class is unbounded.
pub(super) const LATENESS_BOUNDS: [Nanos; 6] = [
    100 * MICROSECOND,
    200 * MICROSECOND,
    500 * MICROSECOND,
    MILLISECOND,
    2 * MILLISECOND,
    5 * MILLISECOND,
];

/// Data packets of a flow, and its times. Packets are counted at the headline link, if not stated
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowTally {
    pub arrived: u64,
    pub queue_drops: u64,
    pub random_drops: u64,
    pub passed: u64,
    pub waited: Nanos,
    pub marked: u64,
    /// Packets that entered the first link of their route, and packets dropped at other links.
    pub sent: u64,
    pub dropped_elsewhere: u64,
    pub rtt_sum: Nanos,
    pub rtt_samples: u64,
    /// Messages and pings sent, messages and echoes received, and their delays.
    pub messages: u64,
    pub received: u64,
    pub delay: Nanos,
    /// Answered requests, and their times.
    pub requests: u64,
    pub latency: Nanos,
}

/// Kind of a time with percentiles, in the order of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeKind {
    Rtt,
    Delay,
    Latency,
}

/// Number of kinds of the simulator; the others are those of pages.
const TIME_KINDS: u32 = 6;

/// Times and data packets of a file, by the clock of the links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileTally {
    /// First packet of the connection, from its receiver.
    pub opened: Nanos,
    /// First packet of the receiver that opens the connection or requests the file.
    pub asked: Option<Nanos>,
    /// Arrival of the first data packet, and departure of the last one.
    pub first_entered: Option<Nanos>,
    pub last_left: Nanos,
    /// Arrival of the acknowledgement of the last byte at the sender.
    pub last_ack: Nanos,
    pub arrived: u64,
    pub drops: u64,
    highest_ack: Option<u32>,
    /// Sequence number after the last byte of data.
    end: Option<u32>,
    rtts: RttSamples,
}

impl FileTally {
    /// Whether all data sent so far are acknowledged.
    pub(super) fn is_acked(&self) -> bool {
        self.highest_ack
            .zip(self.end)
            .is_some_and(|(highest, end)| !is_sequence_after(end, highest))
    }

    /// Starts the next file of the connection.
    pub(super) fn begin_next_file(&mut self) {
        let Self { highest_ack, end, opened, .. } = *self;
        let rtts = std::mem::take(&mut self.rtts);
        *self = Self { opened, highest_ack, end, rtts, ..Self::default() };
    }

    fn record_delivered_ack(&mut self, due: Nanos, ack: u32) {
        if self.highest_ack.is_none_or(|highest| is_sequence_after(ack, highest)) {
            // An acknowledgement of only a FIN does not acknowledge data.
            if self
                .highest_ack
                .zip(self.end)
                .is_none_or(|(highest, end)| is_sequence_after(end, highest))
            {
                self.last_ack = due;
            }
            self.highest_ack = Some(ack);
        }
    }
}

/// Counters of all flows and links.
#[derive(Debug, Default)]
pub(super) struct TrafficTally {
    config: TallyConfig,
    pub flows: Vec<FlowTally>,
    /// Files on open connections of each flow by the receiver's port.
    pub files: Vec<HashMap<u16, FileTally>>,
    /// One-way delay of the last pings of each flow, by their number.
    pings: Vec<HashMap<u16, Nanos>>,
    /// Link time of the last packet, and the host's time at that moment.
    now: Nanos,
    seen: Option<Instant>,
    last_now: Nanos,
    /// Number of packets by queueing delay in steps, since the last snapshot: one group per class of
    /// each link, and as the last group the data packets of the headline link.
    pub waits: BTreeMap<(u32, u64), u64>,
    /// Number of times by kind in steps, since the last snapshot: three groups per class.
    pub times: BTreeMap<(u32, u64), u64>,
    /// Number of packets by lateness class.
    pub lateness: [u64; LATENESS_BOUNDS.len() + 1],
    /// Total lateness of all packets.
    late: Nanos,
    /// Total time for which the clock of the links was paused.
    paused: Nanos,
}

/// A tally shared by the forwarding loop and the driver.
#[derive(Clone, Debug)]
pub(super) struct SharedTally(Arc<Mutex<TrafficTally>>);

impl SharedTally {
    /// Creates an empty tally.
    pub(super) fn new(config: TallyConfig) -> Self {
        let count = config.flows.len();
        Self(Arc::new(Mutex::new(TrafficTally {
            config,
            flows: vec![FlowTally::default(); count],
            files: vec![HashMap::new(); count],
            pings: vec![HashMap::new(); count],
            ..TrafficTally::default()
        })))
    }

    pub(super) fn lock_tally(&self) -> MutexGuard<'_, TrafficTally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Flow of a packet, and the end that sends it: 0 is the server. See [`super::TrafficCommand`].
fn flow_and_end(packet: &PacketInTransit) -> (usize, usize) {
    (packet.pair as usize / 2, packet.pair as usize % 2)
}

/// Type and number of an echo request or reply.
fn echo_type_and_number(bytes: &[u8]) -> Option<(u8, u16)> {
    let icmp = bytes.get(IP_HEADER_BYTES..).filter(|icmp| icmp.len() >= 8)?;
    (bytes[9] == PROTOCOL_ICMP).then(|| (icmp[0], u16::from_be_bytes([icmp[6], icmp[7]])))
}

impl TrafficTally {
    /// Link time, extrapolated since the last packet.
    pub(super) fn current_link_time(&mut self) -> Nanos {
        if let Some(seen) = self.seen {
            let since = seen.elapsed().as_nanos() as Nanos;
            self.last_now = self.last_now.max(self.now + since);
        }
        self.last_now
    }

    /// Returns the punctuality of the link since the start, `elapsed` ago, as JSON.
    pub(super) fn punctuality_json(&self, elapsed: Nanos) -> String {
        let beyond = LATENESS_BOUNDS.iter().take_while(|end| **end <= LATE_THRESHOLD).count();
        let (all, late) = (&self.lateness, &self.lateness[beyond..]);
        let delivered = all.iter().sum();
        let reason = lateness_reason(late.iter().sum(), delivered, self.paused, elapsed);
        let reason = reason.map_or_else(|| "null".to_owned(), |reason| format!("\"{reason}\""));
        format!(
            "{{\"elapsed_ns\":{elapsed},\"away_ns\":{},\"late_ns\":{},\"lateness\":{},\
             \"distortion\":{reason}}}",
            self.paused,
            self.late,
            format_json_list(self.lateness)
        )
    }

    fn set_now(&mut self, now: Nanos) {
        self.now = now;
        self.seen = Some(Instant::now());
    }

    /// Adds a time of a flow to the percentiles of its class.
    pub(super) fn add_time(&mut self, flow: usize, kind: TimeKind, time: Nanos) {
        let group = u32::from(self.config.flows[flow].class) * TIME_KINDS + kind as u32;
        *self.times.entry((group, time / TIME_RESOLUTION)).or_default() += 1;
    }

    /// Counts an answered request.
    pub(super) fn count_request(&mut self, flow: usize, latency: Nanos) {
        self.flows[flow].requests += 1;
        self.flows[flow].latency += latency;
        self.add_time(flow, TimeKind::Latency, latency);
    }

    /// Counts a message, or an echo, that arrived after `delay`.
    fn count_received(&mut self, flow: usize, delay: Nanos) {
        self.flows[flow].received += 1;
        self.flows[flow].delay += delay;
        self.add_time(flow, TimeKind::Delay, delay);
    }

    /// Segment of a packet that counts as data of its flow, with TCP.
    fn data_segment(&self, packet: &PacketInTransit, bytes: &[u8]) -> Option<TcpHeader> {
        let (flow, end) = flow_and_end(packet);
        let role = &self.config.flows[flow];
        let sends = matches!(role.kind, FlowKind::Tcp { sender } if sender == end);
        let segment = TcpHeader::parse_ip(bytes).filter(|_| sends)?;
        (segment.payload > 0).then_some(segment)
    }

    /// Whether a packet counts as data: of a sender of data, or a message or ping.
    fn is_data(&self, packet: &PacketInTransit, bytes: &[u8]) -> bool {
        match self.config.flows[flow_and_end(packet).0].kind {
            FlowKind::Tcp { .. } => self.data_segment(packet, bytes).is_some(),
            FlowKind::Messages | FlowKind::Ping => true,
        }
    }

    fn role(&self, link: LinkId) -> &LinkRole {
        &self.config.links[link.index()]
    }

    fn enter_packet(&mut self, now: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        self.set_now(now);
        let (flow, end) = flow_and_end(packet);
        match self.config.flows[flow].kind {
            FlowKind::Tcp { sender } => {
                let Some(segment) = TcpHeader::parse_ip(bytes) else { return };
                if sender == end {
                    self.enter_data(now, flow, &segment);
                } else if segment.opens_connection() || segment.payload > 0 {
                    self.enter_request(now, flow, &segment);
                }
            }
            FlowKind::Messages => {
                self.flows[flow].messages += 1;
                self.flows[flow].sent += 1;
            }
            FlowKind::Ping => {
                self.flows[flow].messages += u64::from(end == CLIENT);
                self.flows[flow].sent += 1;
            }
        }
    }

    fn enter_data(&mut self, now: Nanos, flow: usize, segment: &TcpHeader) {
        if segment.payload == 0 {
            return;
        }
        self.flows[flow].sent += 1;
        let ends = segment.sequence.wrapping_add(segment.payload as u32);
        let Some(file) = self.files[flow].get_mut(&segment.destination_port()) else { return };
        file.arrived += 1;
        file.first_entered.get_or_insert(now);
        if file.end.is_none_or(|end| is_sequence_after(ends, end)) {
            file.end = Some(ends);
        }
        file.rtts.add_sent(now, segment.sequence, ends);
    }

    fn enter_request(&mut self, now: Nanos, flow: usize, segment: &TcpHeader) {
        let files = &mut self.files[flow];
        if segment.opens_connection() {
            let new = || FileTally { opened: now, ..FileTally::default() };
            files.entry(segment.source_port()).or_insert_with(new);
        }
        if let Some(file) = files.get_mut(&segment.source_port()) {
            file.asked.get_or_insert(now);
        }
    }

    fn deliver_packet(&mut self, due: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        let (flow, end) = flow_and_end(packet);
        let delay = due - packet.entered;
        match self.config.flows[flow].kind {
            FlowKind::Messages => self.count_received(flow, delay),
            FlowKind::Ping => match echo_type_and_number(bytes) {
                Some((ECHO_REQUEST, number)) => {
                    self.pings[flow].insert(number, delay);
                }
                // The time at the server is that of this machine.
                Some((ECHO_REPLY, number)) => {
                    if let Some(there) = self.pings[flow].remove(&number) {
                        self.count_received(flow, there + delay);
                    }
                }
                _ => (),
            },
            FlowKind::Tcp { sender } => {
                let Some(segment) = TcpHeader::parse_ip(bytes) else { return };
                if end != sender {
                    self.deliver_ack(due, flow, &segment);
                } else if segment.payload > 0 {
                    if let Some(file) = self.files[flow].get_mut(&segment.destination_port()) {
                        file.last_left = due;
                    }
                }
            }
        }
    }

    fn deliver_ack(&mut self, due: Nanos, flow: usize, segment: &TcpHeader) {
        let file = self.files[flow].get_mut(&segment.source_port());
        let Some((file, ack)) = file.zip(segment.acknowledged()) else { return };
        file.record_delivered_ack(due, ack);
        if let Some(entered) = file.rtts.take_acked(ack) {
            let rtt = due - entered;
            self.flows[flow].rtt_sum += rtt;
            self.flows[flow].rtt_samples += 1;
            self.add_time(flow, TimeKind::Rtt, rtt);
        }
    }
}

impl PacketObserver for SharedTally {
    fn on_enter(&mut self, now: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        self.lock_tally().enter_packet(now, packet, bytes);
    }

    fn on_link_entered(&mut self, link: LinkId, packet: &PacketInTransit, bytes: &[u8]) {
        let mut tally = self.lock_tally();
        if tally.role(link).is_headline && tally.is_data(packet, bytes) {
            tally.flows[flow_and_end(packet).0].arrived += 1;
        }
    }

    fn on_served(&mut self, link: LinkId, packet: &PacketInTransit, bytes: &[u8], of: &Service) {
        let mut tally = self.lock_tally();
        let LinkRole { declared, is_headline, has_queue } = *tally.role(link);
        let step = of.waited / TIME_RESOLUTION;
        let number = flow_and_end(packet).0;
        let TallyConfig { declared_links, classes, .. } = tally.config;
        if has_queue {
            let group = declared * classes + u32::from(tally.config.flows[number].class);
            *tally.waits.entry((group, step)).or_default() += 1;
        }
        if is_headline && tally.is_data(packet, bytes) {
            *tally.waits.entry((declared_links * classes, step)).or_default() += 1;
            let flow = &mut tally.flows[number];
            flow.passed += 1;
            flow.waited += of.waited;
            flow.marked += u64::from(of.marked);
        }
    }

    fn on_drop(&mut self, link: LinkId, packet: &PacketInTransit, bytes: &[u8], of: DropCause) {
        let mut tally = self.lock_tally();
        if !tally.is_data(packet, bytes) {
            return;
        }
        let is_headline = tally.role(link).is_headline;
        let number = flow_and_end(packet).0;
        let flow = &mut tally.flows[number];
        match of {
            _ if !is_headline => flow.dropped_elsewhere += 1,
            DropCause::Full | DropCause::Early | DropCause::Superseded => flow.queue_drops += 1,
            DropCause::Random => flow.random_drops += 1,
        }
        if let Some(segment) = tally.data_segment(packet, bytes) {
            if let Some(file) = tally.files[number].get_mut(&segment.destination_port()) {
                file.drops += 1;
            }
        }
    }

    fn on_deliver(&mut self, now: Nanos, due: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        let mut tally = self.lock_tally();
        tally.set_now(now);
        let class = LATENESS_BOUNDS.iter().take_while(|end| now - due > **end).count();
        tally.lateness[class] += 1;
        tally.late += now - due;
        tally.deliver_packet(due, packet, bytes);
    }

    fn on_clock_pause(&mut self, paused: Nanos) {
        self.lock_tally().paused = paused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::FlowRole;
    use std::num::NonZeroU64;
    use tcpcast_link::queue::BufferLimits;
    use tcpcast_net::{LinkConfig, Network};
    use tcpcast_wire::{ACK, SYN};

    const SERVER: usize = 0;

    fn tally(kinds: &[FlowKind]) -> SharedTally {
        let flow = |kind: &FlowKind| FlowRole { class: 1, kind: *kind };
        let link = |declared| LinkRole { declared, is_headline: declared == 0, has_queue: true };
        SharedTally::new(TallyConfig {
            flows: kinds.iter().map(flow).collect(),
            links: vec![link(0), link(1)],
            declared_links: 2,
            classes: 2,
        })
    }

    fn download() -> FlowKind {
        FlowKind::Tcp { sender: SERVER }
    }

    /// Two links.
    fn links() -> [LinkId; 2] {
        let mut network = Network::<u32>::default();
        [(); 2].map(|()| {
            let limits = BufferLimits::default();
            network.add_link(LinkConfig::drop_tail(NonZeroU64::new(1000), limits, 0))
        })
    }

    /// A packet of an end of a flow that entered at `entered`.
    fn of(flow: u32, end: usize, entered: Nanos) -> PacketInTransit {
        PacketInTransit { pair: 2 * flow + end as u32, entered, ..PacketInTransit::default() }
    }

    /// A TCP packet with 40 bytes of headers.
    fn packet(ack: u32, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0_u8; 40 + payload];
        (bytes[0], bytes[9], bytes[32]) = (0x45, 6, 0x50);
        bytes[33] = if ack > 0 { ACK } else { 0 };
        bytes[28..32].copy_from_slice(&ack.to_be_bytes());
        bytes
    }

    fn opening() -> Vec<u8> {
        let mut open = packet(0, 0);
        open[33] = SYN;
        open
    }

    fn served(waited: Nanos, marked: bool) -> Service {
        Service { entered: 0, waited, leaves: waited, marked }
    }

    #[test]
    fn tally_counts_data_packets_at_the_headline_link() {
        let [headline, other] = links();
        let mut tally = tally(&[download(), FlowKind::Tcp { sender: CLIENT }]);
        let data = packet(0, 100);
        for flow in 0..2 {
            for end in [SERVER, CLIENT] {
                tally.on_enter(5, &of(flow, end, 5), &data);
            }
        }
        tally.on_link_entered(other, &of(0, SERVER, 5), &data);
        tally.on_link_entered(headline, &of(0, SERVER, 5), &data);
        // An acknowledgement is not a data packet.
        tally.on_enter(7, &of(0, SERVER, 7), &packet(1, 0));
        tally.on_link_entered(headline, &of(0, SERVER, 7), &packet(1, 0));
        tally.on_served(headline, &of(0, SERVER, 5), &data, &served(3 * TIME_RESOLUTION, true));
        tally.on_served(other, &of(0, CLIENT, 5), &data, &served(TIME_RESOLUTION, false));
        tally.on_drop(headline, &of(1, CLIENT, 5), &data, DropCause::Random);
        tally.on_drop(other, &of(1, CLIENT, 5), &data, DropCause::Full);
        let counters = tally.lock_tally();
        let expected = FlowTally {
            arrived: 1,
            passed: 1,
            waited: 3 * TIME_RESOLUTION,
            marked: 1,
            sent: 1,
            ..FlowTally::default()
        };
        assert_eq!(counters.flows[0], expected);
        let FlowTally { sent, random_drops, dropped_elsewhere, .. } = counters.flows[1];
        assert_eq!((sent, random_drops, dropped_elsewhere), (1, 1, 1));
        let waits: Vec<_> = counters.waits.iter().map(|(key, count)| (*key, *count)).collect();
        assert_eq!(waits, [((1, 3), 1), ((3, 1), 1), ((4, 3), 1)]);
    }

    #[test]
    fn file_begins_with_syn_and_ends_with_last_new_ack() {
        let mut tally = tally(&[download(), download()]);
        tally.on_enter(1, &of(1, CLIENT, 1), &opening());
        tally.on_enter(2, &of(1, CLIENT, 2), &opening());
        tally.on_enter(9, &of(1, CLIENT, 9), &packet(1, 0));
        let data = packet(0, 101);
        tally.on_enter(12, &of(1, SERVER, 12), &data);
        tally.on_drop(links()[0], &of(1, SERVER, 12), &data, DropCause::Full);
        tally.on_deliver(16, 15, &of(1, SERVER, 12), &data);
        // The last acknowledgement is for the FIN.
        for (due, number) in [(20, 1), (30, 101), (40, 101), (50, 102)] {
            tally.on_deliver(due + MILLISECOND, due, &of(1, CLIENT, 0), &packet(number, 0));
            assert_eq!(tally.lock_tally().files[1][&0].is_acked(), due > 20);
        }
        let file = tally.lock_tally().files[1][&0].clone();
        assert_eq!((file.opened, file.first_entered, file.last_left), (1, Some(12), 15));
        assert_eq!((file.last_ack, file.arrived, file.drops), (30, 1, 1));
        let FlowTally { rtt_samples, rtt_sum, .. } = tally.lock_tally().flows[1];
        assert_eq!((rtt_samples, rtt_sum), (1, 30 - 12));
        assert_eq!(tally.lock_tally().times[&(TIME_KINDS, 0)], 1);
        assert_eq!(tally.lock_tally().lateness, [1, 0, 0, 4, 0, 0, 0]);
        tally.on_clock_pause(60);
        let punctuality = tally.lock_tally().punctuality_json(1000);
        let numbers = r#""away_ns":60,"late_ns":4000001,"lateness":[1,0,0,4,0,0,0],"distortion":"#;
        assert!(punctuality.contains(numbers), "{punctuality}");
        assert!(punctuality.ends_with(r#""this machine stalled for 6.0 % of the time"}"#));
        assert!(tally.lock_tally().files[0].is_empty());
    }

    #[test]
    fn files_of_one_connection_are_counted_separately() {
        let mut tally = tally(&[download()]);
        tally.on_enter(1, &of(0, CLIENT, 1), &opening());
        let mut data = packet(0, 100);
        tally.on_enter(5, &of(0, SERVER, 5), &data);
        tally.on_deliver(9, 9, &of(0, CLIENT, 8), &packet(100, 0));
        tally.lock_tally().files[0].get_mut(&0).unwrap().begin_next_file();
        // A request.
        tally.on_enter(18, &of(0, CLIENT, 18), &packet(100, 10));
        data[24..28].copy_from_slice(&100_u32.to_be_bytes());
        tally.on_enter(20, &of(0, SERVER, 20), &data);
        let file = |tally: &SharedTally| tally.lock_tally().files[0][&0].clone();
        assert!(!file(&tally).is_acked());
        tally.on_deliver(30, 29, &of(0, CLIENT, 28), &packet(200, 0));
        let file = file(&tally);
        assert!(file.is_acked());
        assert_eq!((file.opened, file.asked, file.first_entered), (1, Some(18), Some(20)));
        assert_eq!((file.last_ack, file.arrived), (29, 1));
    }

    #[test]
    fn delay_of_a_ping_is_the_sum_of_both_ways() {
        let mut tally = tally(&[FlowKind::Ping, FlowKind::Messages]);
        let echo = |kind: u8| {
            let mut bytes = vec![0_u8; 28];
            (bytes[0], bytes[9], bytes[20], bytes[27]) = (0x45, PROTOCOL_ICMP, kind, 7);
            bytes
        };
        tally.on_enter(1000, &of(0, CLIENT, 1000), &echo(ECHO_REQUEST));
        tally.on_deliver(1200, 1100, &of(0, CLIENT, 1000), &echo(ECHO_REQUEST));
        tally.on_enter(5000, &of(0, SERVER, 5000), &echo(ECHO_REPLY));
        tally.on_deliver(5300, 5300, &of(0, SERVER, 5000), &echo(ECHO_REPLY));
        tally.on_enter(1, &of(1, SERVER, 1), &[0x45]);
        tally.on_deliver(9, 8, &of(1, SERVER, 1), &[0x45]);
        let counters = tally.lock_tally();
        let of_flow = |flow: usize| {
            let FlowTally { messages, received, delay, sent, .. } = counters.flows[flow];
            (messages, received, delay, sent)
        };
        assert_eq!((of_flow(0), of_flow(1)), ((1, 1, 400, 2), (1, 1, 7, 1)));
        assert_eq!(counters.times[&(TIME_KINDS + 1, 0)], 2);
    }
}
