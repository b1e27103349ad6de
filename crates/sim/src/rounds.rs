//! The rounds of a flow, and the loss that takes the rest of one.
//!
//! Padhye, Firoiu, Towsley and Kurose (1998), section 2.1: a round starts with the transmission of
//! a window and ends when the first acknowledgement for one of its packets comes. Losses in
//! different rounds are independent; if a packet is lost, so is all that follows it in its round.
//!
//! A sender that takes losses for congestion sends more than windows, so this says what a round is
//! whatever it sends. The first packet of a connection begins one; and so does
//! - the first packet after an acknowledgement of the first packet of the current round, or of a
//!   later one;
//! - a packet whose number is not above that of the packet sent before it: the retransmission with
//!   which a fast recovery begins, a partial acknowledgement's, a timeout's.
//!
//! All other packets belong to the current round. Duplicates acknowledge nothing, so they end no
//! round: what they let out during a recovery belongs to the round of its retransmission.

use crate::packet::{Kind, Packet};
use crate::random::{Draws, Stream};
use std::collections::VecDeque;

/// The rounds of one flow's packets, from where they are sent to the bottleneck.
#[derive(Clone, Debug, Default)]
struct Rounds {
    connection: u32,
    /// The first packet of the current round.
    first: u32,
    /// The packet sent last.
    last: u32,
    /// The round is over: the next packet begins another.
    over: bool,
    /// Packets sent that reach the bottleneck, and those that have.
    sent: u64,
    arrived: u64,
    /// Which of them begin a round, counted as `sent` does, as far as they are on their way.
    begins: VecDeque<u64>,
}

impl Rounds {
    fn sent(&mut self, connection: u32, number: u32) {
        self.sent += 1;
        if self.over || connection != self.connection || number <= self.last {
            self.connection = connection;
            self.first = number;
            self.over = false;
            self.begins.push_back(self.sent);
        }
        self.last = number;
    }

    /// `next` is the first packet not acknowledged.
    fn acknowledged(&mut self, connection: u32, next: u32) {
        self.over |= connection == self.connection && next > self.first;
    }

    /// The packet that was just sent will not reach the bottleneck; if it began a round, the next
    /// does.
    fn lost_before(&mut self) {
        self.sent -= 1;
    }

    /// The next packet reaches the bottleneck; whether it begins a round there.
    fn arrives(&mut self) -> bool {
        self.arrived += 1;
        let mut first = false;
        while self.begins.front() == Some(&self.arrived) {
            self.begins.pop_front();
            first = true;
        }
        first
    }
}

/// Loses a packet with a fixed probability unless one before it in its round was lost; then it is
/// lost as well.
#[derive(Clone, Debug)]
pub(crate) struct RoundLoss {
    rate: f64,
    stream: Stream,
    flows: Vec<Flow>,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    rounds: Rounds,
    /// A packet of the round that is at the bottleneck was lost.
    spoiled: bool,
}

impl RoundLoss {
    pub(crate) fn new(rate: f64, sources: usize, stream: Stream) -> Self {
        Self { rate, stream, flows: vec![Flow::default(); sources] }
    }

    /// A sender sends a packet, or hears an acknowledgement.
    pub(crate) fn at_sender(&mut self, packet: &Packet) {
        let index = packet.source() as usize;
        if index >= self.flows.len() {
            // Transfers that begin at random times add sources to the run.
            self.flows.resize_with(index + 1, Flow::default);
        }
        let rounds = &mut self.flows[index].rounds;
        if packet.kind() == Kind::Ack {
            rounds.acknowledged(packet.connection(), packet.number());
        } else {
            rounds.sent(packet.connection(), packet.number());
        }
    }

    /// The packet that `source` has just sent was lost before the bottleneck.
    pub(crate) fn lost_before(&mut self, source: u32) {
        self.flows[source as usize].rounds.lost_before();
    }

