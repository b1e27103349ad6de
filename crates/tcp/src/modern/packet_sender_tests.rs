use super::super::packet_header::AckHeader;
use super::super::packet_receiver::PacketReceiver;
use super::super::presets::Preset;
use super::super::stack::Stack;
use super::*;
use tcpcast_link::time::MILLISECOND;

struct NoProbe;

impl TcpProbe for NoProbe {
    fn on_tcp_event(&mut self, _now: Nanos, _event: TcpEvent) {}
}

const RTT: Nanos = 100 * MILLISECOND;

fn modern_tcp() -> ModernTcpConfig {
    let stack = Stack { mss: 1448, ..Preset::LinuxReno.stack() };
    ModernTcpConfig { stack, handshake: HandshakeKind::None, rtt: RTT, syn_bytes: 52, closes: true }
}

fn started(file: FileSize, tcp: &ModernTcpConfig) -> PacketSender {
    PacketSender::start_connection(0, file, 1, tcp, &mut NoProbe)
}

fn burst(sender: &mut PacketSender, now: Nanos, tcp: &ModernTcpConfig) -> Vec<OutgoingPacket> {
    std::iter::from_fn(|| sender.poll_transmit(now, tcp, &mut NoProbe)).collect()
}

/// Delivers a packet at `RTT / 2`; returns whether its data is new, and the acknowledgement.
fn arrive(
    receiver: &mut PacketReceiver,
    packet: &OutgoingPacket,
    tcp: &ModernTcpConfig,
) -> (bool, Option<(u32, AckHeader)>) {
    let mut ack_header = AckHeader::EMPTY;
    let (distinct, ack) =
        receiver.on_data(RTT / 2, packet.number, &packet.header, tcp, &mut ack_header);
    (distinct, ack.map(|number| (number, ack_header)))
}

/// Packet numbers and FIN flags.
fn numbers(sent: &[OutgoingPacket]) -> Vec<(u32, bool)> {
    sent.iter().map(|packet| (packet.number, packet.header.is_fin())).collect()
}

#[test]
fn linux_tcp_send_fin_uses_last_unsent_packet() {
    let tcp = modern_tcp();
    let mut sender = started(FileSize::of_full_packets(12), &tcp);
    let mut receiver = PacketReceiver::new_connection(&tcp);
    let first = burst(&mut sender, 0, &tcp);
    assert!(numbers(&first).iter().all(|(_, fin)| !fin));
    assert_eq!(first.len(), 10);
    let (distinct, ack) = arrive(&mut receiver, &first[0], &tcp);
    let (number, header) = ack.unwrap();
    assert!(distinct && number == 2);
    sender.on_ack(RTT, &header, &tcp, &mut NoProbe);
    assert_eq!(numbers(&burst(&mut sender, RTT, &tcp)), [(11, false), (12, true)]);
}

