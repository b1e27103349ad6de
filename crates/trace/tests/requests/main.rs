//! Tests of requests and failed connections with synthetic captures. Times are in ms at the tap.

use std::net::IpAddr;

use tcpcast_trace::{
    ConnectionEnd, ConnectionReport, Connections, Endpoint, FailureDetails, FailureKind,
    FailureStage, Flags, Options, RequestExchange, RequestOutcome, Segment, SilentParty,
};

const MSS: u32 = 1000;
const CLIENT: usize = 0;
const SERVER: usize = 1;
const MS: f64 = 1e6;

/// Generates the capture of a connection; `next` has the next sequence number of each end.
struct Talk {
    connections: Connections,
    next: [u32; 2],
    frame: u64,
    window: u16,
    client_port: u16,
}

impl Talk {
    /// `away`: round-trip times from the tap to client and server.
    fn new(rtt: [f64; 2]) -> Self {
        let mut talk = silent_talk();
        talk.flags(0.0, CLIENT, Flags::SYN, 0);
        talk.flags(rtt[SERVER], SERVER, Flags::SYN | Flags::ACK, 0);
        talk.flags(rtt[SERVER] + rtt[CLIENT], CLIENT, Flags::ACK, 0);
        talk
    }

    /// Adds new data, or a segment without data, which uses a sequence number if it is a SYN or
    /// FIN.
    fn flags(&mut self, ms: f64, from: usize, flags: u8, payload: u32) {
        let acknowledgement = self.next[1 - from];
        self.segment(ms, from, flags, payload, self.next[from], acknowledgement);
        self.next[from] += payload + u32::from(flags & (Flags::SYN | Flags::FIN) != 0);
    }

    fn data(&mut self, ms: f64, from: usize, payload: u32) {
        self.flags(ms, from, Flags::ACK, payload);
    }

    fn ack(&mut self, ms: f64, from: usize) {
        self.data(ms, from, 0);
    }

    /// Adds an acknowledgement with a window.
    fn window_ack(&mut self, ms: f64, from: usize, window: u16) {
        let before = std::mem::replace(&mut self.window, window);
        self.ack(ms, from);
        self.window = before;
    }

    /// Adds a packet of another connection.
    fn other_connection(&mut self, ms: f64) {
        self.client_port += 1;
        self.ack(ms, CLIENT);
        self.client_port -= 1;
    }

    fn segment(&mut self, ms: f64, from: usize, flags: u8, payload: u32, sequence: u32, ack: u32) {
        self.frame += 1;
        let ends = [self.client_port, 80]
            .map(|port| Endpoint { address: IpAddr::from([10, 0, 0, 1]), port });
        let mss = (flags & Flags::SYN != 0).then_some(MSS as u16);
        self.connections.push_segment(&Segment {
            frame: self.frame,
            time: (ms * MS) as u64 + 1_000_000_000_000,
            source: ends[from],
            destination: ends[1 - from],
            ip_id: None,
            ttl: 64,
            ecn: 0,
            ip_bytes: 40 + payload,
            payload,
            sequence,
            acknowledgement: ack,
            flags: Flags(flags),
            ae: false,
            window: self.window,
            options: Options { mss, ..Options::default() },
            fragment: false,
        });
    }

    fn report(self) -> ConnectionReport {
        self.connections.into_remaining_reports().next().expect("a connection")
    }

    fn exchanges(self) -> Vec<RequestExchange> {
        self.report().exchanges
    }
}

fn ms(time: u64) -> f64 {
    time as f64 / MS
}

fn assert_near(actual: u64, expected: f64) {
    assert!((ms(actual) - expected).abs() < 0.01, "{} for {expected}", ms(actual));
}

/// Time from the first byte of the request to the last byte of the response, without the client.
fn latency(exchange: &RequestExchange) -> u64 {
    exchange.parts.total() - exchange.parts.client
}

/// Compares the parts of a time line, in ms, in the order of their declaration.
fn assert_parts(exchange: &RequestExchange, expected: [f64; 8]) {
    let parts = exchange.parts;
    let found = [
        parts.client,
        parts.request,
        parts.server,
        parts.response,
        parts.retransmission,
        parts.held,
        parts.window,
        parts.interrupted,
    ]
    .map(|part| (ms(part) * 1e3).round() / 1e3);
    assert_eq!(found, expected);
}