    /// Whether the packet of `source` that arrives now is lost.
    pub(crate) fn loses(&mut self, source: u32) -> bool {
        let flow = &mut self.flows[source as usize];
        if flow.rounds.arrives() {
            flow.spoiled = false;
        }
        flow.spoiled = flow.spoiled || self.stream.chance(self.rate);
        flow.spoiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Label;
    use crate::random::{Named, Purpose};
    use proptest::prelude::*;

    /// Sends packets, which reach the bottleneck at once; which of them begin a round.
    fn begin(rounds: &mut Rounds, numbers: &[u32]) -> Vec<bool> {
        let one = |number: &u32| {
            rounds.sent(1, *number);
            rounds.arrives()
        };
        numbers.iter().map(one).collect()
    }

    #[test]
    fn a_round_lasts_until_its_first_packet_is_acknowledged() {
        let mut rounds = Rounds::default();
        assert_eq!(begin(&mut rounds, &[1, 2]), [true, false]);
        rounds.acknowledged(1, 2);
        assert_eq!(begin(&mut rounds, &[3, 4]), [true, false], "1 is acknowledged");
        rounds.acknowledged(1, 3);
        assert_eq!(begin(&mut rounds, &[5, 6]), [false, false], "2 was of the round before");
        rounds.acknowledged(1, 5);
        assert_eq!(begin(&mut rounds, &[7, 8]), [true, false], "4, later than 3");
    }

    #[test]
    fn retransmissions_begin_rounds() {
        let mut rounds = Rounds::default();
        begin(&mut rounds, &[1, 2, 3, 4, 5, 6, 7, 8]);
        rounds.acknowledged(1, 2);
        assert_eq!(begin(&mut rounds, &[9]), [true]);
        // 2 and 4 were lost. Duplicates: fast retransmit, and what they let out after it.
        assert_eq!(begin(&mut rounds, &[2, 10, 11]), [true, false, false]);
        rounds.acknowledged(1, 4);
        assert_eq!(begin(&mut rounds, &[4, 12]), [true, false], "a partial acknowledgement");
        // Timeouts: once, twice; then it goes back over what was sent.
        assert_eq!(begin(&mut rounds, &[4]), [true]);
        assert_eq!(begin(&mut rounds, &[4]), [true]);
        rounds.acknowledged(1, 7);
        assert_eq!(begin(&mut rounds, &[7, 8]), [true, false]);
        // A new connection.
        rounds.sent(2, 9);
        assert!(rounds.arrives());
        rounds.acknowledged(1, 13);
        rounds.sent(2, 10);
        assert!(!rounds.arrives(), "the acknowledgement was of the connection before");
    }

    #[test]
    fn rounds_on_their_way_are_kept_apart() {
        let mut rounds = Rounds::default();
        for number in [1, 2, 3, 1, 2] {
            rounds.sent(1, number);
        }
        rounds.lost_before();
        rounds.sent(1, 3);
        rounds.sent(1, 1);
        rounds.lost_before();
        rounds.sent(1, 2);
        let found: Vec<bool> = (0..6).map(|_| rounds.arrives()).collect();
        // 1 2 3, 1 (2) 3, (1) 2: what is in brackets was lost before the bottleneck.
        assert_eq!(found, [true, false, false, true, false, true]);
        assert!(rounds.begins.is_empty());
    }

    #[test]
    fn a_share_of_one_less_all_that_survive_is_lost_from_rounds_of_a_size() {
        let mut loss = RoundLoss::new(0.1, 1, Stream::named(1, 0, 0, Purpose::BottleneckLoss));
        let (mut number, mut hit, mut packets_lost, rounds) = (0, 0, 0, 100_000);
        for _ in 0..rounds {
            loss.at_sender(&Packet::new(0, 1, number + 1, Label::new(Kind::Ack, 0)));
            let lost = [1, 2, 3, 4, 5].map(|at| {
                loss.at_sender(&Packet::new(0, 1, number + at, Label::default()));
                loss.loses(0)
            });
            assert!(lost.windows(2).all(|pair| pair[0] <= pair[1]), "a suffix: {lost:?}");
            hit += u32::from(lost[4]);
            packets_lost += lost.iter().filter(|l| **l).count() as u32;
            number += 5;
        }
        let share = f64::from(hit) / f64::from(rounds);
        assert!((share - (1.0 - 0.9_f64.powi(5))).abs() < 0.005, "{share}");
        let mean: f64 = (1..=5).map(|at| 1.0 - 0.9_f64.powi(at)).sum();
        let lost = f64::from(packets_lost) / f64::from(rounds);
        assert!((lost - mean).abs() < 0.03, "{lost} against {mean}");
    }

    proptest! {
        /// However packets and acknowledgements come, and however long packets are in flight, each
        /// arrives in the round in which it was sent.
        #[test]
        fn packets_arrive_in_the_rounds_in_which_they_were_sent(
            steps in prop::collection::vec((0_u8..5, 1_u32..12), 1..400),
        ) {
            let mut rounds = Rounds::default();
            let mut under_way = VecDeque::new();
            let mut round = 0_u32;
            let mut at_bottleneck = None;
            for (what, number) in steps {
                match what {
                    0 => rounds.acknowledged(1, number),
                    1 | 2 => {
                        let known = rounds.begins.len();
                        rounds.sent(1, number);
                        round += u32::from(rounds.begins.len() > known);
                        under_way.push_back(round);
                        if number == 7 {
                            rounds.lost_before();
                            under_way.pop_back();
                        }
                    }
                    _ => {
                        if let Some(sent_in) = under_way.pop_front() {
                            let first = rounds.arrives();
                            prop_assert_eq!(first, at_bottleneck != Some(sent_in));
                            at_bottleneck = Some(sent_in);
                        }
                    }
                }
            }
        }
    }
}