#[test]
fn fin_is_separate_if_all_data_was_already_sent() {
    let tcp = modern_tcp();
    let mut sender = started(FileSize::of_full_packets(2), &tcp);
    let mut receiver = PacketReceiver::new_connection(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    assert_eq!(numbers(&sent), [(1, false), (2, false), (0, true)]);
    assert_eq!(sent[2].short, Some(52), "headers and timestamps");
    assert_eq!(sender.packets_in_flight(), 2, "only packets with data count");
    let mut last = None;
    for packet in &sent {
        let (distinct, ack) = arrive(&mut receiver, packet, &tcp);
        assert_eq!(distinct, packet.number > 0);
        last = ack;
    }
    sender.on_ack(RTT, &last.unwrap().1, &tcp, &mut NoProbe);
    assert!(sender.is_finished() && sender.acked_packets() == 2);
}

#[test]
fn linux_tcp_init_wl_counts_first_duplicate_of_connection() {
    // The first of three packets and FIN is lost. Without SACK, three duplicates indicate the loss;
    // the first of them repeats the window of the handshake.
    let stack = Stack { mss: 1448, ..Preset::LinuxRenoClassic.stack() };
    let tcp = ModernTcpConfig { stack, ..modern_tcp() };
    let mut sender = started(FileSize::of_full_packets(3), &tcp);
    let mut receiver = PacketReceiver::new_connection(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    assert_eq!(numbers(&sent), [(1, false), (2, false), (3, false), (0, true)]);
    let retransmitted: Vec<_> = sent[1..]
        .iter()
        .map(|packet| {
            let (_, ack) = arrive(&mut receiver, packet, &tcp);
            sender.on_ack(RTT, &ack.unwrap().1, &tcp, &mut NoProbe);
            numbers(&burst(&mut sender, RTT, &tcp))
        })
        .collect();
    assert_eq!(retransmitted, [vec![], vec![], vec![(1, false)]]);
}

#[test]
fn persistent_connection_stays_open_after_file() {
    let tcp = ModernTcpConfig { closes: false, ..modern_tcp() };
    let mut sender = started(FileSize::of_full_packets(2), &tcp);
    assert_eq!(numbers(&burst(&mut sender, 0, &tcp)), [(1, false), (2, false)]);
}

#[test]
fn finished_sender_has_no_timer() {
    let tcp = modern_tcp();
    let mut sender = started(FileSize::of_full_packets(1), &tcp);
    let mut receiver = PacketReceiver::new_connection(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    let (_, ack) = arrive(&mut receiver, &sent[0], &tcp);
    sender.on_ack(RTT, &ack.unwrap().1, &tcp, &mut NoProbe);
    assert!(sender.is_finished(), "even if its FIN is lost");
    assert_eq!(
        (sender.timer_deadline(), sender.next_paced_time()),
        (tcpcast_link::time::NEVER, tcpcast_link::time::NEVER)
    );
    assert!(burst(&mut sender, RTT, &tcp).is_empty());
}

#[test]
fn rfc_8985_6_2_sack_of_fin_detects_lost_last_packet() {
    let tcp = modern_tcp();
    let mut sender = started(FileSize::of_full_packets(1), &tcp);
    let mut receiver = PacketReceiver::new_connection(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    let probe = sender.timer_deadline();
    assert!(probe > 2 * RTT, "the tail loss probe is due after two round trips");
    let (distinct, ack) = arrive(&mut receiver, &sent[1], &tcp);
    let (number, header) = ack.unwrap();
    assert_eq!((distinct, number), (false, 1));
    sender.on_ack(RTT, &header, &tcp, &mut NoProbe);
    assert!(burst(&mut sender, RTT, &tcp).is_empty(), "the packet may be late");
    let late = sender.timer_deadline();
    assert!(late < RTT * 3 / 2, "{late}: after a quarter of the minimum round-trip time");
    sender.on_timer(late, &tcp, &mut NoProbe);
    let sent = burst(&mut sender, late, &tcp);
    assert_eq!(numbers(&sent), [(1, false)]);
    assert_eq!(sent[0].kind, PacketKind::Retransmission);
}

#[test]
fn last_packet_has_remaining_length() {
    let tcp = modern_tcp();
    let mut sender = started(FileSize { packets: 3, lacking: 1000 }, &tcp);
    let mut receiver = PacketReceiver::new_connection(&tcp);
    let sent = burst(&mut sender, 0, &tcp);
    let lengths: Vec<_> = sent.iter().map(|packet| packet.short).collect();
    assert_eq!(lengths, [None, None, Some(448 + 52), Some(52)]);
    let mut last = None;
    for packet in &sent {
        last = arrive(&mut receiver, packet, &tcp).1;
    }
    assert_eq!(receiver.receiver.next_expected(), 1 + 2 * 1448 + 448 + 1, "including FIN");
    sender.on_ack(RTT, &last.unwrap().1, &tcp, &mut NoProbe);
    assert!(sender.is_finished() && sender.acked_packets() == 3);
}