#[test]
fn exchange_has_times_of_first_and_last_byte() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(135.0, SERVER, MSS);
    talk.data(136.0, SERVER, 500);
    talk.ack(136.0, CLIENT);
    talk.data(200.0, CLIENT, 300);
    talk.data(240.0, SERVER, 400);
    let [first, second] = talk.exchanges().try_into().expect("two requests");
    assert_eq!((first.request_bytes, first.response_bytes), (200, 1500));
    assert_eq!((second.request_bytes, second.response_bytes), (300, 400));
    assert_near(first.first_byte, 35.0);
    assert_near(latency(&first), 36.0);
    assert_near(second.answer, 40.0);
    assert!(!first.overlaps && !second.overlaps);
    assert_eq!(first.outcome, RequestOutcome::Answered);
    assert_parts(&first, [70.0, 0.0, 5.0, 31.0, 0.0, 0.0, 0.0, 0.0]);
    assert_parts(&second, [64.0, 0.0, 10.0, 30.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn one_way_bulk_data_are_not_requests() {
    let mut talk = Talk::new([30.0, 0.0]);
    for round in 1..20 {
        (0..10).for_each(|_| talk.data(30.0 * f64::from(round), SERVER, MSS));
        talk.ack(30.0 * f64::from(round) + 29.0, CLIENT);
    }
    assert_eq!(talk.exchanges(), []);
}

#[test]
fn server_greeting_is_not_response() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(40.0, SERVER, 50);
    talk.ack(40.0, CLIENT);
    talk.data(100.0, CLIENT, 200);
    talk.data(131.0, SERVER, 100);
    let [only] = talk.exchanges().try_into().expect("one request");
    assert_near(only.first_byte, 31.0);
    assert_eq!(only.response_bytes, 100);
}

#[test]
fn request_before_end_of_response_overlaps() {
    let mut talk = Talk::new([30.0, 0.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(101.0, SERVER, MSS);
    let before = talk.next[SERVER] - MSS;
    talk.segment(102.0, CLIENT, Flags::ACK, 200, talk.next[CLIENT], before);
    talk.next[CLIENT] += 200;
    talk.data(103.0, SERVER, MSS);
    assert!(talk.exchanges().iter().all(|one| one.overlaps));
}

#[test]
fn response_before_end_of_request_overlaps() {
    // At the client, the capture shows the second request before the first response.
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    let requested = talk.next[CLIENT];
    talk.data(130.0, SERVER, 100);
    talk.data(131.0, CLIENT, 200);
    talk.segment(132.0, SERVER, Flags::ACK, 100, talk.next[SERVER], requested);
    assert!(talk.exchanges().iter().all(|one| one.overlaps));
}

#[test]
fn retransmission_delays_last_byte() {
    let mut talk = Talk::new([30.0, 0.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(105.0, SERVER, MSS);
    let lost = talk.next[SERVER];
    talk.data(105.0, SERVER, 500);
    talk.segment(135.0, CLIENT, Flags::ACK, 0, talk.next[CLIENT], lost);
    let end = talk.next[CLIENT];
    talk.segment(335.0, SERVER, Flags::ACK, 500, lost, end);
    talk.ack(365.0, CLIENT);
    talk.data(400.0, CLIENT, 200);
    talk.data(405.0, SERVER, 500);
    let [first, second] = talk.exchanges().try_into().expect("two requests");
    assert_parts(&first, [70.0, 0.0, 5.0, 30.0, 230.0, 0.0, 0.0, 0.0]);
    assert_eq!((first.retransmissions, second.retransmissions), (1, 0));
    assert!(!first.after_losses && second.after_losses);
}

#[test]
fn small_segment_waits_for_delayed_acknowledgement() {
    // Header and body are written separately; the server delays its acknowledgement by 40 ms.
    for (near, far) in [(0.0, 30.0), (30.0, 0.0), (10.0, 20.0)] {
        let mut talk = Talk::new([near, far]);
        for start in [100.0, 1100.0] {
            talk.data(start, CLIENT, 200);
            talk.ack(start + far + 40.0, SERVER);
            talk.data(start + far + 40.0 + near, CLIENT, 300);
            talk.data(start + 2.0 * far + near + 45.0, SERVER, 500);
            talk.ack(start + 2.0 * far + near + 46.0, CLIENT);
        }
        for exchange in talk.exchanges() {
            assert_near(exchange.delayed, 40.0);
            assert_near(exchange.parts.held, 70.0);
            assert_near(exchange.answer, 5.0 + far);
        }
    }
}

#[test]
fn nagle_delays_by_a_round_trip() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    talk.ack(130.0, SERVER);
    talk.data(130.0, CLIENT, 300);
    talk.data(165.0, SERVER, 500);
    let [only] = talk.exchanges().try_into().expect("one request");
    assert_near(only.parts.held, 30.0);
    assert_eq!(only.delayed, 0);
}

#[test]
fn gap_within_response_is_server_pause() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(130.0, SERVER, 300);
    talk.ack(130.0, CLIENT);
    talk.data(630.0, SERVER, 700);
    let [only] = talk.exchanges().try_into().expect("one request");
    assert_near(only.parts.server, 500.0);
}

#[test]
fn gaps_after_short_writes_are_server_pauses() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    for part in 0..3 {
        talk.data(130.0 + 60.0 * f64::from(part), SERVER, 700);
        talk.ack(130.0 + 60.0 * f64::from(part), CLIENT);
    }
    let [only] = talk.exchanges().try_into().expect("one request");
    assert_near(only.parts.server, 120.0);
}

#[test]
fn gap_after_full_segment_is_lost_tail() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(130.0, SERVER, MSS);
    talk.ack(130.0, CLIENT);
    talk.data(400.0, SERVER, 300);
    let [only] = talk.exchanges().try_into().expect("one request");
    assert_near(only.parts.retransmission, 270.0);
    assert_eq!((only.parts.server, only.retransmissions), (0, 1));
}

#[test]
fn client_idle_before_request_and_within_it_is_not_latency() {
    for rtt in [[0.0, 30.0], [30.0, 0.0]] {
        let mut talk = Talk::new(rtt);
        let start = 1000.0 + rtt[SERVER] + rtt[CLIENT];
        talk.data(start, CLIENT, 200);
        talk.ack(start + rtt[SERVER], SERVER);
        // A pause of the client within the request.
        talk.data(start + 60_000.0, CLIENT, 100);
        talk.data(start + 60_000.0 + rtt[SERVER] + 5.0, SERVER, 300);
        let [only] = talk.exchanges().try_into().expect("one request");
        assert_parts(&only, [61_000.0, 0.0, 5.0, 30.0, 0.0, 0.0, 0.0, 0.0]);
        assert_near(only.first_byte, 35.0);
    }
}

#[test]
fn pause_of_server_after_full_segments_is_not_network() {
    let mut talk = Talk::new([30.0, 0.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(101.0, SERVER, MSS);
    talk.ack(131.0, CLIENT);
    talk.data(60_131.0, SERVER, MSS);
    let [only] = talk.exchanges().try_into().expect("one request");
    assert_near(only.parts.server, 60_031.0);
    assert_near(only.parts.response, 30.0);
}

#[test]
fn request_without_response_has_outcome() {
    type Step = fn(&mut Talk);
    let fin = Flags::FIN | Flags::ACK;
    let cases: [(RequestOutcome, f64, Step); 5] = [
        (RequestOutcome::ClientGaveUp, 30_000.0, |talk| {
            talk.flags(30_100.0, CLIENT, Flags::FIN | Flags::ACK, 0)
        }),
        (RequestOutcome::ClientGaveUp, 30_000.0, |talk| {
            talk.flags(30_100.0, CLIENT, Flags::RST, 0)
        }),
        (RequestOutcome::ResetByServer, 500.0, |talk| talk.flags(600.0, SERVER, Flags::RST, 0)),
        (RequestOutcome::ServerClosed, 500.0, |talk| {
            talk.flags(600.0, SERVER, Flags::FIN | Flags::ACK, 0)
        }),
        (RequestOutcome::CaptureEnded, 30.0, |_| ()),
    ];
    for (outcome, waited, step) in cases {
        let mut talk = Talk::new([0.0, 30.0]);
        talk.data(100.0, CLIENT, 200);
        talk.ack(130.0, SERVER);
        step(&mut talk);
        let [only] = talk.exchanges().try_into().expect("one request");
        assert_eq!((only.outcome, only.request_bytes), (outcome, 200));
        assert_near(latency(&only), waited);
        assert_near(only.parts.server, waited - 30.0);
    }
    // A half-closed connection still awaits its response.
    let mut talk = Talk::new([0.0, 30.0]);
    talk.flags(100.0, CLIENT, fin, 200);
    talk.data(5130.0, SERVER, 100);
    let [only] = talk.exchanges().try_into().expect("one request");
    assert_eq!(only.outcome, RequestOutcome::Answered);
}

#[test]
fn one_way_messages_are_not_requests() {
    let mut messages = Talk::new([0.0, 30.0]);
    for number in 0..5 {
        messages.data(1000.0 * f64::from(number), CLIENT, 200);
        messages.ack(1000.0 * f64::from(number) + 30.0, SERVER);
    }
    assert_eq!(messages.exchanges(), []);
    let mut closed = Talk::new([0.0, 30.0]);
    closed.flags(100.0, CLIENT, Flags::FIN | Flags::ACK, 200);
    closed.flags(130.0, SERVER, Flags::FIN | Flags::ACK, 0);
    assert_eq!(closed.exchanges(), []);
    let mut upload = Talk::new([0.0, 30.0]);
    (0..1100).for_each(|packet| upload.data(100.0 + f64::from(packet), CLIENT, MSS));
    assert_eq!(upload.exchanges(), []);
}

#[test]
fn transmissions_in_vain_are_an_interruption() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    let (sequence, ack) = (talk.next[CLIENT] - 200, talk.next[SERVER]);
    for time in [330.0, 800.0, 1700.0, 3500.0] {
        talk.segment(time, CLIENT, Flags::ACK, 200, sequence, ack);
    }
    talk.data(3535.0, SERVER, 300);
    talk.ack(3535.0, CLIENT);
    let report = talk.report();
    let [only] = report.exchanges.as_slice().try_into().expect("one request");
    assert_parts(&only, [70.0, 0.0, 5.0, 30.0, 0.0, 0.0, 0.0, 3400.0]);
    assert_eq!((only.copies, only.retransmissions), (4, 4));
    let [silence] = report.directions[0].interruptions.as_slice().try_into().expect("one");
    assert_near(silence.end - silence.start, 3400.0);
    assert_eq!((silence.by, silence.copies, silence.ended), (SilentParty::Path, 4, true));
    assert_eq!(report.directions[1].interruptions, []);
}

#[test]
fn dead_path_is_the_outcome_after_three_copies() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    let (sequence, ack) = (talk.next[CLIENT] - 200, talk.next[SERVER]);
    for time in [330.0, 800.0, 1700.0] {
        talk.segment(time, CLIENT, Flags::ACK, 200, sequence, ack);
    }
    let report = talk.report();
    let [only] = report.exchanges.as_slice().try_into().expect("one request");
    assert_eq!(only.outcome, RequestOutcome::PathDead);
    assert_near(only.parts.interrupted, 1600.0);
    assert!(!report.directions[0].interruptions[0].ended);
}

#[test]
fn idle_connection_has_no_interruption() {
    let mut talk = Talk::new([0.0, 30.0]);
    for start in [100.0, 60_000.0] {
        talk.data(start, CLIENT, 200);
        talk.data(start + 31.0, SERVER, MSS);
        talk.ack(start + 31.0, CLIENT);
    }
    let report = talk.report();
    assert!(report.directions.iter().all(|direction| direction.interruptions.is_empty()));
}

#[test]
fn retransmission_acknowledged_too_early_is_time_of_the_server() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    let (sequence, ack) = (talk.next[CLIENT] - 200, talk.next[SERVER]);
    talk.segment(330.0, CLIENT, Flags::ACK, 200, sequence, ack);
    // The acknowledgement answers the first transmission.
    talk.ack(331.0, SERVER);
    talk.data(600.0, SERVER, 300);
    let [only] = talk.exchanges().try_into().expect("one request");
    assert_parts(&only, [70.0, 0.0, 470.0, 30.0, 0.0, 0.0, 0.0, 0.0]);
}

