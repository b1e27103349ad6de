//! Simplified window flow control of a cross flow (scheme 2).
//!
//! All times refer to the entrance of the shared router or of the first per-source hop before it:
//! an ACK is processed at the arrival time of the packet that it releases. Windows grow and are
//! halved by the rules of the run ([`InstantLossRules`]). Timeouts are random, with the frequency
//! of the reference flows.

use std::collections::VecDeque;
use tcpcast_sim::clock::Nanos;
use tcpcast_tcp::{InstantLossRules, TcpConfig, WindowGrowthCondition};

/// Next action of a cross flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextWindowAction {
    /// The next packet arrives at the shared router at this time.
    Arrives(Nanos),
    /// The file is complete; time of the last ACK.
    Finished(Nanos),
    /// The flow waits for a packet that has not yet left the per-source hops.
    Waits,
}

/// Window and outstanding packets of a cross flow.
#[derive(Clone, Debug)]
pub(super) struct CrossFlowWindow {
    cwnd: f64,
    ssthresh: f64,
    /// Number of the next packet.
    next: u32,
    /// Packets with smaller numbers were sent before the last halving.
    halved: u32,
    /// Unacknowledged packets of the file.
    left: u32,
    /// Outstanding packets for which the time of the ACK is unknown.
    inside: u32,
    /// Packets sent before loss feedback that arrive later: times and numbers.
    in_flight: VecDeque<(Nanos, u32)>,
    /// Future ACKs in order: times and numbers.
    acks: VecDeque<(Nanos, u32)>,
    /// Earliest arrival of the next packet, after the preceding packet, file start and loss
    /// feedback.
    ready: Nanos,
    /// Time of the last ACK.
    last_ack: Nanos,
    /// Departure time of the last packet from the shared router, by the recursion.
    served: Nanos,
}

impl Default for CrossFlowWindow {
    fn default() -> Self {
        Self {
            cwnd: 0.0,
            ssthresh: 0.0,
            next: 0,
            halved: 0,
            left: 0,
            inside: 0,
            in_flight: VecDeque::new(),
            acks: VecDeque::new(),
            ready: 0,
            last_ack: 0,
            served: 0,
        }
    }
}

impl CrossFlowWindow {
    /// Sets the window and threshold of a new connection.
    pub(super) fn open_connection(&mut self, tcp: &TcpConfig) {
        self.cwnd = f64::from(tcp.initial_window);
        self.ssthresh = f64::from(tcp.initial_ssthresh);
    }

    /// Limits the window to the initial window.
    pub(super) fn limit_to_initial_window(&mut self, tcp: &TcpConfig) {
        self.cwnd = self.cwnd.min(f64::from(tcp.initial_window));
    }

    /// Starts a file of `size` packets, whose first packet can arrive at `ready`.
    pub(super) fn begin_file(&mut self, ready: Nanos, size: u32) {
        (self.left, self.inside, self.halved, self.next) = (size, 0, 0, 0);
        self.in_flight.clear();
        self.acks.clear();
        self.ready = self.ready.max(ready);
        self.last_ack = ready;
    }

    /// Next action of the flow.
    pub(super) fn next_action(
        &mut self,
        tcp: &TcpConfig,
        rules: InstantLossRules,
    ) -> NextWindowAction {
        match self.in_flight.front() {
            Some((due, _)) => NextWindowAction::Arrives(*due),
            None => self.next_packet_action(tcp, rules),
        }
    }

    fn next_packet_action(&mut self, tcp: &TcpConfig, rules: InstantLossRules) -> NextWindowAction {
        let mut at = self.ready;
        loop {
            while self.acks.front().is_some_and(|(due, _)| *due <= at) {
                self.on_ack(tcp, rules);
            }
            if self.left == 0 {
                return NextWindowAction::Finished(self.last_ack);
            }
            let scheduled = self.acks.len() + self.in_flight.len();
            let outstanding = scheduled as u32 + self.inside;
            let window = self.window_packets(tcp);
            if outstanding < window && outstanding < self.left {
                return NextWindowAction::Arrives(at);
            }
            let Some((due, _)) = self.acks.front() else { return NextWindowAction::Waits };
            at = at.max(*due);
        }
    }

    /// Window in packets.
    fn window_packets(&self, tcp: &TcpConfig) -> u32 {
        (self.cwnd as u32).min(tcp.receiver_window)
    }

    fn on_ack(&mut self, tcp: &TcpConfig, rules: InstantLossRules) {
        let Some((due, number)) = self.acks.pop_front() else { return };
        self.left -= 1;
        self.last_ack = due;
        self.ready = self.ready.max(due);
        if rules.growth == WindowGrowthCondition::AfterHalving && number < self.halved {
            return;
        }
        let more = if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        self.cwnd = (self.cwnd + more).min(f64::from(tcp.receiver_window));
    }

    /// Records a packet that arrives at `now`, and returns its number. The next packet arrives at
    /// least `min_gap` later. The packet counts as `inside` until
    /// [`CrossFlowWindow::record_departure`] or [`CrossFlowWindow::on_loss`].
    pub(super) fn record_next_arrival(&mut self, now: Nanos, min_gap: Nanos) -> u32 {
        self.inside += 1;
        if let Some((_, number)) = self.in_flight.pop_front() {
            return number;
        }
        self.take_next_number(now, min_gap)
    }

    fn take_next_number(&mut self, arrives: Nanos, min_gap: Nanos) -> u32 {
        self.next += 1;
        self.ready = self.ready.max(arrives + min_gap);
        self.next - 1
    }

    /// Computes the departure time of a packet with this service time by the recursion.
    pub(super) fn advance_departure_time(&mut self, now: Nanos, service: Nanos) -> Nanos {
        self.served = self.served.max(now) + service;
        self.served
    }

    /// Records that a packet was served and that its ACK opens the window at `due`.
    pub(super) fn record_departure(&mut self, number: u32, due: Nanos) {
        self.inside = self.inside.saturating_sub(1);
        self.acks.push_back((due, number));
    }

    /// Handles loss feedback; packets sent before the feedback still arrive until `feedback`.
    pub(super) fn on_loss_feedback(
        &mut self,
        feedback: Nanos,
        min_gap: Nanos,
        tcp: &TcpConfig,
        rules: InstantLossRules,
    ) {
        while let NextWindowAction::Arrives(at) = self.next_packet_action(tcp, rules) {
            if at > feedback {
                break;
            }
            let number = self.take_next_number(at, min_gap);
            self.in_flight.push_back((at, number));
        }
        self.ready = self.ready.max(feedback);
    }

    /// Handles the loss of a packet that was held or, by the recursion, already served.
    pub(super) fn on_loss(&mut self, number: u32, rules: InstantLossRules) {
        if self.inside > 0 {
            self.inside -= 1;
        } else if self.acks.pop_back().is_none() {
            // According to the recursion, the packet was already acknowledged.
            self.left += 1;
        }
        if !rules.halve_once || number >= self.halved {
            self.halve_window(rules);
        }
    }

    /// Handles a timeout. The copy of the packet is one more packet of the file.
    pub(super) fn on_timeout(&mut self, rules: InstantLossRules) {
        self.halve_window(rules);
        self.cwnd = 1.0;
        self.left = self.left.saturating_add(u32::from(rules.retransmit));
    }

    fn halve_window(&mut self, rules: InstantLossRules) {
        (self.cwnd, self.ssthresh) = rules.halved_window_and_ssthresh(self.cwnd);
        self.halved = self.next;
    }
}
