//! A simple model of sender, link and receiver, which generates a capture at the sender.

use std::collections::VecDeque;
use std::net::IpAddr;

use tcpcast_trace::{
    ConnectionReport, Connections, DirectionReport, Endpoint, Flags, Options, Segment,
};

pub const FULL: u32 = 1000;
const MS: f64 = 1e6;

/// A transfer without loss. Times are in ms, windows in packets.
pub struct Path {
    /// Base RTT.
    pub rtt: f64,
    /// Service time of the link per packet.
    pub service: f64,
    /// Receive window.
    pub window: u64,
    /// Send buffer: maximum unacknowledged packets.
    pub buffer: u64,
    /// Congestion window by number of acknowledged packets.
    pub cwnd: fn(u64) -> u64,
    /// Time when packet `n` is available, and its bytes; `None` after the last packet.
    pub application: fn(u64) -> Option<(f64, u32)>,
    /// Whether the capture includes the handshake.
    pub handshake: bool,
    /// Number of packets per ECN mark; 0 for no marks.
    pub packets_per_mark: u64,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            rtt: 100.0,
            service: 0.01,
            window: 1000,
            buffer: 1000,
            cwnd: slow_start,
            application: |n| (n < 2000).then_some((0.0, FULL)),
            handshake: true,
            packets_per_mark: 0,
        }
    }
}

/// A window that grows by the acknowledged packets.
pub fn slow_start(acked: u64) -> u64 {
    10 + acked
}

impl Path {
    /// Returns the report of the data direction.
    pub fn report(&self) -> DirectionReport {
        let mut capture = Capture::new(self.window);
        capture.packets_per_mark = self.packets_per_mark;
        if self.handshake {
            capture.handshake(self.rtt, self.rtt + 0.01);
        }
        let (mut now, mut free) = (self.rtt + 1.0, 0.0_f64);
        let (mut acked, mut next) = (0_u64, 0_u64);
        let mut in_flight = VecDeque::new();
        loop {
            let allowed = (self.cwnd)(acked).min(self.window).min(self.buffer);
            let ready = (self.application)(next).filter(|_| next - acked < allowed);
            let back = in_flight.front().copied();
            match (ready, back) {
                (Some((time, bytes)), _) if back.is_none_or(|back| time <= back || now >= time) => {
                    now = f64::max(now, time);
                    capture.data(now, bytes);
                    free = free.max(now) + self.service;
                    in_flight.push_back(free + self.rtt);
                    next += 1;
                }
                (_, Some(back)) => {
                    now = now.max(back);
                    in_flight.pop_front();
                    acked += 1;
                    capture.ack(now, acked);
                }
                _ => return capture.report(),
            }
        }
    }
}

/// Generates the capture.
pub struct Capture {
    connections: Connections,
    frame: u64,
    window: u16,
    sent: u32,
    /// End of each packet in bytes.
    ends: Vec<u32>,
    packets_per_mark: u64,
    /// Whether the last acknowledgement has the flag ECE, so that the next data have CWR.
    echoed: bool,
}

impl Capture {
    pub fn new(window: u64) -> Self {
        let window = u16::try_from((window * u64::from(FULL)) >> 7).expect("a window of 16 bits");
        Self {
            connections: Connections::default(),
            frame: 0,
            window,
            sent: 0,
            ends: Vec::new(),
            packets_per_mark: 0,
            echoed: false,
        }
    }

    fn segment(&mut self, ms: f64, answer: bool) -> Segment {
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]]
            .map(|address| Endpoint { address: IpAddr::from(address), port: 80 });
        self.frame += 1;
        Segment {
            frame: self.frame,
            time: (ms * MS) as u64 + 1_000_000_000_000,
            source: ends[usize::from(answer)],
            destination: ends[usize::from(!answer)],
            ip_id: Some(self.frame as u16),
            ttl: 64,
            ecn: 0,
            ip_bytes: 40,
            payload: 0,
            sequence: 1,
            acknowledgement: 1,
            flags: Flags(Flags::ACK),
            ae: false,
            window: self.window,
            options: Options::default(),
            fragment: false,
        }
    }

    /// Adds a SYN at 0, a SYN-ACK at `answered`, and an ACK at `done`.
    pub fn handshake(&mut self, answered: f64, done: f64) {
        for (ms, answer) in [(0.0, false), (answered, true)] {
            let mut syn = self.segment(ms, answer);
            syn.sequence = 0;
            syn.flags = Flags(Flags::SYN | if answer { Flags::ACK } else { 0 });
            if self.packets_per_mark > 0 {
                syn.flags.0 |= if answer { Flags::ECE } else { Flags::ECE | Flags::CWR };
            }
            syn.options.mss = Some(FULL as u16);
            syn.options.window_scale = Some(7);
            // The window of a SYN is not scaled.
            syn.window = u16::MAX;
            self.connections.push_segment(&syn);
        }
        let ack = self.segment(done, false);
        self.connections.push_segment(&ack);
    }

    pub fn data(&mut self, ms: f64, bytes: u32) {
        let mut data = self.segment(ms, false);
        data.sequence += self.sent;
        data.payload = bytes;
        data.ip_bytes += bytes;
        if std::mem::take(&mut self.echoed) {
            data.flags.0 |= Flags::CWR;
        }
        self.sent += bytes;
        self.ends.push(self.sent);
        self.connections.push_segment(&data);
    }

    /// Acknowledges all packets before `n`.
    pub fn ack(&mut self, ms: f64, n: u64) {
        let mut ack = self.answer(ms, n);
        if self.packets_per_mark > 0 && n % self.packets_per_mark == 0 {
            ack.flags.0 |= Flags::ECE;
            self.echoed = true;
        }
        self.connections.push_segment(&ack);
    }

    /// Acknowledges a number of bytes.
    pub fn ack_bytes(&mut self, ms: f64, bytes: u32) {
        let mut ack = self.segment(ms, true);
        ack.acknowledgement += bytes;
        self.connections.push_segment(&ack);
    }

    /// Acknowledges all packets before `n` and sends 100 bytes of data.
    pub fn request(&mut self, ms: f64, n: u64) {
        let mut request = self.answer(ms, n);
        request.sequence += 100 * (n as u32 - 1);
        request.payload = 100;
        self.connections.push_segment(&request);
    }

    fn answer(&mut self, ms: f64, n: u64) -> Segment {
        let mut ack = self.segment(ms, true);
        ack.acknowledgement += n.checked_sub(1).map_or(0, |last| self.ends[last as usize]);
        ack
    }

    /// Sets the receive window of the following segments, in packets.
    pub fn announce(&mut self, window: u16) {
        self.window = ((u32::from(window) * FULL) >> 7) as u16;
    }

    pub fn report(self) -> DirectionReport {
        let [report] = <[ConnectionReport; 1]>::try_from(
            self.connections.into_remaining_reports().collect::<Vec<_>>(),
        )
        .expect("one connection");
        let [data, _] = *report.directions;
        data
    }
}