fn failure(talk: Talk) -> FailureDetails {
    talk.report().failure_details.expect("it failed")
}

fn silent_talk() -> Talk {
    let connections = Connections::default();
    Talk { connections, next: [1000, 5000], frame: 0, window: 60_000, client_port: 40_000 }
}

#[test]
fn failure_is_unanswered_without_syn_ack() {
    let mut talk = silent_talk();
    for ms in [0.0, 1000.0, 3000.0] {
        talk.segment(ms, CLIENT, Flags::SYN, 0, 1000, 0);
    }
    let details = failure(talk);
    assert_eq!((details.failure, details.by, details.tries), (FailureKind::Unanswered, SERVER, 3));
    assert_near(details.waited, 3000.0);
}

#[test]
fn failure_is_refused_by_rst_after_syn() {
    let mut talk = silent_talk();
    talk.segment(0.0, CLIENT, Flags::SYN, 0, 1000, 0);
    talk.segment(30.0, SERVER, Flags::RST | Flags::ACK, 0, 0, 1001);
    let details = failure(talk);
    assert_eq!((details.failure, details.by), (FailureKind::Refused, SERVER));
    assert_eq!(details.stage, FailureStage::Handshake);
    assert_near(details.waited, 30.0);
}

#[test]
fn failure_is_half_open_without_final_ack() {
    let mut talk = silent_talk();
    talk.segment(0.0, CLIENT, Flags::SYN, 0, 1000, 0);
    for ms in [1.0, 1001.0] {
        talk.segment(ms, SERVER, Flags::SYN | Flags::ACK, 0, 5000, 1001);
    }
    let details = failure(talk);
    assert_eq!((details.failure, details.by, details.tries), (FailureKind::HalfOpen, CLIENT, 2));
}

