//! Two ends on a path with a constant delay.

use super::super::rules::QuicRules;
use super::*;
use crate::modern::{Preset, Stack};
use std::collections::VecDeque;
use tcpcast_link::time::{MILLISECOND, NEVER};

const ONE_WAY: Nanos = 30 * MILLISECOND;
const MSS: u32 = 1165;

/// A datagram on its way.
struct InFlight {
    arrives: Nanos,
    to: usize,
    datagram: Datagram,
}

/// A sent datagram as tests see it.
#[derive(Clone, Debug)]
struct SentDatagram {
    at: Nanos,
    from: usize,
    datagram: Datagram,
    kind: PacketKind,
}

#[derive(Default)]
struct Path {
    now: Nanos,
    from: usize,
    queue: VecDeque<InFlight>,
    sent: Vec<SentDatagram>,
    events: Vec<TcpEvent>,
    /// Datagrams, by their place among those sent by an end, that the path loses.
    loses: Vec<(usize, usize)>,
}

impl TcpProbe for Path {
    fn on_tcp_event(&mut self, _now: Nanos, event: TcpEvent) {
        self.events.push(event);
    }
}

impl DatagramSink for Path {
    fn send_datagram(&mut self, datagram: &Datagram, _number: u32, kind: PacketKind) {
        let (at, from, datagram) = (self.now, self.from, datagram.clone());
        let place = self.sent.iter().filter(|sent| sent.from == from).count();
        if !self.loses.contains(&(from, place)) {
            let datagram = datagram.clone();
            self.queue.push_back(InFlight { arrives: at + ONE_WAY, to: 1 - from, datagram });
        }
        self.sent.push(SentDatagram { at, from, datagram, kind });
    }
}

struct Pair {
    tcp: ModernTcpConfig,
    ends: [QuicEndpoint; 2],
    path: Path,
    opened: [Option<Nanos>; 2],
    /// Bytes that the server writes when its session is open.
    unwritten: u64,
}

const SERVER: usize = 0;
const CLIENT: usize = 1;

impl Pair {
    fn new(handshake: HandshakeKind, bytes: u64, rules: QuicRules) -> Self {
        Self::with_certificate(handshake, bytes, rules, 2000)
    }

    fn with_certificate(
        handshake: HandshakeKind,
        bytes: u64,
        rules: QuicRules,
        certificate: u32,
    ) -> Self {
        let preset = Preset::LinuxReno.stack();
        let stack = Stack { mss: MSS, certificate, quic: Some(rules), ..preset };
        let tcp = ModernTcpConfig { stack, handshake, rtt: 2 * ONE_WAY, closes: false };
        let ends = [EndpointRole::Server, EndpointRole::Client]
            .map(|role| QuicEndpoint::start(0, role, 1, &tcp, &rules));
        let mut pair =
            Self { tcp, ends, path: Path::default(), opened: [None; 2], unwritten: bytes };
        if handshake == HandshakeKind::None {
            pair.write();
        }
        pair
    }

    fn write(&mut self) {
        let bytes = std::mem::take(&mut self.unwritten);
        self.ends[SERVER].write(bytes, &self.tcp);
    }

    fn transmit(&mut self, end: usize) {
        self.path.from = end;
        self.ends[end].transmit(self.path.now, &mut self.path);
    }

    fn deadline(&self, end: usize) -> Nanos {
        let end = &self.ends[end];
        end.sender_deadline().min(end.ack_deadline()).min(end.next_paced_time())
    }

    fn run(&mut self) {
        self.transmit(SERVER);
        self.transmit(CLIENT);
        for _ in 0..100_000 {
            let arrival = self.path.queue.front().map_or(NEVER, |packet| packet.arrives);
            let timer = [SERVER, CLIENT].map(|end| self.deadline(end));
            let next = arrival.min(timer[0]).min(timer[1]);
            if next >= NEVER {
                return;
            }
            self.path.now = next;
            if arrival == next {
                let InFlight { to, datagram, .. } = self.path.queue.pop_front().unwrap();
                let path = &mut self.path;
                let outcome = self.ends[to].on_datagram(next, &datagram, false, &self.tcp, path);
                if outcome.opened {
                    self.opened[to] = Some(next);
                    if to == SERVER {
                        self.write();
                    }
                }
                self.transmit(to);
                continue;
            }
            let end = usize::from(timer[CLIENT] == next);
            self.ends[end].on_timer(next, &mut self.path);
            self.transmit(end);
        }
        panic!("the connection does not end");
    }

    fn sent_by(&self, end: usize) -> Vec<&SentDatagram> {
        self.path.sent.iter().filter(|sent| sent.from == end).collect()
    }

