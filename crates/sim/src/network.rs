//! What all sources share, and what happens to a packet on its way through it.

use crate::access::Waiting;
use crate::agenda::{Agenda, Place, Timer};
use crate::clock::{Nanos, Transmitter};
use crate::hops::Tandem;
use crate::jitter::Jitter;
use crate::loss::BottleneckLosses;
use crate::mean_field::Crowd;
use crate::packet::{Kind, Label, Packet};
use crate::probe::{Listener, Probes, Shown, Tap};
use crate::queue::{Passed, QueueDiscipline, Verdict};
use crate::source::Source;
use crate::tcp::{ReceivingEnd, SendingEnd, Transmission};
use crate::traffic::{Coupling, Traffic};
use crate::transfers::Transfers;
use crate::way::{AccessLoss, Way};

/// Data packets over a whole run, the warm-up included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifetime {
    pub sent: u64,
    pub received: u64,
    pub dropped: u64,
    /// The times at which packets left the queue less those at which they entered it, summed up
    /// modulo 2^64. What is still in it has not left: see [`Lifetime::waited`].
    pub sojourns: u64,
}

impl Lifetime {
    /// What packets have waited in the queue, up to `now` where they are still in it: `waiting` of
    /// them, and those whose departure is known, which leave later by `ahead` in all.
    pub(crate) fn waited(&self, now: Nanos, waiting: u64, ahead: Nanos) -> u64 {
        self.sojourns.wrapping_add(waiting.wrapping_mul(now)).wrapping_sub(ahead)
    }
}

