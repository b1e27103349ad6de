//! The simplified window flow control of a cross flow (scheme 2).
//!
//! All dates are at the entrance of the shared router, or of the first hop of the flow's own before
//! it: an acknowledgement counts when the packet that it lets out would get there. Windows grow and
//! are halved by the rules of the run ([`InstantLoss`]); that a timer expires is drawn, with the
//! frequency of the reference flows.

use std::collections::VecDeque;
use tcpcast_sim::clock::Nanos;
use tcpcast_sim::tcp::{Growth, InstantLoss, TcpConfig};

/// What a cross flow does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Its next packet arrives at the shared router then.
    Arrives(Nanos),
    /// The file is over; the last acknowledgement came then.
    Over(Nanos),
    /// Nothing before one of its packets, which is at a hop of its own, is heard of.
    Waits,
}

/// The window of one cross flow and its packets that are out.
#[derive(Clone, Debug)]
pub(super) struct Window {
    cwnd: f64,
    ssthresh: f64,
    /// The number of the next packet.
    next: u32,
    /// Packets before this were sent before the last halving.
    halved: u32,
    /// Packets of the file that are still to be acknowledged.
    left: u32,
    /// Packets that are out and of which no date of an acknowledgement is known yet.
    inside: u32,
    /// Dates and numbers of packets that were sent before the feedback on a loss, and arrive later.
    under_way: VecDeque<(Nanos, u32)>,
    /// Dates and numbers of the acknowledgements to come, in order.
    coming: VecDeque<(Nanos, u32)>,
    /// Nothing arrives before this: the packet before it, the file start, or loss feedback.
    ready: Nanos,
    /// The last acknowledgement.
    heard: Nanos,
    /// When the last packet left the shared router, by the recurrence.
    served: Nanos,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            cwnd: 0.0,
            ssthresh: 0.0,
            next: 0,
            halved: 0,
            left: 0,
            inside: 0,
            under_way: VecDeque::new(),
            coming: VecDeque::new(),
            ready: 0,
            heard: 0,
            served: 0,
        }
    }
}

impl Window {
    /// Window and threshold of a new connection.
    pub(super) fn open(&mut self, tcp: &TcpConfig) {
        self.cwnd = f64::from(tcp.initial_window);
        self.ssthresh = f64::from(tcp.initial_ssthresh);
    }

    /// The window is no larger than that of a new connection.
    pub(super) fn shrink(&mut self, tcp: &TcpConfig) {
        self.cwnd = self.cwnd.min(f64::from(tcp.initial_window));
    }

    /// A file of `size` packets begins; its first can arrive at `ready`.
    pub(super) fn begin(&mut self, ready: Nanos, size: u32) {
        (self.left, self.inside, self.halved, self.next) = (size, 0, 0, 0);
        self.under_way.clear();
        self.coming.clear();
        self.ready = self.ready.max(ready);
        self.heard = ready;
    }

    /// When the next packet arrives, or the file is over.
    pub(super) fn next(&mut self, tcp: &TcpConfig, rules: InstantLoss) -> Next {
        match self.under_way.front() {
            Some((due, _)) => Next::Arrives(*due),
            None => self.next_sent(tcp, rules),
        }
    }

    fn next_sent(&mut self, tcp: &TcpConfig, rules: InstantLoss) -> Next {
        let mut at = self.ready;
        loop {
            while self.coming.front().is_some_and(|(due, _)| *due <= at) {
                self.acknowledged(tcp, rules);
            }
            if self.left == 0 {
                return Next::Over(self.heard);
            }
            let known = self.coming.len() + self.under_way.len();
            let out = known as u32 + self.inside;
            let window = self.size(tcp);
            if out < window && out < self.left {
                return Next::Arrives(at);
            }
            let Some((due, _)) = self.coming.front() else { return Next::Waits };
            at = at.max(*due);
        }
    }

    /// The window in whole packets.
    fn size(&self, tcp: &TcpConfig) -> u32 {
        (self.cwnd as u32).min(tcp.receiver_window)
    }

    fn acknowledged(&mut self, tcp: &TcpConfig, rules: InstantLoss) {
        let Some((due, number)) = self.coming.pop_front() else { return };
        self.left -= 1;
        self.heard = due;
        self.ready = self.ready.max(due);
        if rules.growth == Growth::AfterHalving && number < self.halved {
            return;
        }
        let more = if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        self.cwnd = (self.cwnd + more).min(f64::from(tcp.receiver_window));
    }

    /// A packet arrives at `now`, and the next no earlier than `apart` later; says its number. The
    /// shared router holds it until it tells what becomes of it.
    pub(super) fn arrives(&mut self, now: Nanos, apart: Nanos) -> u32 {
        self.inside += 1;
        if let Some((_, number)) = self.under_way.pop_front() {
            return number;
        }
        self.send(now, apart)
    }

    fn send(&mut self, arrives: Nanos, apart: Nanos) -> u32 {
        self.next += 1;
        self.ready = self.ready.max(arrives + apart);
        self.next - 1
    }

    /// The shared router has taken a packet with that service time: when it will have left by the
    /// recurrence.
    pub(super) fn taken(&mut self, now: Nanos, service: Nanos) -> Nanos {
        self.served = self.served.max(now) + service;
        self.served
    }

    /// A packet has been served, and its acknowledgement opens the window at `due`.
    pub(super) fn leaves(&mut self, number: u32, due: Nanos) {
        self.inside = self.inside.saturating_sub(1);
        self.coming.push_back((due, number));
    }

    /// The sender has loss feedback: what it sent before that arrives up to `feedback`.
    pub(super) fn hear(
        &mut self,
        feedback: Nanos,
        apart: Nanos,
        tcp: &TcpConfig,
        rules: InstantLoss,
    ) {
        while let Next::Arrives(at) = self.next_sent(tcp, rules) {
            if at > feedback {
                break;
            }
            let number = self.send(at, apart);
            self.under_way.push_back((at, number));
        }
        self.ready = self.ready.max(feedback);
    }

    /// Packet `number` is lost, which was held or, by the recurrence, served already.
    pub(super) fn lost(&mut self, number: u32, rules: InstantLoss) {
        if self.inside > 0 {
            self.inside -= 1;
        } else if self.coming.pop_back().is_none() {
            // By the recurrence it was acknowledged already.
            self.left += 1;
        }
        if !rules.halve_once || number >= self.halved {
            self.halve(rules);
        }
    }

    /// The timer expires.
    pub(super) fn times_out(&mut self, rules: InstantLoss) {
        self.halve(rules);
        self.cwnd = 1.0;
    }

    fn halve(&mut self, rules: InstantLoss) {
        (self.cwnd, self.ssthresh) = rules.halves(self.cwnd);
        self.halved = self.next;
    }
}
