//! Rounds of a flow, and correlated loss within a round.
//!
//! Padhye, Firoiu, Towsley and Kurose (1998), section 2.1: a round starts with the transmission of
//! a window and ends with the first acknowledgement of one of its packets. Losses in different
//! rounds are independent. If a packet is lost, all later packets of its round are lost too.
//!
//! During recovery a sender does not send complete windows, so rounds are defined for any sequence
//! of packets. The first packet of a connection starts a round, and so does
//! - the first packet after an acknowledgement of the first packet of the current round or of a
//!   later packet;
//! - a packet whose number is not above that of the previous packet: a retransmission at the start
//!   of a fast recovery, after a partial acknowledgement, or after a timeout.
//!
//! All other packets belong to the current round. Duplicate acknowledgements acknowledge no packet,
//! so they do not end a round: packets that they clock out during a recovery belong to the round of
//! its retransmission.

use crate::random::{RandomSource, RandomStream};
use std::collections::VecDeque;

/// Rounds of the packets of a flow between the sender and the bottleneck.
#[derive(Clone, Debug, Default)]
struct FlowRounds {
    connection: u32,
    /// First packet of the current round.
    first: u32,
    /// Packet that was sent last.
    last: u32,
    /// Whether the current round has ended: the next packet starts a new one.
    has_ended: bool,
    /// Number of packets sent, without those lost before the bottleneck, and number of packets that
    /// have arrived at the bottleneck.
    sent: u64,
    arrived: u64,
    /// First packets of the rounds in flight, numbered like `sent`.
    starts: VecDeque<u64>,
}

impl FlowRounds {
    fn on_sent(&mut self, connection: u32, number: u32) {
        self.sent += 1;
        if self.has_ended || connection != self.connection || number <= self.last {
            self.connection = connection;
            self.first = number;
            self.has_ended = false;
            self.starts.push_back(self.sent);
        }
        self.last = number;
    }

    /// Handles an acknowledgement; `next` is the first unacknowledged packet.
    fn on_acknowledged(&mut self, connection: u32, next: u32) {
        self.has_ended |= connection == self.connection && next > self.first;
    }

    /// Handles the arrival of the next packet at the bottleneck. Returns true if the packet starts
    /// a round.
    fn count_arrival_starts_round(&mut self) -> bool {
        self.arrived += 1;
        let mut first = false;
        while self.starts.front() == Some(&self.arrived) {
            self.starts.pop_front();
            first = true;
        }
        first
    }
}

/// Correlated loss: a packet is lost with a fixed probability, and certainly if an earlier packet
/// of its round was lost.
#[derive(Clone, Debug)]
pub(crate) struct RoundLoss {
    rate: f64,
    stream: RandomStream,
    flows: Vec<FlowRoundLoss>,
}

#[derive(Clone, Debug, Default)]
struct FlowRoundLoss {
    rounds: FlowRounds,
    /// Whether a packet of the current round at the bottleneck was lost.
    has_loss: bool,
}

impl RoundLoss {
    pub(crate) fn new(rate: f64, sources: usize, stream: RandomStream) -> Self {
        Self { rate, stream, flows: vec![FlowRoundLoss::default(); sources] }
    }

