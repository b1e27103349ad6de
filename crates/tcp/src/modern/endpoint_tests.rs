//! Two ends, connected by a path that delays segments.

use super::super::presets::Preset;
use super::super::stack::Stack;
use super::*;
use std::collections::VecDeque;
use tcpcast_link::time::MILLISECOND;

struct NoProbe;

impl TcpProbe for NoProbe {
    fn on_tcp_event(&mut self, _now: Nanos, _event: TcpEvent) {}
}

/// The path of the segments that one end sends at one time.
struct Path<'a> {
    arrives: Nanos,
    to: usize,
    flying: &'a mut VecDeque<(Nanos, usize, Segment)>,
    sent: &'a mut Vec<(u32, PacketKind)>,
}

impl TcpProbe for Path<'_> {
    fn on_tcp_event(&mut self, _now: Nanos, _event: TcpEvent) {}
}

impl SegmentSink for Path<'_> {
    fn send_segment(&mut self, segment: &Segment, number: u32, kind: PacketKind) {
        self.sent.push((number, kind));
        self.flying.push_back((self.arrives, self.to, *segment));
    }
}

const DELAY: Nanos = 50 * MILLISECOND;
const SERVER: usize = 0;
const CLIENT: usize = 1;

fn modern_tcp(handshake: HandshakeKind) -> ModernTcpConfig {
    let stack = Stack { mss: 1448, ..Preset::LinuxCubic.stack() };
    ModernTcpConfig { stack, handshake, rtt: 2 * DELAY, closes: false }
}

/// A connection and the segments in flight, with time of arrival and receiving end.
struct Pair {
    tcp: ModernTcpConfig,
    ends: [Endpoint; 2],
    flying: VecDeque<(Nanos, usize, Segment)>,
    now: Nanos,
    /// Time at which each end could write, and bytes that it received.
    opened: [Option<Nanos>; 2],
    /// Number and kind of each packet of each end.
    sent: [Vec<(u32, PacketKind)>; 2],
}

impl Pair {
    fn new(handshake: HandshakeKind) -> Self {
        let mut pair = Self::unopened(modern_tcp(handshake));
        pair.transmit(CLIENT);
        pair
    }

    /// A connection whose client has not sent its SYN yet.
    fn unopened(tcp: ModernTcpConfig) -> Self {
        let ends = [EndpointRole::Server, EndpointRole::Client]
            .map(|role| Endpoint::start(0, role, 1, &tcp));
        let (flying, sent) = (VecDeque::new(), [vec![], vec![]]);
        Self { tcp, ends, flying, now: 0, opened: [None; 2], sent }
    }

    fn write(&mut self, end: usize, bytes: u64) {
        self.ends[end].write(self.now, bytes, &self.tcp, &mut NoProbe);
        self.transmit(end);
    }

    fn transmit(&mut self, end: usize) {
        let Self { now, tcp, ends, flying, sent, .. } = self;
        let sink = &mut Path { arrives: *now + DELAY, to: 1 - end, flying, sent: &mut sent[end] };
        ends[end].transmit(*now, tcp, &mut Segment::default(), sink);
    }

    /// Delivers all segments. `written`: bytes that each end writes when it is open.
    fn run(&mut self, written: [u64; 2]) {
        while let Some((now, end, segment)) = self.flying.pop_front() {
            self.now = now;
            let outcome = self.ends[end].on_segment(now, &segment, &self.tcp, &mut NoProbe);
            if outcome.opened {
                self.opened[end] = Some(now);
                if written[end] > 0 {
                    self.ends[end].write(now, written[end], &self.tcp, &mut NoProbe);
                }
            }
            self.transmit(end);
        }
    }

    fn received(&self) -> [u64; 2] {
        [SERVER, CLIENT].map(|end| self.ends[end].received_bytes(&self.tcp))
    }
}

#[test]
fn both_ends_send_data_at_the_same_time() {
    let mut pair = Pair::new(HandshakeKind::None);
    assert!(pair.flying.is_empty());
    pair.write(SERVER, 100_000);
    pair.write(CLIENT, 40_000);
    pair.run([0, 0]);
    assert_eq!(pair.received(), [40_000, 100_000]);
    assert!(pair.ends.iter().all(Endpoint::is_finished));
    assert_eq!(pair.ends.each_ref().map(Endpoint::acked_packets), [70, 28]);
    assert!(pair.sent.iter().flatten().all(|(_, kind)| *kind != PacketKind::Retransmission));
}

#[test]
fn rfc_8446_2_client_writes_after_the_servers_flight_and_the_server_half_a_round_later() {
    let handshakes = [
        (HandshakeKind::Tcp, 2),
        (HandshakeKind::Tls13, 4),
        (HandshakeKind::Tls13Resumption, 4),
        (HandshakeKind::Tls13ZeroRtt, 2),
        (HandshakeKind::Tls12, 6),
    ];
    for (handshake, delays) in handshakes {
        let mut pair = Pair::new(handshake);
        pair.run([5000, 20_000]);
        let expected = [Some((delays + 1) * DELAY), Some(delays * DELAY)];
        assert_eq!(pair.opened, expected, "{handshake:?}");
        assert_eq!(pair.received(), [20_000, 5000], "{handshake:?}");
        let flights: u64 = handshake.flight_bytes(3000).map(u64::from).sum();
        let packets = pair.sent[SERVER].iter().filter(|(number, _)| *number > 0).count() as u64;
        assert!(packets >= 4 + flights.div_ceil(1448), "flights are packets of the connection");
        assert_eq!(pair.ends[SERVER].acked_packets(), 4, "but do not count as data");
    }
}

