//! Captures: packets that pass a tap at a host or at the headline link.
//!
//! Acknowledgements that do not pass the headline link pass its taps where the same link of a
//! symmetric return path would be: the part of the path behind the link precedes the taps.

use super::config::{FlowClassConfig, FlowTcp, NetworkConfig};
use super::flow::data_ends;
use super::links::unloaded_rtt;
use super::parcel::{CLIENT, Parcel, ParcelContent, SERVER};
use super::wire::{Wire, other_end};
use crate::clock::Nanos;
use crate::packet::{Packet, PacketKind};
use crate::probe::{CapturedHeader, ConnectionProperties, TapPlace, UnloadedHandshakeTimes};
use tcpcast_link::Ecn;
use tcpcast_tcp::modern::HandshakeKind;

/// Taps of a class.
#[derive(Clone, Copy, Debug)]
struct ClassTaps {
    /// Whether sequence numbers count packets.
    counts_packets: bool,
    /// The end at which a capture at the senders is taken.
    sender: usize,
    /// Time from the taps before and behind the headline link to the sender, if the packets to the
    /// sender do not pass this link.
    to_sender: Option<[Nanos; 2]>,
}

/// Taps of a run that writes captures.
#[derive(Clone, Debug)]
pub(super) struct Taps {
    classes: Vec<ClassTaps>,
    /// Packets that each end of each flow has sent, which number its packets.
    sent: Vec<[u16; 2]>,
    /// Maximum time from a tap to the report of the packet.
    max_delay: Nanos,
}

impl Taps {
    /// Taps of a run; `None` if it writes no captures.
    pub fn new(config: &NetworkConfig) -> Option<Box<Self>> {
        if config.probes.captures.is_empty() {
            return None;
        }
        let classes: Vec<_> =
            config.classes.iter().map(|class| ClassTaps::new(config, class)).collect();
        let delays = classes.iter().filter_map(|class| class.to_sender).flatten();
        let max_delay = delays.max().unwrap_or(0);
        Some(Box::new(Self { classes, sent: Vec::new(), max_delay }))
    }

    /// Number of the next packet of an end.
    pub fn next_serial(&mut self, flow: u32, end: usize) -> u16 {
        let flow = flow as usize;
        if self.sent.len() <= flow {
            self.sent.resize(flow + 1, [0; 2]);
        }
        let sent = &mut self.sent[flow][end];
        *sent = sent.wrapping_add(1);
        *sent
    }
}

impl ClassTaps {
    fn new(config: &NetworkConfig, class: &FlowClassConfig) -> Self {
        let sender = if data_ends(class)[SERVER] { SERVER } else { CLIENT };
        let ways = class.ways_from(other_end(sender));
        let to_sender = (!ways.iter().any(|way| way.contains(&config.headline)))
            .then(|| times_around_headline(config, class, sender)[1]);
        let counts_packets = matches!(class.tcp, Some(FlowTcp::Packets(_)));
        Self { counts_packets, sender, to_sender }
    }

    fn tap_at(&self, end: usize) -> TapPlace {
        if end == self.sender { TapPlace::Sender } else { TapPlace::Receiver }
    }
}

/// Times of packets of `ack_bytes` without queueing: from the sender to the taps before and behind
/// the headline link, and from these taps to the sender.
fn times_around_headline(
    config: &NetworkConfig,
    class: &FlowClassConfig,
    sender: usize,
) -> [[Nanos; 2]; 2] {
    let over = |link: &usize| {
        let link = &config.links[*link];
        [link.transmission_time(class.ack_bytes), link.delay]
    };
    let (way, back) = (&class.ways_from(sender)[0], &class.ways_from(other_end(sender))[0]);
    let at = way.iter().position(|link| *link == config.headline).unwrap_or(way.len());
    let before: Nanos = way[..at].iter().flat_map(over).sum();
    let [sending, delay] = way.get(at).map_or([0, 0], over);
    let behind: Nanos = way.iter().skip(at + 1).flat_map(over).sum::<Nanos>() + delay;
    let rest = if sender == SERVER { class.back_delay } else { class.delay };
    let to_in = (config.time_over(class, back) + rest).saturating_sub(behind + sending);
    [[before, before + sending], [to_in, to_in + sending]]
}