#[test]
fn failure_by_rst_has_side_and_stage() {
    type Step = fn(&mut Talk);
    let cases: [(usize, FailureStage, Step); 6] = [
        (SERVER, FailureStage::BeforeData, |_| ()),
        (SERVER, FailureStage::InRequest, |talk| talk.data(100.0, CLIENT, 200)),
        (CLIENT, FailureStage::InResponse, |talk| {
            talk.data(100.0, CLIENT, 200);
            talk.data(131.0, SERVER, MSS);
        }),
        (SERVER, FailureStage::Idle, |talk| {
            talk.data(100.0, CLIENT, 200);
            talk.data(131.0, SERVER, MSS);
            talk.ack(131.0, CLIENT);
        }),
        (CLIENT, FailureStage::AfterFin, |talk| {
            talk.flags(100.0, SERVER, Flags::FIN | Flags::ACK, 0)
        }),
        (SERVER, FailureStage::InRequest, |talk| {
            talk.data(100.0, CLIENT, 200);
            talk.data(131.0, SERVER, MSS);
            talk.data(300.0, CLIENT, 200);
        }),
    ];
    for (by, stage, step) in cases {
        let mut talk = Talk::new([0.0, 30.0]);
        step(&mut talk);
        talk.flags(500.0, by, Flags::RST, 0);
        let details = failure(talk);
        assert_eq!((details.failure, details.by, details.stage), (FailureKind::Reset, by, stage));
    }
}