    /// Whether the packet that a source sends now is lost, if packets reach the bottleneck in the
    /// order in which they are sent.
    pub(crate) fn loses_sent_packet(&mut self, source: u32, connection: u32, number: u32) -> bool {
        let index = source as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, FlowRoundLoss::default);
        }
        self.flows[index].rounds.on_sent(connection, number);
        self.loses_next_packet(source)
    }

    /// Handles an acknowledgement; `next` is the first unacknowledged packet.
    pub(crate) fn on_acknowledged(&mut self, source: u32, connection: u32, next: u32) {
        if let Some(flow) = self.flows.get_mut(source as usize) {
            flow.rounds.on_acknowledged(connection, next);
        }
    }

    /// Whether the next packet of `source` that arrives at the bottleneck is lost.
    pub(crate) fn loses_next_packet(&mut self, source: u32) -> bool {
        let flow = &mut self.flows[source as usize];
        if flow.rounds.count_arrival_starts_round() {
            flow.has_loss = false;
        }
        flow.has_loss = flow.has_loss || self.stream.draw_chance(self.rate);
        flow.has_loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{NamedStream, StreamPurpose};
    use proptest::prelude::*;

    /// Sends packets that reach the bottleneck immediately. Returns which of them start a round.
    fn send(rounds: &mut FlowRounds, numbers: &[u32]) -> Vec<bool> {
        let one = |number: &u32| {
            rounds.on_sent(1, *number);
            rounds.count_arrival_starts_round()
        };
        numbers.iter().map(one).collect()
    }

    #[test]
    fn round_ends_when_its_first_packet_is_acknowledged() {
        let mut rounds = FlowRounds::default();
        assert_eq!(send(&mut rounds, &[1, 2]), [true, false]);
        rounds.on_acknowledged(1, 2);
        assert_eq!(send(&mut rounds, &[3, 4]), [true, false], "1 is acknowledged");
        rounds.on_acknowledged(1, 3);
        assert_eq!(send(&mut rounds, &[5, 6]), [false, false], "2 belongs to the previous round");
        rounds.on_acknowledged(1, 5);
        assert_eq!(send(&mut rounds, &[7, 8]), [true, false], "4 is later than 3");
    }

    #[test]
    fn retransmissions_start_rounds() {
        let mut rounds = FlowRounds::default();
        send(&mut rounds, &[1, 2, 3, 4, 5, 6, 7, 8]);
        rounds.on_acknowledged(1, 2);
        assert_eq!(send(&mut rounds, &[9]), [true]);
        // 2 and 4 were lost: fast retransmit, then packets clocked out by duplicate
        // acknowledgements.
        assert_eq!(send(&mut rounds, &[2, 10, 11]), [true, false, false]);
        rounds.on_acknowledged(1, 4);
        assert_eq!(send(&mut rounds, &[4, 12]), [true, false], "a partial acknowledgement");
        // Two timeouts, then go-back-N.
        assert_eq!(send(&mut rounds, &[4]), [true]);
        assert_eq!(send(&mut rounds, &[4]), [true]);
        rounds.on_acknowledged(1, 7);
        assert_eq!(send(&mut rounds, &[7, 8]), [true, false]);
        // A new connection.
        rounds.on_sent(2, 9);
        assert!(rounds.count_arrival_starts_round());
        rounds.on_acknowledged(1, 13);
        rounds.on_sent(2, 10);
        assert!(
            !rounds.count_arrival_starts_round(),
            "the acknowledgement belongs to the previous connection"
        );
    }

    #[test]
    fn several_rounds_in_flight_are_distinguished() {
        let mut rounds = FlowRounds::default();
        for number in [1, 2, 3, 1, 2] {
            rounds.on_sent(1, number);
        }
        let starts: Vec<bool> = (0..5).map(|_| rounds.count_arrival_starts_round()).collect();
        assert_eq!(starts, [true, false, false, true, false]);
        assert!(rounds.starts.is_empty());
    }

    #[test]
    fn loss_ratio_of_rounds_matches_the_formula() {
        let mut loss = RoundLoss::new(
            0.1,
            1,
            RandomStream::for_entity(1, 0, 0, StreamPurpose::BottleneckLoss),
        );
        let (mut number, mut hit, mut packets_lost, rounds) = (0, 0, 0, 100_000);
        for _ in 0..rounds {
            loss.on_acknowledged(0, 1, number + 1);
            let lost = [1, 2, 3, 4, 5].map(|n| loss.loses_sent_packet(0, 1, number + n));
            assert!(lost.windows(2).all(|pair| pair[0] <= pair[1]), "a suffix: {lost:?}");
            hit += u32::from(lost[4]);
            packets_lost += lost.iter().filter(|l| **l).count() as u32;
            number += 5;
        }
        let share = f64::from(hit) / f64::from(rounds);
        assert!((share - (1.0 - 0.9_f64.powi(5))).abs() < 0.005, "{share}");
        let mean: f64 = (1..=5).map(|n| 1.0 - 0.9_f64.powi(n)).sum();
        let lost = f64::from(packets_lost) / f64::from(rounds);
        assert!((lost - mean).abs() < 0.03, "{lost}, expected {mean}");
    }

    proptest! {
        /// Each packet arrives in the round in which it was sent, for any order of packets and
        /// acknowledgements and any time in flight.
        #[test]
        fn packets_arrive_in_their_rounds(
            steps in prop::collection::vec((0_u8..5, 1_u32..12), 1..400),
        ) {
            let mut rounds = FlowRounds::default();
            let mut in_flight = VecDeque::new();
            let mut round = 0_u32;
            let mut at_bottleneck = None;
            for (action, number) in steps {
                match action {
                    0 => rounds.on_acknowledged(1, number),
                    1 | 2 => {
                        let before = rounds.starts.len();
                        rounds.on_sent(1, number);
                        round += u32::from(rounds.starts.len() > before);
                        in_flight.push_back(round);
                    }
                    _ => {
                        if let Some(sent_in) = in_flight.pop_front() {
                            let first = rounds.count_arrival_starts_round();
                            prop_assert_eq!(first, at_bottleneck != Some(sent_in));
                            at_bottleneck = Some(sent_in);
                        }
                    }
                }
            }
        }
    }
}
