use super::super::answers::PacketReceiver;
use super::super::carried::AckHeader;
use super::super::stack::{MILLISECOND, Preset, Stack};
use super::*;

struct Nobody;

impl TcpProbe for Nobody {
    fn tcp(&mut self, _now: Nanos, _event: TcpEvent) {}
}

const RTT: Nanos = 100 * MILLISECOND;

fn todays() -> ModernTcp {
    let stack = Stack { mss: 1448, ..Preset::LinuxReno.stack() };
    ModernTcp { stack, handshake: Handshake::None, rtt: RTT, syn_bytes: 52, closes: true }
}

fn started(file: FileSize, tcp: &ModernTcp) -> PacketSender {
    PacketSender::start(0, file, 1, tcp, &mut Nobody)
}

fn burst(sender: &mut PacketSender, now: Nanos, tcp: &ModernTcp) -> Vec<PacketOut> {
    std::iter::from_fn(|| sender.poll_transmit(now, tcp, &mut Nobody)).collect()
}

/// A packet arrives at `RTT / 2`: whether it brings data, and the answer.
fn arrive(
    receiver: &mut PacketReceiver,
    packet: &PacketOut,
    tcp: &ModernTcp,
) -> (bool, Option<(u32, AckHeader)>) {
    let mut told = AckHeader::NONE;
    let (distinct, ack) = receiver.on_data(RTT / 2, packet.number, &packet.header, tcp, &mut told);
    (distinct, ack.map(|number| (number, told)))
}

/// Numbers, and whether FIN is with the packet.
fn numbers(sent: &[PacketOut]) -> Vec<(u32, bool)> {
    sent.iter().map(|packet| (packet.number, packet.header.is_fin())).collect()
}

#[test]
fn linux_s_tcp_send_fin_takes_the_last_packet_that_is_not_sent() {
    let tcp = todays();
    let mut sender = started(FileSize::full(12), &tcp);
    let mut receiver = PacketReceiver::start(&tcp);
    let first = burst(&mut sender, 0, &tcp);
    assert!(numbers(&first).iter().all(|(_, fin)| !fin));
    assert_eq!(first.len(), 10);
    let (distinct, ack) = arrive(&mut receiver, &first[0], &tcp);
    let (number, header) = ack.unwrap();
    assert!(distinct && number == 2);
    sender.on_ack(RTT, &header, &tcp, &mut Nobody);
    assert_eq!(numbers(&burst(&mut sender, RTT, &tcp)), [(11, false), (12, true)]);
}

#[test]
fn fin_is_alone_where_all_data_were_sent_as_they_were_written() {
    let tcp = todays();
    let mut sender = started(FileSize::full(2), &tcp);
    let mut receiver = PacketReceiver::start(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    assert_eq!(numbers(&sent), [(1, false), (2, false), (0, true)]);
    assert_eq!(sent[2].short, Some(52), "headers and timestamps");
    assert_eq!(sender.in_flight(), 2, "packets with data");
    let mut last = None;
    for packet in &sent {
        let (distinct, ack) = arrive(&mut receiver, packet, &tcp);
        assert_eq!(distinct, packet.number > 0);
        last = ack;
    }
    sender.on_ack(RTT, &last.unwrap().1, &tcp, &mut Nobody);
    assert!(sender.finished() && sender.acked() == 2);
}

#[test]
fn linux_s_tcp_init_wl_lets_the_first_duplicate_of_a_connection_count() {
    // Of three packets and FIN the first is lost: without SACK three duplicates tell of it, the first
    // of which says nothing new of the window that the handshake told.
    let stack = Stack { mss: 1448, ..Preset::LinuxRenoClassic.stack() };
    let tcp = ModernTcp { stack, ..todays() };
    let mut sender = started(FileSize::full(3), &tcp);
    let mut receiver = PacketReceiver::start(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    assert_eq!(numbers(&sent), [(1, false), (2, false), (3, false), (0, true)]);
    let again: Vec<_> = sent[1..]
        .iter()
        .map(|packet| {
            let (_, ack) = arrive(&mut receiver, packet, &tcp);
            sender.on_ack(RTT, &ack.unwrap().1, &tcp, &mut Nobody);
            numbers(&burst(&mut sender, RTT, &tcp))
        })
        .collect();
    assert_eq!(again, [vec![], vec![], vec![(1, false)]]);
}

#[test]
fn persistent_connections_are_not_closed_behind_a_file() {
    let tcp = ModernTcp { closes: false, ..todays() };
    let mut sender = started(FileSize::full(2), &tcp);
    assert_eq!(numbers(&burst(&mut sender, 0, &tcp)), [(1, false), (2, false)]);
}

#[test]
fn a_finished_sender_waits_for_nothing() {
    let tcp = todays();
    let mut sender = started(FileSize::full(1), &tcp);
    let mut receiver = PacketReceiver::start(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    let (_, ack) = arrive(&mut receiver, &sent[0], &tcp);
    sender.on_ack(RTT, &ack.unwrap().1, &tcp, &mut Nobody);
    assert!(sender.finished(), "its FIN may be lost");
    assert_eq!((sender.deadline(), sender.pace_at()), (crate::clock::NEVER, crate::clock::NEVER));
    assert!(burst(&mut sender, RTT, &tcp).is_empty());
}

#[test]
fn rfc_8985_6_2_the_sack_of_fin_finds_a_lost_last_packet() {
    let tcp = todays();
    let mut sender = started(FileSize::full(1), &tcp);
    let mut receiver = PacketReceiver::start(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    let probe = sender.deadline();
    assert!(probe > 2 * RTT, "the probe of the tail comes after two round trips");
    let (distinct, ack) = arrive(&mut receiver, &sent[1], &tcp);
    let (number, header) = ack.unwrap();
    assert_eq!((distinct, number), (false, 1));
    sender.on_ack(RTT, &header, &tcp, &mut Nobody);
    assert!(burst(&mut sender, RTT, &tcp).is_empty(), "it may be late");
    let late = sender.deadline();
    assert!(late < RTT * 3 / 2, "{late}: a quarter of the smallest round-trip time");
    sender.on_timer(late, &tcp, &mut Nobody);
    let again = burst(&mut sender, late, &tcp);
    assert_eq!(numbers(&again), [(1, false)]);
    assert_eq!(again[0].kind, Kind::Retransmission);
}

#[test]
fn the_last_packet_is_as_long_as_what_is_left() {
    let tcp = todays();
    let mut sender = started(FileSize { packets: 3, lacking: 1000 }, &tcp);
    let mut receiver = PacketReceiver::start(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    let lengths: Vec<_> = sent.iter().map(|packet| packet.short).collect();
    assert_eq!(lengths, [None, None, Some(448 + 52), Some(52)]);
    let mut last = None;
    for packet in &sent {
        last = arrive(&mut receiver, packet, &tcp).1;
    }
    assert_eq!(receiver.receiver.next(), 1 + 2 * 1448 + 448 + 1, "and FIN");
    sender.on_ack(RTT, &last.unwrap().1, &tcp, &mut Nobody);
    assert!(sender.finished() && sender.acked() == 3);
}