#[test]
fn failure_of_request_has_preceding_idle_time() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(131.0, SERVER, MSS);
    talk.ack(131.0, CLIENT);
    talk.data(60_131.0, CLIENT, 200);
    talk.flags(60_161.0, SERVER, Flags::RST, 0);
    assert_near(failure(talk).waited, 60_000.0);
}

#[test]
fn failure_is_silent_without_acknowledgements() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(131.0, SERVER, MSS);
    talk.ack(131.0, CLIENT);
    let (sequence, ack) = (talk.next[CLIENT], talk.next[SERVER]);
    talk.data(500.0, CLIENT, 200);
    for time in [730.0, 1200.0, 2100.0] {
        talk.segment(time, CLIENT, Flags::ACK, 200, sequence, ack);
    }
    let details = failure(talk);
    assert_eq!((details.failure, details.by, details.tries), (FailureKind::Silent, SERVER, 4));
    assert_eq!(details.stage, FailureStage::InRequest);
    assert_near(details.waited, 2100.0 - 730.0);
}

/// Only a FIN of the silent end ends its part of the connection: the other end may send its FIN with
/// the data that are lost.
#[test]
fn failure_of_silent_end_after_its_fin_is_not_in_response() {
    for (closed, stage) in [(true, FailureStage::AfterFin), (false, FailureStage::InResponse)] {
        let mut talk = Talk::new([0.0, 30.0]);
        talk.data(100.0, CLIENT, 200);
        talk.data(131.0, SERVER, MSS);
        talk.ack(131.0, CLIENT);
        if closed {
            talk.flags(140.0, CLIENT, Flags::FIN | Flags::ACK, 0);
        }
        let (sequence, ack) = (talk.next[SERVER], talk.next[CLIENT]);
        for time in [170.0, 400.0, 900.0, 1900.0] {
            talk.segment(time, SERVER, Flags::FIN | Flags::ACK, 30, sequence, ack);
        }
        let details = failure(talk);
        assert_eq!((details.failure, details.by), (FailureKind::Silent, CLIENT));
        assert_eq!((details.stage, details.tries), (stage, 4));
    }
}

#[test]
fn closed_connection_has_no_failure() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(131.0, SERVER, MSS);
    talk.flags(132.0, CLIENT, Flags::FIN | Flags::ACK, 0);
    talk.flags(162.0, SERVER, Flags::FIN | Flags::ACK, 0);
    talk.flags(163.0, CLIENT, Flags::RST, 0);
    assert_eq!(talk.report().failure_details, None);
}