impl NetworkConfig {
    /// Properties of the connections of each class that a capture at `tap` shows.
    #[must_use]
    pub fn connection_properties(&self, tap: TapPlace) -> Vec<ConnectionProperties> {
        let row = |(index, class): (usize, &FlowClassConfig)| {
            let sender = if data_ends(class)[SERVER] { SERVER } else { CLIENT };
            let rtt = unloaded_rtt(self, index);
            let [to_tap, from_tap] = times_around_headline(self, class, sender);
            let (forward, back) = match tap {
                TapPlace::Sender => (0, 0),
                TapPlace::BottleneckIn => (to_tap[0], from_tap[0]),
                TapPlace::BottleneckOut => (to_tap[1], from_tap[1]),
                TapPlace::Receiver => {
                    let way = &class.ways_from(other_end(sender))[0];
                    let rest = if sender == SERVER { class.back_delay } else { class.delay };
                    let back = self.time_over(class, way) + rest;
                    (rtt - back, back)
                }
            };
            let tcp = class.tcp.as_ref().and_then(FlowTcp::modern);
            let has_handshake = match (&class.tcp, tcp) {
                (_, Some(tcp)) => tcp.handshake != HandshakeKind::None,
                (tcp, None) => tcp.is_none(),
            };
            ConnectionProperties {
                packet_bytes: class.packet_bytes,
                packets: class.tcp.as_ref().map_or(u32::MAX, max_window),
                sack: tcp.is_some_and(|tcp| tcp.stack.detection.uses_sack()),
                ecn: tcp.is_some_and(|tcp| tcp.stack.ecn),
                accurate_ecn: tcp.is_some_and(|tcp| tcp.stack.accurate_ecn),
                added: (!has_handshake).then_some(UnloadedHandshakeTimes { rtt, forward, back }),
            }
        };
        self.classes.iter().enumerate().map(row).collect()
    }
}

/// Maximum receiver window in packets; `u32::MAX` if it grows.
fn max_window(tcp: &FlowTcp) -> u32 {
    let tcp = match tcp {
        FlowTcp::Modern(tcp) => tcp,
        FlowTcp::Packets(rules) => return rules.receiver_window,
    };
    let receiving = &tcp.stack.receiving;
    if let Some(memory) = receiving.memory {
        return (memory.max_window() / u64::from(tcp.stack.mss)).try_into().unwrap_or(u32::MAX);
    }
    let packets = receiving.buffer / u64::from(tcp.stack.mss);
    if receiving.window_growth > 0 { u32::MAX } else { packets.try_into().unwrap_or(u32::MAX) }
}

impl Wire {
    /// Reports a packet that an end sends now.
    #[inline(never)]
    pub(super) fn report_sent(&mut self, index: u32, end: usize) {
        let parcel = *self.parcels.get(index);
        let Some(taps) = &self.taps else { return };
        let tap = taps.classes[parcel.of.class()].tap_at(end);
        self.pass_to_captures(tap, self.now, &parcel, false);
    }

    /// Reports a packet that its host receives now.
    #[inline(never)]
    pub(super) fn report_delivered(&mut self, index: u32, ecn: Ecn) {
        let parcel = *self.parcels.get(index);
        let Some(taps) = &self.taps else { return };
        let (now, of_class) = (self.now, taps.classes[parcel.of.class()]);
        let tap = of_class.tap_at(usize::from(parcel.to));
        let marked = ecn == Ecn::Ce;
        if let (TapPlace::Sender, Some([from_in, from_out])) = (tap, of_class.to_sender) {
            let at = |time| now.saturating_sub(time);
            self.pass_to_captures(TapPlace::BottleneckIn, at(from_in), &parcel, marked);
            self.pass_to_captures(TapPlace::BottleneckOut, at(from_out), &parcel, marked);
        }
        self.pass_to_captures(tap, now, &parcel, marked);
    }

    /// Reports a packet that passes the headline link.
    #[inline(never)]
    pub(super) fn report_at_headline(
        &mut self,
        tap: TapPlace,
        at: Nanos,
        index: u32,
        marked: bool,
    ) {
        let parcel = *self.parcels.get(index);
        self.pass_to_captures(tap, at, &parcel, marked);
    }

    fn pass_to_captures(&mut self, tap: TapPlace, at: Nanos, parcel: &Parcel, marked: bool) {
        let Some(taps) = &self.taps else { return };
        if parcel.content != ParcelContent::Segment {
            return;
        }
        // In captures, packets of the server are data, and those of the client acknowledgements.
        let kind =
            if usize::from(parcel.to) == CLIENT { PacketKind::Data } else { PacketKind::Ack };
        let class = parcel.of.class();
        let counts_packets = taps.classes[class].counts_packets;
        let number = match (parcel.number, &parcel.segment) {
            (_, segment) if segment.flags.syn => 0,
            (0, segment) if counts_packets => segment.ack as u32,
            (number, _) => number.max(1),
        };
        let packet = Packet { source: parcel.flow, connection: parcel.connection, number, kind };
        let shown = if counts_packets {
            CapturedHeader::of_serial(parcel.serial)
        } else {
            let codepoint = if marked { Ecn::Ce } else { parcel.segment.ecn };
            CapturedHeader::new(&parcel.segment, codepoint as u8, parcel.serial)
        };
        let reported_until = self.now.saturating_sub(taps.max_delay);
        self.probes.pass_to_captures(tap, class, at, &packet, shown, reported_until);
    }
}