/// A pair with TCP Fast Open.
fn with_cookie(handshake: HandshakeKind) -> Pair {
    let tcp = modern_tcp(handshake);
    let stack = Stack { fast_open: true, ..tcp.stack };
    Pair::unopened(ModernTcpConfig { stack, ..tcp })
}

#[test]
fn rfc_7413_first_message_of_tls_arrives_with_the_syn() {
    let handshakes =
        [(HandshakeKind::Tls13, 2), (HandshakeKind::Tls13Resumption, 2), (HandshakeKind::Tls12, 4)];
    for (handshake, delays) in handshakes {
        let mut pair = with_cookie(handshake);
        pair.transmit(CLIENT);
        pair.run([5000, 20_000]);
        let expected = [Some((delays + 1) * DELAY), Some(delays * DELAY)];
        assert_eq!(pair.opened, expected, "{handshake:?}");
        assert_eq!(pair.received(), [20_000, 5000], "{handshake:?}");
    }
}

#[test]
fn rfc_7413_data_of_the_client_arrives_with_the_syn() {
    // Up to 1420 bytes travel with the SYN, and the rest in packets of 1448.
    let cases = [
        (HandshakeKind::Tcp, 1420, 1),
        (HandshakeKind::Tcp, 1450, 2),
        (HandshakeKind::Tcp, 2896, 3),
        (HandshakeKind::Tls13ZeroRtt, 3000, 3),
    ];
    for (handshake, bytes, packets) in cases {
        let mut pair = with_cookie(handshake);
        assert!(!pair.ends[CLIENT].is_opening(), "{handshake:?}");
        pair.write(CLIENT, bytes);
        pair.ends[CLIENT].close_after_burst();
        assert_eq!(pair.sent[CLIENT], [(1, PacketKind::Data)]);
        assert_eq!(pair.ends[CLIENT].packets_in_flight(), 1);
        pair.run([5000, 0]);
        assert_eq!(pair.opened[SERVER], Some(DELAY), "{handshake:?}");
        // FIN occupies a sequence number.
        assert_eq!(pair.received(), [bytes + 1, 5000], "{handshake:?}");
        assert_eq!(pair.ends[CLIENT].acked_packets(), packets, "{bytes} bytes");
        assert!(pair.ends.iter().all(Endpoint::is_finished));
        let repeats = |(_, kind): &&(u32, PacketKind)| *kind == PacketKind::Retransmission;
        assert_eq!(pair.sent.iter().flatten().filter(repeats).count(), 0);
    }
}

#[test]
fn rfc_7413_data_of_a_lost_syn_follows_the_next_one() {
    let mut pair = with_cookie(HandshakeKind::Tcp);
    pair.write(CLIENT, 1000);
    pair.flying.clear();
    pair.now = pair.ends[CLIENT].connection().sender_deadline();
    let now = pair.now;
    pair.ends[CLIENT].on_timer(now, &mut NoProbe);
    pair.transmit(CLIENT);
    pair.run([5000, 0]);
    assert_eq!(pair.opened[SERVER], Some(now + 3 * DELAY));
    assert_eq!(pair.received(), [1000, 5000]);
    let expected = [(1, PacketKind::Data), (0, PacketKind::Data), (1, PacketKind::Retransmission)];
    assert_eq!(pair.sent[CLIENT][..3], expected);
    assert_eq!(pair.ends[CLIENT].acked_packets(), 1);
}

#[test]
fn restarted_connection_continues_the_count_of_acknowledged_packets() {
    let mut pair = Pair::new(HandshakeKind::None);
    pair.write(SERVER, 14_480);
    pair.run([0, 0]);
    let (now, tcp) = (pair.now, pair.tcp);
    pair.ends.iter_mut().for_each(|end| end.restart(now, 2, &tcp));
    pair.write(SERVER, 1448);
    pair.run([0, 0]);
    assert_eq!(pair.received(), [0, 1448]);
    assert_eq!(
        (pair.ends[SERVER].acked_packets(), pair.ends[CLIENT].packets_in_order(&tcp)),
        (11, 1)
    );
    assert_eq!(pair.sent[SERVER].last(), Some(&(1, PacketKind::Data)));
}

#[test]
fn acknowledgement_that_precedes_data_carries_no_data() {
    let mut pair = Pair::new(HandshakeKind::None);
    pair.write(SERVER, 14_480);
    let packets: Vec<Segment> = pair.flying.drain(..).map(|(_, _, segment)| segment).collect();
    let acked = packets[0].ack;
    pair.now += DELAY;
    // The data of the client answers the first packet, so that it needs no acknowledgement of its
    // own. Acknowledgements of the packets 5 and 7 wait for each other, until a third gap opens.
    for (packet, acked_packets) in [(0, 0), (2, 0), (3, 0), (4, 0), (5, 0), (7, 0), (9, 2)] {
        pair.flying.clear();
        let mut segment = packets[packet];
        segment.ack = acked + acked_packets * 1448;
        pair.ends[CLIENT].on_segment(pair.now, &segment, &pair.tcp, &mut NoProbe);
        if packet == 0 {
            pair.write(CLIENT, 100_000);
        }
        pair.transmit(CLIENT);
    }
    let sent: Vec<_> = pair.flying.iter().map(|(_, _, sent)| (sent.seq, sent.len)).collect();
    let next = acked + 10 * 1448;
    let data = (0..4).map(|packet| (next + packet * 1448, 1448));
    assert_eq!(sent, [(next, 0)].into_iter().chain(data).collect::<Vec<_>>());
}