#[test]
fn failure_is_silent_without_keep_alive_answers() {
    let mut talk = Talk::new([0.0, 30.0]);
    talk.data(100.0, CLIENT, 200);
    talk.data(131.0, SERVER, MSS);
    talk.ack(131.0, CLIENT);
    let (sequence, ack) = (talk.next[CLIENT] - 1, talk.next[SERVER]);
    for (time, answered) in [(10e3, true), (20e3, true), (30e3, false), (40e3, false)] {
        talk.segment(time, CLIENT, Flags::ACK, 0, sequence, ack);
        if answered {
            talk.ack(time + 30.0, SERVER);
        }
    }
    let report = talk.report();
    let silent = report.failure_details.expect("the server is silent");
    assert_eq!(
        (silent.failure, silent.by, silent.stage),
        (FailureKind::Silent, SERVER, FailureStage::Idle)
    );
    let client = &report.directions[0];
    assert_eq!((client.counts.keep_alives, client.counts.keep_alives_unanswered), (4, 2));
}

/// Data that were never acknowledged are lost, whatever FINs were sent. `step` adds packets after the
/// handshake; a RST without an acknowledgement follows.
#[test]
fn reset_after_fin_is_harmless_only_without_loss() {
    type Step = fn(&mut Talk);
    let upload: Step = |talk| {
        talk.data(100.0, CLIENT, 400);
        talk.ack(130.0, SERVER);
        talk.flags(140.0, SERVER, Flags::FIN | Flags::ACK, 0);
        talk.data(141.0, CLIENT, 900);
        talk.data(141.1, CLIENT, 900);
    };
    let cases: [(usize, u64, FailureStage, Step); 6] = [
        // The data were on their way when the server closed: the tap is at the client.
        (SERVER, 900, FailureStage::InUpload, |talk| {
            talk.data(100.0, CLIENT, 400);
            talk.ack(130.0, SERVER);
            let received = talk.next[CLIENT];
            talk.data(139.0, CLIENT, 900);
            talk.segment(140.0, SERVER, Flags::FIN | Flags::ACK, 0, talk.next[SERVER], received);
        }),
        // The same for data that the client was just sending.
        (SERVER, 1800, FailureStage::InUpload, upload),
        // A request on a connection that the server had closed.
        (SERVER, 900, FailureStage::AfterFin, |talk| {
            talk.flags(100.0, SERVER, Flags::FIN | Flags::ACK, 0);
            talk.ack(100.1, CLIENT);
            talk.data(140.0, CLIENT, 900);
        }),
        // The client closes in the middle of a response.
        (CLIENT, 700, FailureStage::AfterFin, |talk| {
            talk.data(100.0, CLIENT, 400);
            talk.data(130.0, SERVER, 700);
            let (sent, received) = (talk.next[CLIENT], talk.next[SERVER]);
            talk.data(130.5, SERVER, 700);
            talk.segment(131.0, CLIENT, Flags::FIN | Flags::ACK, 0, sent, received);
        }),
        // A TLS close notification.
        (CLIENT, 0, FailureStage::AfterFin, |talk| {
            talk.data(100.0, CLIENT, 400);
            talk.data(130.0, SERVER, 400);
            talk.ack(130.1, CLIENT);
            talk.flags(161.0, SERVER, Flags::FIN | Flags::ACK, 31);
        }),
        // All data are acknowledged.
        (CLIENT, 0, FailureStage::AfterFin, |talk| {
            talk.data(100.0, CLIENT, 400);
            talk.data(130.0, SERVER, 400);
            talk.flags(130.1, SERVER, Flags::FIN | Flags::ACK, 0);
            talk.ack(130.1, CLIENT);
        }),
    ];
    for (by, lost, stage, step) in cases {
        let mut talk = Talk::new([0.0, 30.0]);
        step(&mut talk);
        talk.flags(170.0, by, Flags::RST, 0);
        let details = failure(talk);
        assert_eq!((details.failure, details.by), (FailureKind::Reset, by));
        assert_eq!(
            (details.lost_bytes.iter().sum(), details.stage, details.harmless),
            (lost, stage, lost == 0)
        );
    }
}

/// A client that has closed does not wait for data that reach it later, such as the tickets of a TLS
/// session or the rest of a cancelled response.
#[test]
fn data_that_reach_a_closed_client_are_no_failure() {
    for (away, closes, fails) in [
        ([0.0, 30.0], Flags::FIN | Flags::ACK, false),
        ([0.0, 30.0], Flags::RST, false),
        ([30.0, 0.0], Flags::FIN | Flags::ACK, false),
        ([0.0, 30.0], Flags::ACK, true),
    ] {
        let mut talk = Talk::new(away);
        talk.data(100.0, CLIENT, 400);
        talk.data(130.0, SERVER, 300);
        talk.ack(130.1, CLIENT);
        let (sent, received) = (talk.next[CLIENT], talk.next[SERVER]);
        // At the server, the data precede the FIN of the client: both cross on the path.
        let at_server = away[CLIENT] > 0.0;
        if at_server {
            talk.data(140.0, SERVER, 700);
        }
        talk.segment(150.0, CLIENT, closes, 0, sent, received);
        if !at_server {
            talk.data(161.0, SERVER, 700);
        }
        talk.flags(162.0, CLIENT, Flags::RST, 0);
        let details = failure(talk);
        assert_eq!((details.failure, details.by), (FailureKind::Reset, CLIENT));
        assert_eq!((details.lost_bytes, details.harmless), ([0, 700], !fails), "{away:?} {closes}");
    }
}

