//! One run: sources, links and receivers in virtual time.
//!
//! A data packet's way, and where it is looked at (marked *):
//!
//! ```text
//!  sender* --ingress--> [bottleneck queue]* --propagation--> --egress--> receiver
//!    ^                                                                      |
//!    +---ingress(ack)--- [return bottleneck]  <--propagation-- --egress(ack)+
//! ```
//!
//! Only where packets of different sources meet does their order matter, so there is one event a
//! packet: its arrival at the bottleneck. What an acknowledgement makes its sender send is worked
//! out in the event in which it arrives there, and what that packet's predecessor made its
//! receiver answer as well: everything between two meetings concerns one source alone, and is
//! arithmetic. Endpoints are asked late, but with the time at which they would have been asked.
//!
//! Other hops may lie before the bottleneck and behind it (`hops/`). Where packets meet there too,
//! each has one event more; what follows then holds of the first place where they meet in place of
//! the bottleneck.
//!
//! Two spans say how late. `lead_in` is the shortest time from a sender to the bottleneck, `lead`
//! that from the return bottleneck, where acknowledgements meet, to the bottleneck. Whatever takes
//! longer (a second packet of a burst, a class that is farther away, an acknowledgement that had
//! to wait) gets an event of its own.

mod cross;
mod memory;
mod replications;
mod setup;

pub use memory::bytes as run_bytes;
pub use replications::{Control, Replication, Replications};

use crate::agenda::{Event, Place, Timer};
use crate::balance::Unbalanced;
use crate::clock::{NEVER, Nanos};
use crate::network::path::Way;
use crate::network::source::Source;
use crate::network::{Lifetime, Network};
use crate::packet::{Kind, Packet};
use crate::probe::{Capture, ClassCell, Probes, SourceRecord};
use crate::queue::QueueDiscipline;
use crate::tcp::SendingEnd;
use std::hint::black_box;

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// Finished transfers after the warm-up; `u64::MAX` for no such goal.
    pub transfers: u64,
    /// Virtual time.
    pub until: Nanos,
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The goal was reached.
    Done,
    /// It was told to stop.
    Interrupted,
    /// More transfers are under way than can be held: more come than go.
    Crowded,
}

/// Packets whose sources are fetched together.
const FETCHED: usize = 8;

/// Events between two looks at whether to go on.
const EVENTS_BETWEEN_POLLS: u32 = 1 << 16;

/// An event where others may come counts as so many more: their law may draw much for one packet.
const EVENTS_OF_OTHERS: u32 = 64;

/// A run under way. Without `TAPS` nothing can be told of packets that pass, and none of them costs a
/// look at whether anything is; without `HOPS` there is no hop beside the bottleneck.
pub struct Simulation<S: SendingEnd, Q, const TAPS: bool, const HOPS: bool> {
    pub(crate) network: Network<Q, TAPS, HOPS>,
    pub(crate) sources: Vec<Source<S>>,
    /// The class of each source that the run begins with, and the first source of each class.
    class_of: Vec<u16>,
    first_of_class: Vec<usize>,
    /// Of each class of endless flows, the packets acknowledged when the warm-up was over.
    acked_before: Vec<u64>,
    /// Whether all of them are made.
    begun: bool,
    /// What is told of one that is not.
    nothing: SourceRecord,
    pub(crate) ways: Vec<Way>,
    boundary: Nanos,
    measuring: bool,
    crowded: bool,
    /// Packets at the return bottleneck, and at the link, until sources are fetched again.
    until_fetch: usize,
    until_fetch_for_link: usize,
    most_sources: usize,
    /// What a source that joins on the way is made with.
    seed: u64,
    replication: u32,
    traced: Vec<u32>,
}

