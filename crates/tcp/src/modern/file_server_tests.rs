use super::super::ecn_codepoint::EcnCodepoint;
use super::super::file_client::FileClient;
use super::super::presets::Preset;
use super::super::stack::Stack;
use super::*;
use tcpcast_link::time::{MILLISECOND, SECOND};

struct NoProbe;

impl TcpProbe for NoProbe {
    fn on_tcp_event(&mut self, _now: Nanos, _event: TcpEvent) {}
}

const RTT: Nanos = 100 * MILLISECOND;

fn modern_tcp() -> ModernTcpConfig {
    let stack = Stack { mss: 1448, ..Preset::LinuxReno.stack() };
    ModernTcpConfig { stack, handshake: HandshakeKind::None, rtt: RTT, syn_bytes: 52, closes: true }
}

fn started(file: FileSize, tcp: &ModernTcpConfig) -> FileServer {
    FileServer::start_connection(0, file, 1, tcp, &mut NoProbe)
}

fn burst(server: &mut FileServer, now: Nanos, tcp: &ModernTcpConfig) -> Vec<Sent> {
    let mut sent = vec![];
    server.transmit(now, tcp, &mut NoProbe, |packet| {
        let OutgoingPacket { number, kind, short, segment } = *packet;
        sent.push(Sent { number, kind, short, segment: *segment });
    });
    sent
}

/// Delivers a packet at `RTT / 2`; returns whether its data is new, and the acknowledgement.
fn arrive(
    client: &mut FileClient,
    packet: &Sent,
    tcp: &ModernTcpConfig,
) -> (bool, Option<(u32, Segment)>) {
    let mut answer = Segment::default();
    let (distinct, ack) = client.on_segment(RTT / 2, &packet.segment, tcp, &mut answer);
    (distinct, ack.map(|number| (number, answer)))
}

/// A packet as sent.
struct Sent {
    number: u32,
    kind: PacketKind,
    short: Option<u32>,
    segment: Segment,
}

/// Packet numbers and FIN flags.
fn numbers(sent: &[Sent]) -> Vec<(u32, bool)> {
    sent.iter().map(|packet| (packet.number, packet.segment.flags.fin)).collect()
}

#[test]
fn linux_tcp_send_fin_uses_last_unsent_packet() {
    let tcp = modern_tcp();
    let mut server = started(FileSize::of_full_packets(12), &tcp);
    let mut client = FileClient::new_connection(&tcp);
    let first = burst(&mut server, 0, &tcp);
    assert!(numbers(&first).iter().all(|(_, fin)| !fin));
    assert_eq!(first.len(), 10);
    let (distinct, ack) = arrive(&mut client, &first[0], &tcp);
    let (number, answer) = ack.unwrap();
    assert!(distinct && number == 2);
    server.on_segment(RTT, &answer, &tcp, &mut NoProbe);
    assert_eq!(numbers(&burst(&mut server, RTT, &tcp)), [(11, false), (12, true)]);
}

#[test]
fn fin_is_separate_if_all_data_was_already_sent() {
    let tcp = modern_tcp();
    let mut server = started(FileSize::of_full_packets(2), &tcp);
    let mut client = FileClient::new_connection(&tcp);
    let sent = burst(&mut server, 0, &tcp);
    assert_eq!(numbers(&sent), [(1, false), (2, false), (0, true)]);
    assert_eq!(sent[2].short, Some(52), "headers and timestamps");
    assert_eq!(server.packets_in_flight(), 2, "only packets with data count");
    let mut last = None;
    for packet in &sent {
        let (distinct, ack) = arrive(&mut client, packet, &tcp);
        assert_eq!(distinct, packet.number > 0);
        last = ack;
    }
    server.on_segment(RTT, &last.unwrap().1, &tcp, &mut NoProbe);
    assert!(server.is_finished() && server.acked_packets() == 2);
}

#[test]
fn linux_tcp_init_wl_counts_first_duplicate_of_connection() {
    // The first of three packets and FIN is lost. Without SACK, three duplicates indicate the loss;
    // the first of them repeats the window of the handshake.
    let stack = Stack { mss: 1448, ..Preset::LinuxRenoClassic.stack() };
    let tcp = ModernTcpConfig { stack, ..modern_tcp() };
    let mut server = started(FileSize::of_full_packets(3), &tcp);
    let mut client = FileClient::new_connection(&tcp);
    let sent = burst(&mut server, 0, &tcp);
    assert_eq!(numbers(&sent), [(1, false), (2, false), (3, false), (0, true)]);
    let retransmitted: Vec<_> = sent[1..]
        .iter()
        .map(|packet| {
            let (_, ack) = arrive(&mut client, packet, &tcp);
            server.on_segment(RTT, &ack.unwrap().1, &tcp, &mut NoProbe);
            numbers(&burst(&mut server, RTT, &tcp))
        })
        .collect();
    assert_eq!(retransmitted, [vec![], vec![], vec![(1, false)]]);
}

#[test]
fn persistent_connection_stays_open_after_file() {
    let tcp = ModernTcpConfig { closes: false, ..modern_tcp() };
    let mut server = started(FileSize::of_full_packets(2), &tcp);
    assert_eq!(numbers(&burst(&mut server, 0, &tcp)), [(1, false), (2, false)]);
}