    fn count(&self, end: usize, kind: PacketKind) -> usize {
        self.sent_by(end).iter().filter(|sent| sent.kind == kind).count()
    }
}

#[test]
fn transfer_without_losses_sends_each_packet_once_and_an_ack_for_two() {
    let bytes = 40 * u64::from(MSS);
    let mut pair = Pair::new(HandshakeKind::None, bytes, QuicRules::RFC);
    pair.run();
    assert!(pair.ends[SERVER].is_finished());
    assert_eq!(pair.ends[CLIENT].received_bytes(), bytes);
    assert_eq!(pair.count(SERVER, PacketKind::Data), 40);
    assert_eq!(pair.count(SERVER, PacketKind::Retransmission), 0);
    assert_eq!(pair.count(CLIENT, PacketKind::Ack), 20);
    assert_eq!(pair.ends[SERVER].acked_packets(), 40);
    // Slow start from 10 packets: 10, 20 and 10 packets.
    assert_eq!(pair.path.now / (2 * ONE_WAY), 3);
    let full = pair.sent_by(SERVER)[0].datagram.payload;
    assert_eq!(full, 1200);
}

#[test]
fn handshakes_take_one_round_trip_and_resumption_with_0_rtt_none() {
    let opened = |kind, certificate| {
        let mut pair = Pair::with_certificate(kind, 1000, QuicRules::RFC, certificate);
        pair.run();
        assert!(pair.ends[SERVER].is_finished(), "{kind:?}");
        // Each datagram with an Initial packet of the client has at least 1200 bytes.
        for sent in pair.sent_by(CLIENT) {
            let is_initial = sent.datagram.first.space == super::super::Space::Initial;
            assert!(!is_initial || sent.datagram.payload == 1200);
        }
        pair.opened[SERVER].map(|at| at / ONE_WAY)
    };
    assert_eq!(opened(HandshakeKind::Tls13, 2000), Some(3));
    assert_eq!(opened(HandshakeKind::Tls13Resumption, 2000), Some(3));
    assert_eq!(opened(HandshakeKind::Tls13ZeroRtt, 2000), Some(1));
    // A flight of more than three datagrams waits until the client's address is validated.
    assert_eq!(opened(HandshakeKind::Tls13, 5000), Some(5));
}

#[test]
fn rfc_9000_8_1_server_sends_at_most_three_times_the_received_bytes() {
    let mut pair = Pair::with_certificate(HandshakeKind::Tls13, 1000, QuicRules::RFC, 9000);
    pair.run();
    let before: u32 = pair
        .sent_by(SERVER)
        .iter()
        .take_while(|sent| sent.at == ONE_WAY)
        .map(|sent| sent.datagram.payload)
        .sum();
    assert!(before > 3 * 1100 && before <= 3 * 1200, "{before}");
    assert!(pair.ends[SERVER].is_finished());
}

#[test]
fn rfc_9002_lost_packet_is_sent_again_after_the_packet_threshold() {
    let mut pair = Pair::new(HandshakeKind::None, 10 * u64::from(MSS), QuicRules::RFC);
    pair.path.loses = vec![(SERVER, 3)];
    // Packets 4 to 7 are acknowledged at once, because a packet is missing.
    pair.run();
    assert!(pair.ends[SERVER].is_finished());
    assert_eq!(pair.count(SERVER, PacketKind::Retransmission), 1);
    let again = pair.path.sent.iter().find(|sent| sent.kind == PacketKind::Retransmission);
    assert_eq!(again.map(|sent| sent.at / ONE_WAY), Some(2));
    let reduced: Vec<_> = pair
        .path
        .events
        .iter()
        .filter(|event| matches!(event, TcpEvent::FastRetransmit { .. }))
        .collect();
    assert_eq!(reduced.len(), 1);
    assert!(pair.path.events.contains(&TcpEvent::Recovered { burst: 0 }));
}