/// The server rejects an upload: it responds while the client is still sending, and resets.
#[test]
fn rejected_upload_is_not_in_response() {
    for away in [[0.0, 30.0], [30.0, 0.0]] {
        let mut talk = Talk::new(away);
        (0..4).for_each(|n| talk.data(100.0 + f64::from(n), CLIENT, MSS));
        let (received, sent) = (talk.next[CLIENT], talk.next[SERVER]);
        // The server responds to the first four packets; further ones are on their way.
        let late = if away[CLIENT] == 0.0 { 120.0 } else { 131.0 };
        let response = |talk: &mut Talk| {
            talk.segment(130.0, SERVER, Flags::ACK, 200, sent, received);
            talk.next[SERVER] += 200;
        };
        if late > 130.0 {
            response(&mut talk);
        }
        for n in 0..4 {
            let sequence = talk.next[CLIENT];
            talk.segment(late + f64::from(n), CLIENT, Flags::ACK, MSS, sequence, sent);
            talk.next[CLIENT] += MSS;
        }
        if late < 130.0 {
            response(&mut talk);
        }
        talk.flags(136.0, SERVER, Flags::RST, 0);
        let details = failure(talk);
        assert_eq!((details.failure, details.by), (FailureKind::Reset, SERVER));
        assert_eq!((details.stage, details.lost_bytes), (FailureStage::InUpload, [4000, 200]));
    }
}

/// The SYN meets an old connection, which the server acknowledges and the client resets.
#[test]
fn syn_meets_old_connection() {
    for (tries, answered) in [(1, true), (3, true), (3, false)] {
        let mut talk = silent_talk();
        for n in 0..tries {
            let ms = 1000.0 * f64::from(n);
            talk.segment(ms, CLIENT, Flags::SYN, 0, 1000, 0);
            talk.segment(ms + 1.0, SERVER, Flags::ACK, 0, 77, 900_000);
            talk.segment(ms + 1.1, CLIENT, Flags::RST, 0, 900_000, 0);
        }
        if answered {
            talk.segment(1000.0 * f64::from(tries), CLIENT, Flags::SYN, 0, 1000, 0);
            let ms = 1000.0 * f64::from(tries);
            talk.next[CLIENT] = 1001;
            talk.flags(ms + 1.0, SERVER, Flags::SYN | Flags::ACK, 0);
            talk.ack(ms + 1.1, CLIENT);
            talk.data(ms + 2.0, CLIENT, 200);
            talk.data(ms + 3.0, SERVER, 300);
            talk.ack(ms + 3.1, CLIENT);
        }
        let report = talk.report();
        let details = report.failure_details.expect("the SYN met an old connection");
        let client = &report.directions[0];
        assert!(report.syn_captured && report.end == ConnectionEnd::Open);
        assert_eq!(client.counts.missing_bytes, 0);
        if answered {
            assert_eq!((details.failure, details.by), (FailureKind::OldConnection, SERVER));
            assert_near(details.waited, 1000.0 * f64::from(tries));
            assert!(details.harmless);
        } else {
            assert_eq!(details.failure, FailureKind::Unanswered);
            assert_eq!((details.stage, details.tries), (FailureStage::OldConnection, 3));
        }
    }
}

/// A RST after the SYN-ACK is one of this connection.
#[test]
fn reset_of_answered_syn_ends_connection() {
    let mut talk = silent_talk();
    talk.segment(0.0, CLIENT, Flags::SYN, 0, 1000, 0);
    talk.segment(30.0, SERVER, Flags::SYN | Flags::ACK, 0, 5000, 1001);
    talk.segment(30.1, CLIENT, Flags::RST, 0, 1001, 0);
    let details = failure(talk);
    assert_eq!((details.failure, details.by), (FailureKind::Reset, CLIENT));
    assert_eq!(details.stage, FailureStage::Handshake);
}