#[test]
fn finished_sender_has_no_timer() {
    let tcp = modern_tcp();
    let mut server = started(FileSize::of_full_packets(1), &tcp);
    let mut client = FileClient::new_connection(&tcp);
    let sent = burst(&mut server, 0, &tcp);
    let (_, ack) = arrive(&mut client, &sent[0], &tcp);
    server.on_segment(RTT, &ack.unwrap().1, &tcp, &mut NoProbe);
    assert!(server.is_finished(), "even if its FIN is lost");
    assert_eq!(
        (server.connection.sender_deadline(), server.connection.sender().next_paced_time()),
        (tcpcast_link::time::NEVER, tcpcast_link::time::NEVER)
    );
    assert!(burst(&mut server, RTT, &tcp).is_empty());
}

#[test]
fn rfc_8985_6_2_sack_of_fin_detects_lost_last_packet() {
    let tcp = modern_tcp();
    let mut server = started(FileSize::of_full_packets(1), &tcp);
    let mut client = FileClient::new_connection(&tcp);
    let sent = burst(&mut server, 0, &tcp);
    let probe = server.connection.sender_deadline();
    assert!(probe > 2 * RTT, "the tail loss probe is due after two round trips");
    let (distinct, ack) = arrive(&mut client, &sent[1], &tcp);
    let (number, answer) = ack.unwrap();
    assert_eq!((distinct, number), (false, 1));
    server.on_segment(RTT, &answer, &tcp, &mut NoProbe);
    assert!(burst(&mut server, RTT, &tcp).is_empty(), "the packet may be late");
    let late = server.connection.sender_deadline();
    assert!(late < RTT * 3 / 2, "{late}: after a quarter of the minimum round-trip time");
    server.on_timer(late, &mut NoProbe);
    let sent = burst(&mut server, late, &tcp);
    assert_eq!(numbers(&sent), [(1, false)]);
    assert_eq!(sent[0].kind, PacketKind::Retransmission);
}

#[test]
fn last_packet_has_remaining_length() {
    let tcp = modern_tcp();
    let mut server = started(FileSize { packets: 3, lacking: 1000 }, &tcp);
    let mut client = FileClient::new_connection(&tcp);
    let sent = burst(&mut server, 0, &tcp);
    let lengths: Vec<_> = sent.iter().map(|packet| packet.short).collect();
    assert_eq!(lengths, [None, None, Some(448 + 52), Some(52)]);
    let mut last = None;
    for packet in &sent {
        last = arrive(&mut client, packet, &tcp).1;
    }
    assert_eq!(
        client.connection.receiver().next_expected(),
        1 + 2 * 1448 + 448 + 1,
        "including FIN"
    );
    server.on_segment(RTT, &last.unwrap().1, &tcp, &mut NoProbe);
    assert!(server.is_finished() && server.acked_packets() == 3);
}

#[test]
fn rfc_3168_6_1_1_1_retransmitted_syn_turns_ecn_off() {
    for retransmits in [false, true] {
        let stack = Stack { ecn: true, ..modern_tcp().stack };
        let tcp = ModernTcpConfig { stack, handshake: HandshakeKind::Tcp, ..modern_tcp() };
        let mut server = started(FileSize::of_full_packets(1), &tcp);
        let mut client = FileClient::new_connection(&tcp);
        client.connect(0, 1, &tcp);
        let (mut syn, mut ack) = (Segment::default(), Segment::default());
        client.on_timer(0, &tcp, &mut syn);
        if retransmits {
            client.on_timer(client.deadline(), &tcp, &mut syn);
        }
        assert!(syn.flags.syn);
        let now = 2 * SECOND;
        server.on_segment(now, &syn, &tcp, &mut NoProbe);
        let answer = burst(&mut server, now, &tcp);
        client.on_segment(now, &answer[0].segment, &tcp, &mut ack);
        server.on_segment(now, &ack, &tcp, &mut NoProbe);
        let data = burst(&mut server, now, &tcp);
        assert_eq!(data[0].number, 1);
        let expected = if retransmits { EcnCodepoint::NotCapable } else { EcnCodepoint::Capable };
        assert_eq!(data[0].segment.ecn, expected);
    }
}

#[test]
fn rfc_7323_4_3_answer_to_repeated_syn_echoes_its_timestamp() {
    let tcp = ModernTcpConfig { handshake: HandshakeKind::Tcp, ..modern_tcp() };
    let mut server = started(FileSize::of_full_packets(1), &tcp);
    let mut client = FileClient::new_connection(&tcp);
    client.connect(SECOND, 1, &tcp);
    for _ in 0..2 {
        let (now, mut syn) = (client.deadline(), Segment::default());
        client.on_timer(now, &tcp, &mut syn);
        server.on_segment(now, &syn, &tcp, &mut NoProbe);
        let answer = burst(&mut server, now, &tcp)[0].segment;
        let echo = answer.options.timestamps.map(|stamps| stamps.echo);
        assert_eq!(echo, syn.options.timestamps.map(|stamps| stamps.value));
    }
}