#[test]
fn rfc_9002_6_2_lost_tail_is_repaired_by_a_probe() {
    // The probe timeout is the sum of 60 ms, 4 times the variation (less than 30 ms), and 25 ms. If
    // the probe is a ping, its acknowledgement shows the loss one round trip later.
    let mut ends = Vec::new();
    for probes_carry_data in [true, false] {
        let rules = QuicRules { probes_carry_data, ..QuicRules::RFC };
        let mut pair = Pair::new(HandshakeKind::None, 10 * u64::from(MSS), rules);
        pair.path.loses = vec![(SERVER, 9)];
        pair.run();
        assert!(pair.ends[SERVER].is_finished());
        let probes: Vec<_> = pair
            .path
            .events
            .iter()
            .filter(|event| matches!(event, TcpEvent::TailLossProbe { .. }))
            .collect();
        assert_eq!(probes.len(), 1, "{probes_carry_data}");
        assert_eq!(pair.ends[CLIENT].received_bytes(), 10 * u64::from(MSS));
        let last = pair.sent_by(SERVER).iter().map(|sent| sent.at).max().unwrap();
        ends.push(last / MILLISECOND);
    }
    assert!((60 + 25..60 + 25 + 120).contains(&ends[0]), "{ends:?}");
    assert_eq!(ends[1], ends[0] + 60);
}

#[test]
fn lost_packets_of_a_handshake_are_sent_again() {
    for lost in 0..8 {
        for from in [SERVER, CLIENT] {
            let mut pair = Pair::new(HandshakeKind::Tls13, 20_000, QuicRules::RFC);
            pair.path.loses = vec![(from, lost)];
            pair.run();
            assert!(pair.ends[SERVER].is_finished(), "{from} {lost}");
            assert_eq!(pair.ends[CLIENT].received_bytes(), 20_000);
        }
    }
}

#[test]
fn flow_control_limits_unread_data_and_grows_as_the_rules_say() {
    let bytes = 400 * u64::from(MSS);
    let rules = QuicRules { window: 20_000, ..QuicRules::RFC };
    let mut sliding = Pair::new(HandshakeKind::None, bytes, rules);
    sliding.run();
    assert!(sliding.ends[SERVER].is_finished());
    let mut doubling =
        Pair::new(HandshakeKind::None, bytes, QuicRules { window_doubles: true, ..rules });
    doubling.run();
    let updates = |pair: &Pair| {
        let sent = pair.sent_by(CLIENT);
        sent.iter().filter(|sent| sent.datagram.first.max_data.is_some()).count()
    };
    // A sliding window is announced in steps of an eighth of the window, at most once per packet.
    assert!(updates(&sliding) > 100, "{}", updates(&sliding));
    assert_eq!(updates(&doubling), 6, "20,000 to 1,280,000");
    assert!(doubling.path.now < sliding.path.now);
}

#[test]
fn pacing_spreads_the_window_over_the_round_trip() {
    let mut pair = Pair::new(HandshakeKind::None, 100 * u64::from(MSS), QuicRules::RFC);
    pair.run();
    let times: Vec<Nanos> = pair.sent_by(SERVER).iter().map(|sent| sent.at).collect();
    let burst = times.iter().filter(|at| **at == 0).count();
    assert_eq!(burst, 10);
    // After the first round trip, the pacer sends 1.25 windows per round-trip time.
    let mut largest = 0;
    for at in &times[10..] {
        largest = largest.max(times[10..].iter().filter(|other| *other == at).count());
    }
    assert!(largest <= 10, "{largest}");
    let unpaced = QuicRules { pacing_percent: 0, ..QuicRules::RFC };
    let mut unpaced = Pair::new(HandshakeKind::None, 100 * u64::from(MSS), unpaced);
    unpaced.run();
    assert!(unpaced.path.now <= pair.path.now);
}

#[test]
fn reduction_is_undone_if_few_packets_were_lost_outside_slow_start() {
    // Windows before each reduction, and the last one.
    let windows = |undo_percent, loses: &[usize]| {
        let rules = QuicRules { undo_percent, ..QuicRules::RFC };
        let mut pair = Pair::new(HandshakeKind::None, 300 * u64::from(MSS), rules);
        pair.path.loses = loses.iter().map(|place| (SERVER, *place)).collect();
        pair.run();
        assert!(pair.ends[SERVER].is_finished());
        let reduced = |event: &TcpEvent| match event {
            TcpEvent::FastRetransmit { window } => Some(*window),
            _ => None,
        };
        let mut windows: Vec<u32> = pair.path.events.iter().filter_map(reduced).collect();
        windows.push(pair.ends[SERVER].connection().window().cwnd);
        windows
    };
    assert_eq!(windows(0, &[20]), windows(20, &[20]), "slow start");
    let (kept, undone) = (windows(0, &[20, 150]), windows(20, &[20, 150]));
    assert_eq!(kept[..2], undone[..2]);
    assert!(kept[2] < kept[1] && undone[2] >= undone[1], "{kept:?} {undone:?}");
    // At least a fifth of the window is lost.
    let many: Vec<usize> = std::iter::once(20).chain(150..156).collect();
    assert_eq!(windows(0, &many), windows(20, &many));
}