/// The shared part of a run.
///
/// A method takes the source that it concerns and the way that the source's packets take. Without
/// `HOPS` the bottleneck is the only place where packets meet.
pub(crate) struct Network<Q, const TAPS: bool, const HOPS: bool> {
    pub agenda: Agenda,
    pub now: Nanos,
    /// From a sender to where packets meet first, for the class that is nearest.
    pub lead_in: Nanos,
    /// From the return bottleneck over the sender to there, likewise.
    pub lead: Nanos,
    /// What passes a tap is told at most so long after it has passed.
    pub latest: Nanos,
    /// What is due later than this is not to be done yet.
    pub limit: Nanos,
    /// Transfers after which the run stops.
    pub wanted: u64,
    pub ingress_waiting: Waiting,
    pub egress_waiting: Waiting,
    pub queue: Q,
    /// Packets that had to leave the queue, and when; their sources are still to be told.
    pub pushed_out: Vec<(Nanos, Packet)>,
    /// What a source that is polled sends now; empty between two events.
    pub burst: Vec<Packet>,
    pub link: Transmitter,
    /// How long the bottleneck takes for a packet that waits for nothing.
    pub service: Nanos,
    pub return_link: Transmitter,
    pub tandem: Box<Tandem>,
    pub loss: Option<BottleneckLosses>,
    /// Looked at where there are `HOPS`.
    pub jitter: Option<Jitter>,
    pub access_loss: AccessLoss,
    pub probes: Probes,
    pub capturing: bool,
    /// Whether anything is to be told of packets that pass.
    pub watched: bool,
    /// Whether the time is kept that each packet waits at the bottleneck.
    pub keeps_waits: bool,
    /// Whether the link's rate, or that of a hop, is not constant.
    pub varying_rates: bool,
    pub lifetime: Lifetime,
    pub traffic: Vec<Traffic>,
    /// Of each class that stands for a larger one; empty where none does.
    pub crowds: Vec<Option<Crowd>>,
    pub coupling: Coupling,
    pub transfers: Vec<Transfers>,
}

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// The time at which a sender is asked in an event that is due now.
    #[inline(always)]
    pub(crate) fn sender_now(&self) -> Nanos {
        self.now - self.lead_in
    }

    /// Hands packets to the source's own link and sets the timer.
    #[inline(always)]
    pub(crate) fn send<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        index: u32,
        sent: Transmission,
    ) {
        if S::POLLS {
            return self.send_polled(source, way, index);
        }
        let now = self.sender_now();
        self.set_sender_timer(source, index);
        let connection = source.connection;
        let packet = |number, kind| {
            let label = Label::new(kind, 0);
            Packet { source: index, connection, number, label }
        };
        if sent.retransmit != 0 {
            self.retransmit(source, way, now, packet(sent.retransmit, Kind::Retransmission));
        }
        let end = sent.from + sent.count;
        let mut from = sent.from;
        while from < sent.fresh_from.min(end) {
            self.retransmit(source, way, now, packet(from, Kind::Retransmission));
            from += 1;
        }
        for number in from..end {
            self.send_packet(source, way, now, packet(number, Kind::Data));
        }
    }

    #[inline(always)]
    fn set_sender_timer<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32) {
        if S::POLLS && source.sender.deadline_at_least() + self.lead_in >= source.timer {
            return;
        }
        let due = source.sender.deadline() + self.lead_in;
        if due < source.timer {
            source.timer = due;
            self.agenda.timer(Timer::Retransmission, index, due);
        }
    }

    /// The same for a sender that is polled. All is asked before anything is sent: a packet that
    /// comes next takes the clock to where it gets, and the timers must be known by then.
    fn send_polled<S: SendingEnd>(&mut self, source: &mut Source<S>, way: &Way, index: u32) {
        let now = self.sender_now();
        let mut burst = std::mem::take(&mut self.burst);
        let connection = source.connection;
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, index);
        source.sender.poll_transmit(now, &way.tcp, listener, |number, label| {
            burst.push(Packet { source: index, connection, number, label });
        });
        self.set_sender_timer(source, index);
        self.set_pacing_timer(source, index);
        for packet in &burst {
            self.send_packet(source, way, now, *packet);
        }
        burst.clear();
        self.burst = burst;
    }

    #[inline(never)]
    fn retransmit<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        now: Nanos,
        packet: Packet,
    ) {
        self.send_packet(source, way, now, packet);
    }

    #[inline(always)]
    fn send_packet<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        now: Nanos,
        packet: Packet,
    ) {
        self.lifetime.sent += 1;
        let numbers = TAPS && !S::POLLS && self.watched;
        let packet = if numbers { self.with_serial(packet) } else { packet };
        // Packets of a handshake, and FIN alone, are none of the data that is told of.
        if !(S::POLLS && (packet.number == 0 || source.sender.is_opening())) {
            self.probes.sent(now, &mut source.record, &packet);
            if !S::HEARS_LOSSES && packet.kind() == Kind::Data {
                source.record.enter_flight(now);
            }
        }
        self.pass(source, Tap::Sender, now, &packet);
        let link = &way.ingress;
        if !way.plain
            && (self.access_loss.ingress_loses(packet.source)
                || !link.has_room(now, source.ingress_free))
        {
            if let Some(loss) = &mut self.loss {
                loss.lost_before(packet.source);
            }
            return self.dropped_on_access(now, source, packet);
        }
        let idle = source.ingress_free <= now;
        let short = if S::POLLS { packet.label.short_bytes() } else { None };
        let time = short.map_or(link.data_time, |bytes| link.short_time(bytes));
        source.ingress_free = source.ingress_free.max(now) + time;
        let mut due = source.ingress_free + link.delay;
        if HOPS && self.tandem.begins_with_own() {
            let Some(meets) = self.reach_meeting(source, due, packet) else { return };
            due = meets;
        }
        if S::POLLS {
            // `lead_in` is that of full packets: a shorter one would have been here before now.
            due = due.max(self.now);
        }
        if self.comes_next(due) && !self.overtakes(source, due) {
            self.now = due;
            self.meet(source, way, packet);
        } else {
            self.schedule_arrival(source, way, idle, due, packet);
        }
    }

    /// A data packet will reach the bottleneck at `due`; `idle` says whether it found its own
    /// link idle.
    #[inline(always)]
    fn schedule_arrival<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        idle: bool,
        due: Nanos,
        packet: Packet,
    ) {
        let class = source.record.class();
        if idle || (HOPS && self.tandem.begins_with_own()) {
            self.agenda.packet(Place::Bottleneck, class, due, packet);
        } else if self.agenda.packet_in_order(Place::BottleneckQueued, class, due, packet) {
            // It has an event of its own.
        } else if is_full::<S>(&packet) && due - way.ingress.data_time > self.now {
            // The packet before it is still to come, and will send it on its way.
            self.ingress_waiting.push(&mut source.ingress_waiting, due, packet);
        } else {
            self.agenda.packet(Place::BottleneckQueued, class, due, packet);
        }
    }

    /// Whether nothing else happens before `due`, so that it needs no event.
    #[inline(always)]
    pub(crate) fn comes_next(&self, due: Nanos) -> bool {
        (due == self.now && !(Q::HOLDS && self.departs_now()) && !(HOPS && self.hop_departs_now()))
            || (due < self.agenda.next().1
                && due <= self.limit
                && !(Q::HOLDS && self.comes_between(due))
                && !(HOPS && self.tandem.comes_between(due)))
    }

    /// Whether a packet that gets to the first hop at `due` would be there before another one of its
    /// class that is due at the same time, and had to wait for a departure.
    #[inline(always)]
    fn overtakes<S: SendingEnd>(&self, source: &Source<S>, due: Nanos) -> bool {
        (Q::HOLDS || HOPS)
            && self.varying_rates
            && self.agenda.comes(Place::Bottleneck, source.record.class()) <= due
    }

    /// Whether a packet that has left the queue at this very moment still counts as held: a token
    /// bucket takes no time for it, and departures come before arrivals.
    fn departs_now(&self) -> bool {
        self.queue.link_leaves() <= self.now
    }

    /// The same of a hop.
    fn hop_departs_now(&self) -> bool {
        self.tandem.next_departure().0 <= self.now
    }

    /// Whether before `due` the link takes a packet that waits, a packet of others arrives, or a
    /// source hears of one that had to leave the queue.
    fn comes_between(&self, due: Nanos) -> bool {
        due >= self.queue.link_leaves()
            || !self.pushed_out.is_empty()
            || (Q::CROSSED && due >= self.queue.cross_comes())
    }

    /// A data packet reaches the place where it first meets others: the bottleneck, unless there is
    /// a hop before.
    #[inline(always)]
    pub(crate) fn meet<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        packet: Packet,
    ) {
        let follows = self.now + way.ingress.data_time;
        if let Some(next) = self.ingress_waiting.pop_due(&mut source.ingress_waiting, follows) {
            let class = source.record.class();
            self.agenda.packet(Place::BottleneckQueued, class, follows, next);
        }
        if HOPS && self.tandem.meets_before() {
            return self.at_meeting(source, way, packet);
        }
        self.at_bottleneck(source, way, packet);
    }

    /// A data packet reaches the bottleneck.
    #[inline(always)]
    pub(crate) fn at_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        packet: Packet,
    ) {
        if source.announced != packet.connection {
            source.announced = packet.connection;
            self.probes.population.birth(self.now);
        }
        self.pass(source, Tap::BottleneckIn, self.now, &packet);
        if self.loss.as_mut().is_some_and(|loss| loss.loses(packet.source)) {
            return self.dropped_at_bottleneck(source, packet, true);
        }
        match self.offer::<S>(&packet) {
            Verdict::Departs { leaves, found } => {
                self.lifetime.sojourns = self.lifetime.sojourns.wrapping_add(leaves - self.now);
                self.probes.arrived(&source.record, &packet, found);
                if (S::POLLS || Q::DROPS_HELD) && self.keeps_waits {
                    let waited = (leaves - self.now).saturating_sub(self.service);
                    self.probes.passed(&source.record, Passed { waited, marked: false });
                }
                self.leave_bottleneck(source, way, leaves, packet);
            }
            Verdict::Held { found, pushed_out } => {
                self.probes.arrived(&source.record, &packet, found);
                self.held(pushed_out);
            }
            Verdict::Dropped => self.dropped_at_bottleneck(source, packet, false),
        }
        if Q::DROPS_HELD {
            self.take_dropped();
        }
    }

    /// Packets that the queue held and dropped leave it; their sources are told behind the event.
    #[inline]
    pub(crate) fn take_dropped(&mut self) {
        let known = self.pushed_out.len();
        self.queue.take_dropped(&mut self.pushed_out, &mut self.probes);
        for (at, _) in &self.pushed_out[known..] {
            self.lifetime.sojourns = self.lifetime.sojourns.wrapping_add(*at);
        }
    }

    /// Offers a packet to the bottleneck's queue. There, only what leaves as soon as its turn is known
    /// takes the time of its own length.
    #[inline(always)]
    fn offer<S: SendingEnd>(&mut self, packet: &Packet) -> Verdict {
        let Self { queue, link, probes, now, .. } = self;
        let short = if S::POLLS { packet.label.short_bytes() } else { None };
        match short {
            Some(bytes) => link.with_length(bytes, |link| queue.offer(*now, packet, link, probes)),
            None => queue.offer(*now, packet, link, probes),
        }
    }

    /// A packet waits in the queue until the link takes it.
    #[inline(always)]
    fn held(&mut self, pushed_out: Option<Packet>) {
        if let Some(packet) = pushed_out {
            // One enters the queue as another leaves it.
            self.pushed_out.push((self.now, packet));
        } else {
            self.lifetime.sojourns = self.lifetime.sojourns.wrapping_sub(self.now);
        }
    }

    /// On from the bottleneck, which the packet will have left at `leaves`.
    #[inline(always)]
    pub(crate) fn leave_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        leaves: Nanos,
        packet: Packet,
    ) {
        self.pass(source, Tap::BottleneckOut, leaves, &packet);
        if HOPS {
            let gets_on = self.jitter.as_mut().map_or(leaves, |jitter| jitter.gets_on(leaves));
            return self.behind_bottleneck(source, way, gets_on + way.forward, packet);
        }
        self.reach_egress(source, way, leaves + way.forward, packet);
    }

    /// Over the egress link, which the packet enters at `enters`, to the receiver, and its answer to
    /// the return bottleneck; the next event is `lead` after it has got there.
    #[inline(always)]
    pub(crate) fn reach_egress<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        enters: Nanos,
        packet: Packet,
    ) {
        let link = &way.egress;
        if !way.plain
            && (self.access_loss.egress_loses(packet.source)
                || !link.has_room(enters, source.egress_free))
        {
            return self.dropped_on_access(enters, source, packet);
        }
        let idle = source.egress_free <= enters;
        let short = if S::POLLS { packet.label.short_bytes() } else { None };
        let time = short.map_or(link.data_time, |bytes| link.short_time(bytes));
        source.egress_free = source.egress_free.max(enters) + time;
        let due = source.egress_free + way.egress_to_event;
        let class = source.record.class();
        if idle {
            self.agenda.packet(Place::Return, class, due, packet);
        } else if !is_full::<S>(&packet) {
            self.agenda.packet(Place::ReturnSecond, class, due, packet);
        } else if !self.agenda.packet_in_order(Place::ReturnSecond, class, due, packet) {
            self.egress_waiting.push(&mut source.egress_waiting, due, packet);
        }
    }

    #[inline(never)]
    fn with_serial(&self, packet: Packet) -> Packet {
        let label = Label::new(packet.kind(), self.lifetime.sent as u16);
        Packet { label, ..packet }
    }

    #[inline(always)]
    pub(crate) fn pass<S: SendingEnd>(
        &mut self,
        source: &Source<S>,
        tap: Tap,
        at: Nanos,
        packet: &Packet,
    ) {
        if TAPS && self.watched {
            self.watch(source, tap, at, packet);
        }
    }

    #[inline(never)]
    fn watch<S: SendingEnd>(&mut self, source: &Source<S>, tap: Tap, at: Nanos, packet: &Packet) {
        if let (Tap::Sender, Some(loss)) = (tap, &mut self.loss) {
            loss.at_sender(packet);
        }
        if self.capturing {
            let shown = match packet.kind() {
                Kind::Ack => source.receiver.shown(packet.label),
                _ => source.sender.shown(packet.label),
            };
            self.capture(tap, at, packet, shown);
        }
    }

    pub(crate) fn capture(&mut self, tap: Tap, at: Nanos, packet: &Packet, shown: Shown) {
        let settled = self.now.saturating_sub(self.latest);
        self.probes.capture(tap, at, packet, shown, settled);
    }
}

/// Whether a packet is as long as most are: what waits behind one on a source's own link follows it
/// after the time of such a packet.
#[inline(always)]
fn is_full<S: SendingEnd>(packet: &Packet) -> bool {
    !S::POLLS || packet.label.short_bytes().is_none()
}
