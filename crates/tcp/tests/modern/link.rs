//! A sender and a receiver, connected by a simulated link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tcpcast_link::Ecn;
use tcpcast_link::time::MILLISECOND;
use tcpcast_tcp::modern::{
    ArrivingAck, ArrivingData, OutgoingAck, PacketToSend, Receiver, SendReason, Sender, Stack,
    Timestamps, timestamp_at,
};

/// Faults of the link, in percent of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: u32,
    pub ack_loss: u32,
    pub duplicates: u32,
    pub reorder: u32,
    pub marks: u32,
}

#[derive(Clone, Copy, Debug)]
enum Arrival {
    Data(ArrivingData),
    Ack(ArrivingAck),
}

/// The two ends of a connection over a link.
pub struct Link {
    pub stack: Stack,
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: u64,
    /// Data packets sent.
    pub packets: u64,
    /// Packets that the queue dropped.
    pub drops: u64,
    /// Maximum number of packets in the queue, without the one in service.
    pub buffer: usize,
    faults: Faults,
    delay: u64,
    /// Transmission time of a byte in units of 1 ps.
    byte_time: Option<u64>,
    /// Departure times of the packets in the queue and in service.
    departures: std::collections::VecDeque<u64>,
    arrivals: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: std::collections::HashMap<u64, Arrival>,
    serial: u64,
    random: u64,
    forced: bool,
}

impl Link {
    pub fn new(
        stack: Stack,
        faults: Faults,
        delay: u64,
        rate_mbit: Option<u64>,
        seed: u64,
    ) -> Self {
        let now = MILLISECOND;
        let mut sender = Sender::new(now, 1, seed, &stack);
        sender.on_established(now, Some(2 * delay), stack.receiving.buffer, &stack);
        let mut receiver = Receiver::new(1, &stack);
        receiver.on_established(Some(2 * delay), None);
        Self {
            stack,
            sender,
            receiver,
            now,
            packets: 0,
            drops: 0,
            buffer: usize::MAX,
            faults,
            delay,
            byte_time: rate_mbit.map(|rate| 8_000_000 / rate),
            departures: std::collections::VecDeque::new(),
            arrivals: BinaryHeap::new(),
            waiting: std::collections::HashMap::new(),
            serial: 0,
            random: seed,
            forced: false,
        }
    }

    /// Writes application data.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write_bytes(self.now, bytes, &self.stack, &mut ());
        self.pump();
    }

    fn draw(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % limit
    }

    fn happens(&mut self, percent: u32) -> bool {
        percent > 0 && self.draw(100) < u64::from(percent)
    }

    fn arrive(&mut self, at: u64, arrival: Arrival) {
        self.serial += 1;
        self.arrivals.push(Reverse((at, self.serial)));
        self.waiting.insert(self.serial, arrival);
    }

    /// Time of the next event.
    pub fn next_at(&self) -> u64 {
        let arrival = self.arrivals.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let timers = self.sender.deadline().min(self.sender.next_paced_time());
        arrival.min(timers).min(self.receiver.deadline())
    }

    /// Processes the next event.
    pub fn step(&mut self) {
        let at = self.next_at();
        assert!(at >= self.now, "time goes backwards");
        self.now = at;
        let due = self.arrivals.peek().is_some_and(|Reverse((when, _))| *when == at);
        if due {
            let Some(Reverse((_, serial))) = self.arrivals.pop() else { return };
            match self.waiting.remove(&serial) {
                Some(Arrival::Data(data)) => {
                    self.receiver.on_data(at, &data, &self.stack);
                }
                Some(Arrival::Ack(ack)) => {
                    self.sender.on_ack(at, &ack, &self.stack, &mut ());
                }
                None => panic!("unknown arrival"),
            }
        } else if self.sender.deadline() == at {
            self.sender.on_deadline(at, &self.stack, &mut ());
            self.forced = true;
        } else if self.receiver.deadline() == at {
            self.receiver.on_deadline(at);
        }
        self.pump();
    }

    /// Sends all packets that may be sent now.
    fn pump(&mut self) {
        while let Some(outgoing) = self.receiver.poll_ack(&self.stack) {
            self.send_ack(outgoing);
        }
        let mut allowed_beyond = u32::from(std::mem::take(&mut self.forced));
        loop {
            let room = self.sender.in_flight() < self.sender.cwnd();
            let sent = self.sender.poll_transmit(self.now, &self.stack);
            let Some(sent) = sent else { break };
            if !room {
                assert!(allowed_beyond > 0, "packets exceed the congestion window");
                allowed_beyond -= 1;
            }
            if sent.sending == SendReason::New {
                let end = sent.start + u64::from(sent.len);
                assert!(end <= self.sender.receive_window_end(), "data exceed the receiver window");
            }
            self.send_data(sent);
        }
    }

    fn send_data(&mut self, sent: PacketToSend) {
        self.packets += 1;
        let mut ecn = if sent.ect { Ecn::Ect0 } else { Ecn::NotEct };
        if sent.ect && self.happens(self.faults.marks) {
            ecn = Ecn::Ce;
        }
        let timestamps = Timestamps { value: timestamp_at(self.now), echo: 0 };
        let data = ArrivingData {
            start: sent.start,
            len: sent.len,
            fin: sent.fin,
            ecn,
            cwr: sent.cwr,
            push: sent.push,
            timestamps: self.stack.timestamps.then_some(timestamps),
        };
        let headers = if self.stack.timestamps { 52 } else { 40 };
        let Some(leaves) = self.enqueue(u64::from(sent.len) + headers) else {
            self.drops += 1;
            return;
        };
        if self.happens(self.faults.loss) {
            return;
        }
        let copies = 1 + u32::from(self.happens(self.faults.duplicates));
        for _ in 0..copies {
            let late = self.lateness();
            self.arrive(leaves + self.delay + late, Arrival::Data(data));
        }
    }

    /// Departure time of a packet of `bytes`; [`None`] if the queue is full.
    fn enqueue(&mut self, bytes: u64) -> Option<u64> {
        let Some(byte_time) = self.byte_time else { return Some(self.now) };
        while self.departures.front().is_some_and(|&at| at <= self.now) {
            self.departures.pop_front();
        }
        if self.departures.len() > self.buffer {
            return None;
        }
        let begins = self.departures.back().map_or(self.now, |&last| last.max(self.now));
        let leaves = begins + bytes * byte_time / 1000;
        self.departures.push_back(leaves);
        Some(leaves)
    }

    fn lateness(&mut self) -> u64 {
        if self.happens(self.faults.reorder) { self.draw(1 + self.delay) } else { 0 }
    }

    fn send_ack(&mut self, outgoing: OutgoingAck) {
        if self.happens(self.faults.ack_loss) {
            return;
        }
        let timestamps =
            outgoing.echo.map(|echo| Timestamps { value: timestamp_at(self.now), echo });
        let ack = ArrivingAck {
            ack: outgoing.ack,
            window: outgoing.window,
            seq: 1,
            carries_data: false,
            sacks: outgoing.sacks,
            timestamps,
            ece: outgoing.ece,
            ace: 0,
            accurate_ecn: None,
        };
        let late = self.lateness();
        self.arrive(self.now + self.delay + late, Arrival::Ack(ack));
    }
}