/// A handshake needs a second try, or time in the capture, before it counts as failed.
#[test]
fn handshake_at_end_of_capture_has_not_failed() {
    for (answered, rest, failed) in
        [(false, 500.0, false), (false, 1500.0, true), (true, 500.0, false), (true, 1500.0, true)]
    {
        let mut talk = silent_talk();
        talk.segment(0.0, CLIENT, Flags::SYN, 0, 1000, 0);
        if answered {
            talk.segment(1.0, SERVER, Flags::SYN | Flags::ACK, 0, 5000, 1001);
        }
        talk.other_connection(1.0 + rest);
        let report = talk.connections.into_remaining_reports().next().expect("a connection");
        assert_eq!(report.failure_details.is_some(), failed, "{answered} {rest}");
    }
}

/// Three transmissions without a response within a second may be a probe and a timeout.
#[test]
fn receiver_is_silent_after_three_copies_in_a_second() {
    for (times, silent) in [([500.0, 530.0, 800.0], false), ([500.0, 1500.0, 3500.0], true)] {
        let mut talk = Talk::new([0.0, 30.0]);
        talk.data(100.0, CLIENT, 200);
        talk.ack(131.0, SERVER);
        let (sequence, ack) = (talk.next[CLIENT], talk.next[SERVER]);
        for time in times {
            talk.segment(time, CLIENT, Flags::ACK, 300, sequence, ack);
        }
        let details = talk.report().failure_details;
        assert_eq!(details.is_some(), silent);
        if let Some(details) = details {
            assert_eq!((details.failure, details.by), (FailureKind::Silent, SERVER));
            assert_eq!((details.tries, details.lost_bytes), (3, [300, 0]));
            assert_near(details.silence, 3500.0 - 131.0);
        }
    }
}

/// A receiver with a closed window that no longer answers the probes.
#[test]
fn receiver_is_silent_without_answers_to_window_probes() {
    for answers in [0, 3] {
        let mut talk = Talk::new([0.0, 30.0]);
        talk.data(100.0, CLIENT, 200);
        talk.window_ack(131.0, SERVER, 0);
        let (sequence, ack) = (talk.next[CLIENT] - 1, talk.next[SERVER]);
        for (n, time) in [400.0, 1000.0, 2200.0].into_iter().enumerate() {
            talk.segment(time, CLIENT, Flags::ACK, 0, sequence, ack);
            if n < answers {
                talk.window_ack(time + 30.0, SERVER, 0);
            }
        }
        let report = talk.report();
        assert_eq!(report.directions[0].counts.zero_window_probes, 3);
        let failed = report.failure_details.map(|details| (details.failure, details.stage));
        let silent = Some((FailureKind::Silent, FailureStage::ClosedWindow));
        assert_eq!(failed, silent.filter(|_| answers == 0));
    }
}

/// A RST with a wrong number, whose sender goes on, is ignored (RFC 5961).
#[test]
fn ignored_reset_does_not_end_connection() {
    for goes_on in [true, false] {
        let mut talk = Talk::new([0.0, 30.0]);
        talk.data(100.0, CLIENT, 200);
        talk.data(131.0, SERVER, MSS);
        let (wrong, ack) = (talk.next[SERVER] + 30_000, talk.next[CLIENT]);
        talk.segment(131.1, SERVER, Flags::RST, 0, wrong, ack);
        talk.ack(131.2, CLIENT);
        if goes_on {
            talk.data(132.0, SERVER, MSS);
            talk.ack(132.1, CLIENT);
        }
        let report = talk.report();
        assert_eq!(report.failure_details.is_some(), !goes_on);
        let end = if goes_on { ConnectionEnd::Open } else { ConnectionEnd::Reset };
        assert_eq!(report.end, end);
    }
}

/// At the server, the data of a rejected upload arrive after the RST.
#[test]
fn upload_is_rejected_before_its_rest_arrives() {
    let mut talk = Talk::new([40.0, 0.0]);
    (0..4).for_each(|n| talk.data(100.0 + f64::from(n), CLIENT, MSS));
    talk.data(104.0, SERVER, 180);
    talk.flags(104.1, SERVER, Flags::RST | Flags::ACK, 0);
    let ack = talk.next[SERVER] - 180;
    for n in 0..3 {
        let sequence = talk.next[CLIENT];
        talk.segment(105.0 + f64::from(n), CLIENT, Flags::ACK, MSS, sequence, ack);
        talk.next[CLIENT] += MSS;
        talk.segment(105.1 + f64::from(n), SERVER, Flags::RST, 0, ack + 180, 0);
    }
    let details = failure(talk);
    assert_eq!((details.stage, details.lost_bytes), (FailureStage::InUpload, [3000, 180]));
}