impl<S: SendingEnd, Q: QueueDiscipline, const TAPS: bool, const HOPS: bool>
    Simulation<S, Q, TAPS, HOPS>
{
    /// Goes on until the goal is reached or `poll` says no; it is told the share done.
    pub fn advance(&mut self, goal: Goal, poll: &mut dyn FnMut(f64) -> bool) -> Stop {
        if !self.make_sources(poll) {
            return Stop::Interrupted;
        }
        self.network.limit = self.boundary.min(goal.until);
        self.network.wanted = if self.measuring { goal.transfers } else { u64::MAX };
        if self.transfers() >= goal.transfers {
            return Stop::Done;
        }
        if self.crowded {
            return Stop::Crowded;
        }
        let mut budget = EVENTS_BETWEEN_POLLS;
        loop {
            let (queue, due) = self.network.agenda.next();
            if HOPS && self.hops_are_first(due) {
                self.hop_event();
                self.tell_of_losses();
                budget = budget.saturating_sub(EVENTS_OF_OTHERS).max(1);
            } else if Q::HOLDS && self.link_is_first(due) {
                self.serve_next();
            } else if Q::CROSSED && self.cross_is_first(due) {
                self.cross_arrives();
                budget = budget.saturating_sub(EVENTS_OF_OTHERS).max(1);
            } else if due > self.network.limit {
                if self.crowded {
                    return Stop::Crowded;
                }
                if self.pass_limit(goal) {
                    return Stop::Done;
                }
                continue;
            } else {
                self.event(queue, due);
            }
            budget -= 1;
            if budget == 0 {
                budget = EVENTS_BETWEEN_POLLS;
                if !poll(self.share_of(goal)) {
                    return Stop::Interrupted;
                }
            }
        }
    }

    #[inline(always)]
    fn event(&mut self, queue: usize, due: Nanos) {
        self.network.now = due;
        match self.network.agenda.place(queue) {
            Some(place) => {
                if Q::HOLDS && place == Place::Return {
                    self.fetch_ahead(queue);
                }
                let packet = self.network.agenda.take(queue, due);
                self.packet(place, packet);
            }
            None => self.take_from_heap(queue, due),
        }
        self.tell_of_losses();
    }

    /// Tells sources of their packets that had to make room for others'.
    #[inline(always)]
    pub(crate) fn tell_of_losses(&mut self) {
        if Q::HOLDS && !self.network.pushed_out.is_empty() {
            self.tell_of_pushed_out();
        }
        if HOPS && self.network.tandem.has_news() {
            self.tell_of_hops();
        }
    }

    /// Whether something happens at another hop before the next event of the agenda, due at `due`,
    /// and before the bottleneck is free for a held packet.
    fn hops_are_first(&self, due: Nanos) -> bool {
        let (next, departs) = self.network.tandem.next();
        let leaves = if Q::HOLDS { self.network.queue.link_leaves() } else { NEVER };
        let comes = if Q::CROSSED { self.network.queue.cross_comes() } else { NEVER };
        let others = leaves.min(comes);
        let before_link = next < others || (next == others && departs);
        next <= due && next <= self.network.limit && before_link
    }

    /// Looks at the sources of the packets that come next, all at once: where sources are many each
    /// waits for memory, and several together hardly longer than one.
    #[inline(always)]
    fn fetch_ahead(&mut self, queue: usize) {
        if self.until_fetch == 0 {
            self.until_fetch = FETCHED;
            let coming = || self.network.agenda.coming(queue).take(FETCHED);
            let sources = || coming().filter_map(|next| self.sources.get(next.source as usize));
            black_box(sources().map(Source::fetch).fold(0, u64::wrapping_add));
            black_box(sources().map(Source::fetch_more).fold(0, u64::wrapping_add));
        }
        self.until_fetch -= 1;
    }

    /// Whether the bottleneck is free for a held packet before the next event, due at `due`.
    fn link_is_first(&self, due: Nanos) -> bool {
        let leaves = self.network.queue.link_leaves();
        let due = if Q::CROSSED { due.min(self.network.queue.cross_comes()) } else { due };
        leaves <= due && leaves <= self.network.limit
    }

    /// The bottleneck takes the next of the packets that it holds.
    fn serve_next(&mut self) {
        if self.until_fetch_for_link == 0 {
            self.fetch_for_link();
        }
        self.until_fetch_for_link -= 1;
        let Network { queue, link, probes, now, lifetime, .. } = &mut self.network;
        *now = queue.link_leaves();
        if let Some((leaves, packet)) = queue.serve(link, probes) {
            lifetime.sojourns = lifetime.sojourns.wrapping_add(leaves);
            let source = &mut self.sources[packet.source as usize];
            let way = &self.ways[source.record.class()];
            if Q::DROPS_HELD {
                if let Some(passed) = queue.passed() {
                    probes.passed(&source.record, passed);
                }
            }
            self.network.leave_bottleneck(source, way, leaves, packet);
        }
        if Q::DROPS_HELD {
            self.network.take_dropped();
            self.tell_of_losses();
        }
    }

    /// The same as [`Simulation::fetch_ahead`], for the packets that the link takes next.
    fn fetch_for_link(&mut self) {
        self.until_fetch_for_link = FETCHED;
        let mut next = [0; FETCHED];
        let count = self.network.queue.fetch_ahead(&mut next);
        let sources = next[..count].iter().filter_map(|source| self.sources.get(*source as usize));
        black_box(sources.map(|source| source.timer).fold(0, u64::wrapping_add));
    }

    pub(crate) fn tell_of_pushed_out(&mut self) {
        let mut pushed_out = std::mem::take(&mut self.network.pushed_out);
        for (at, packet) in pushed_out.drain(..) {
            let source = &mut self.sources[packet.source as usize];
            self.network.was_pushed_out(at, source, packet);
        }
        self.network.pushed_out = pushed_out;
    }

    /// Closes the books as of now and checks that every packet is accounted for, and that Little's
    /// law holds for the queue.
    ///
    /// # Errors
    /// [`Unbalanced`] if not.
    pub fn settle(&mut self) -> Result<&Probes, Unbalanced> {
        self.settle_queue();
        self.settle_flows();
        self.settle_delivered();
        let network = &mut self.network;
        // On a copy: a death before now may still be told.
        network.probes.states = network.probes.population.as_of(network.now);
        network.probes.snapshot(network.now, true);
        let in_flight = network.agenda.count(|packet| packet.kind().is_data())
            + network.ingress_waiting.held()
            + network.egress_waiting.held()
            + network.queue.waiting()
            + network.tandem.in_flight();
        let Lifetime { sent, received, dropped, .. } = network.lifetime;
        if sent != received + dropped + in_flight {
            return Err(Unbalanced::Packets { sent, received, dropped, in_flight });
        }
        let (waiting, ahead) = (network.queue.waiting(), network.queue.ahead(network.now));
        let others = network.queue.others_waited(network.now);
        let waited = network.lifetime.waited(network.now, waiting, ahead).wrapping_add(others);
        let held = network.probes.occupancy.lifetime_integral();
        if held != waited {
            return Err(Unbalanced::Waiting { held, waited });
        }
        if HOPS {
            network.tandem.check_return(network.now, &network.probes)?;
        }
        Ok(&network.probes)
    }

    /// The probes as they stand.
    #[must_use]
    pub fn probes(&self) -> &Probes {
        &self.network.probes
    }

    /// Virtual time now.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.network.now
    }

    /// Whether the warm-up is over.
    #[must_use]
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Each source's packets and ON time since the warm-up.
    pub fn records(&self) -> impl Iterator<Item = &SourceRecord> {
        let missing = self.class_of.len().saturating_sub(self.sources.len());
        let made = self.sources.iter().map(|source| &source.record);
        made.chain(std::iter::repeat_n(&self.nothing, missing))
    }

    /// A capture under way.
    pub fn capture_mut(&mut self, index: usize) -> Option<&mut Capture> {
        self.network.probes.captures.get_mut(index)
    }

    fn transfers(&self) -> u64 {
        if self.measuring { self.network.probes.finished() } else { 0 }
    }

    fn share_of(&self, goal: Goal) -> f64 {
        let by_time = self.network.now as f64 / goal.until as f64;
        by_time.max(self.transfers() as f64 / goal.transfers as f64)
    }

    #[inline(always)]
    fn packet(&mut self, place: Place, packet: Packet) {
        let source = &mut self.sources[packet.source as usize];
        let way = &self.ways[source.record.class()];
        match place {
            Place::Return | Place::ReturnSecond | Place::ReturnQueued => {
                self.network.at_return(source, way, packet);
            }
            Place::Bottleneck | Place::BottleneckQueued => {
                self.network.meet(source, way, packet);
            }
            Place::Sender if S::HEARS_LOSSES && packet.kind() == Kind::Loss => {
                self.network.at_sender_of_lost(source, way, packet);
            }
            Place::Sender => self.network.at_sender(source, way, packet),
        }
    }

    #[inline(never)]
    fn take_from_heap(&mut self, queue: usize, due: Nanos) {
        match self.network.agenda.take_from_heap(queue, due) {
            Event::Packet(place, packet) => self.packet(place, packet),
            Event::Timer(Timer::Transfer, class) => self.begin_transfer(class as usize),
            Event::Timer(Timer::Crowd, class) => self.network.end_silences(class),
            Event::Timer(timer, index) => {
                let source = &mut self.sources[index as usize];
                let way = &self.ways[source.record.class()];
                match timer {
                    Timer::Start | Timer::Transfer | Timer::Crowd => {
                        self.network.start(source, way, index);
                    }
                    Timer::Retransmission => self.network.retransmission_timer(source, way, index),
                    Timer::DelayedAck => self.network.ack_timer(source, way, index),
                    Timer::Pacing => self.network.pacing_timer(source, way, index),
                }
            }
        }
    }

    /// A transfer begins on a source that is idle or new, unless it has to wait.
    #[inline(never)]
    fn begin_transfer(&mut self, class: usize) {
        let Some(size) = self.network.next_transfer(class) else { return };
        let idle = self.network.transfers[class].idle.pop_front();
        let index = match idle {
            Some(index) => index,
            None if self.sources.len() >= self.most_sources => {
                self.crowded = true;
                self.network.limit = 0;
                return;
            }
            None => {
                self.network.access_loss.add_source(class);
                self.add_source(class as u16);
                self.sources.len() as u32 - 1
            }
        };
        let source = &mut self.sources[index as usize];
        self.network.begin_transfer(source, &self.ways[class], index, size);
    }

    /// Nothing is due before the limit: the goal is reached, or a slot or the warm-up is over.
    #[inline(never)]
    fn pass_limit(&mut self, goal: Goal) -> bool {
        if self.transfers() >= goal.transfers {
            return true;
        }
        if self.boundary > goal.until {
            self.network.now = goal.until;
            return true;
        }
        self.network.now = self.boundary;
        self.settle_queue();
        let now = self.network.now;
        if self.measuring {
            self.settle_flows();
            self.network.probes.snapshot(now, false);
        } else {
            self.measuring = true;
            self.network.wanted = goal.transfers;
            self.network.probes.begin_measurement(now);
            self.sources.iter_mut().for_each(|source| source.record.begin_measurement());
            self.begin_flows();
        }
        self.boundary = self.network.probes.ledger.slot_ends();
        self.network.limit = self.boundary.min(goal.until);
        false
    }

    /// From here on times in flight of endless flows count, and what is acknowledged.
    fn begin_flows(&mut self) {
        let now = self.network.now.saturating_sub(self.network.lead_in);
        self.acked_before.fill(0);
        for source in &mut self.sources {
            let class = source.record.class();
            if self.ways[class].progress.is_endless() {
                source.record.count_flight_from(now, source.sender.in_flight());
                self.acked_before[class] += source.sender.acked();
            }
        }
    }

    /// Tells the ledger of endless flows, up to the time up to which senders have been asked.
    fn settle_flows(&mut self) {
        let now = self.network.now.saturating_sub(self.network.lead_in);
        for (class, way) in self.ways.iter().enumerate() {
            if !way.progress.is_endless() {
                continue;
            }
            let flows = || self.sources.iter().filter(|source| source.record.class() == class);
            let acked: u64 = flows().map(|flow| flow.sender.acked()).sum();
            let times = flows()
                .map(|flow| flow.record.in_flight_until(now, flow.sender.in_flight()))
                .fold(0, u64::wrapping_add);
            let ledger = &mut self.network.probes.ledger;
            ledger.set(class, ClassCell::Acked, acked - self.acked_before[class]);
            ledger.set(class, ClassCell::InFlight, times);
        }
    }

    /// Tells what flows had delivered by times at which nothing arrived afterwards.
    fn settle_delivered(&mut self) {
        let Network { probes, now, .. } = &mut self.network;
        if probes.delivered.is_idle() {
            return;
        }
        for (index, source) in self.sources.iter().enumerate() {
            let way = &self.ways[source.record.class()];
            let begun = source.size != 0 && !source.sender.is_opening();
            if way.progress.is_endless() && begun {
                let told = now.saturating_sub(way.answer_to_event);
                probes.close_delivered(told, &source.record, index);
            }
        }
    }

    fn settle_queue(&mut self) {
        let Network { queue, probes, tandem, now, .. } = &mut self.network;
        queue.settle(*now, probes);
        probes.occupancy.held(queue.held(), *now);
        probes.load.tell(queue.carried(*now));
        if HOPS {
            tandem.settle(*now, probes);
        }
    }
}

#[cfg(test)]
mod tests;
