//! What a source sends: how a transfer begins and ends, on a connection of its own or on the one
//! that all its transfers take.

use super::Network;
use super::path::Way;
use super::source::Source;
use super::transfers::GAP;
use crate::agenda::Timer;
use crate::clock::{Nanos, nanoseconds};
use crate::probe::Listener;
use crate::queue::QueueDiscipline;
use crate::tcp::{ReceivingEnd, SendingEnd, Silence, TcpConfig, Transmission};
use crate::traffic::{FileSize, First, Traffic, first};

/// Marks the connection of a source that is silent and will go on with it: what is left of the last
/// transfer is ignored meanwhile.
const SILENT: u32 = 1 << 31;

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// When a source begins for the first time; `None` if it does not by itself. `place` counts the
    /// sources of its class.
    pub(crate) fn first_start<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        place: usize,
        index: u32,
    ) -> Option<Nanos> {
        let class = source.record.class();
        let crowd = self.crowds.get_mut(class).and_then(Option::as_mut);
        let Source { silences, sizes, .. } = source;
        let seconds = match first(&self.traffic[class], place, crowd.is_some(), silences, sizes)? {
            First::Sends { after, size } => {
                source.size = size;
                after
            }
            First::Silent { left, over } => {
                if let Some(crowd) = crowd {
                    crowd.falls_silent(index, nanoseconds(over));
                    return None;
                }
                left
            }
        };
        Some(nanoseconds(seconds) + self.lead_in)
    }

    /// A silence is over: a transfer begins.
    pub(crate) fn start<S: SendingEnd>(&mut self, source: &mut Source<S>, way: &Way, index: u32) {
        let file = match &self.traffic[source.record.class()] {
            // What is left of a file that was under way at the beginning.
            Traffic::OnOff { .. } if source.size != 0 => FileSize::of_full(source.size),
            Traffic::OnOff { size, rounding, coupling, .. } => {
                let drawn = if let Some(Some(crowd)) = self.crowds.get_mut(source.record.class()) {
                    size.at_normal(crowd.next_size(index))
                } else {
                    self.coupling.size(index, size, *coupling, &mut source.sizes)
                };
                rounding.file(drawn)
            }
            Traffic::Bulk { stop, .. } => {
                let ends = stop.is_some_and(|stop| self.now >= nanoseconds(stop) + self.lead_in);
                if ends {
                    return self.stop(source);
                }
                FileSize::of_full(u32::MAX - 1)
            }
            // These begin by themselves: `transfers.rs`.
            Traffic::Transfers { .. } | Traffic::Arrivals { .. } => return,
        };
        if source.connection & SILENT != 0 {
            return self.go_on(source, way, index, file);
        }
        self.begin(source, way, index, file);
    }

    /// An endless flow stops: what is in flight arrives, and nothing else is sent.
    #[cold]
    fn stop<S: SendingEnd>(&mut self, source: &mut Source<S>) {
        if source.size == 0 {
            return;
        }
        let now = self.sender_now();
        source.record.end_flight(now, source.sender.in_flight());
        source.sender.abandon();
        source.receiver.abandon();
        if source.announced == source.connection {
            self.probes.population.death(now);
        }
        source.connection = source.connection.wrapping_add(1) & !SILENT;
        source.size = 0;
    }

    /// A transfer begins on a connection of its own.
    #[inline(always)]
    pub(crate) fn begin<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        index: u32,
        file: FileSize,
    ) {
        let now = self.sender_now();
        source.size = file.packets;
        source.sender.lack(file.lacking);
        self.probes.transfer_started(now, &mut source.record, source.size);
        if S::POLLS && way.tcp.has_handshake() {
            return self.open(source, way, index);
        }
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, index);
        let sent = source.sender.start(now, source.size, &way.tcp, listener);
        self.send(source, way, index, sent);
    }

    /// The receiver opens the connection of a transfer: its SYN is sent now.
    #[inline(never)]
    fn open<S: SendingEnd>(&mut self, source: &mut Source<S>, way: &Way, index: u32) {
        let size = source.size;
        self.ask(source, way, index, |sender, now, tcp, listener| {
            sender.start(now, size, tcp, listener)
        });
        source.received = source.connection;
        source.receiver.start(&way.tcp);
        let seed = source.sender.seed();
        source.receiver.connect(self.sender_now(), seed, &way.tcp);
        self.set_ack_timer(source, way, index);
    }

    /// A transfer begins on the connection of the one before it.
    #[inline(never)]
    fn go_on<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        index: u32,
        file: FileSize,
    ) {
        let size = file.packets;
        source.connection &= !SILENT;
        if !source.sender.has_numbers(size) {
            source.connection = source.connection.wrapping_add(1) & !SILENT;
            return self.begin(source, way, index, file);
        }
        source.sender.lack(file.lacking);
        let now = self.sender_now();
        source.size = size;
        // The first packet to reach the bottleneck makes the source active again.
        source.announced = source.connection.wrapping_sub(1);
        self.probes.transfer_started(now, &mut source.record, size);
        // An ack of data that came twice may still be on its way: then nothing was silent.
        let silence = Silence {
            heard: now.saturating_sub(source.ack_free),
            sent: now.saturating_sub(source.ingress_free),
        };
        let sent = self.ask(source, way, index, |sender, now, tcp, listener| {
            sender.go_on(now, size, silence, tcp, listener)
        });
        self.send(source, way, index, sent);
    }

    /// Asks a sender, with a listener to what it publishes.
    pub(crate) fn ask<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        index: u32,
        question: impl FnOnce(&mut S, Nanos, &TcpConfig, &mut Listener<'_>) -> Transmission,
    ) -> Transmission {
        let now = self.sender_now();
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, index);
        question(&mut source.sender, now, &way.tcp, listener)
    }

    #[inline(never)]
    pub(crate) fn finish<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32) {
        let now = self.sender_now();
        if S::POLLS {
            let opened_at = source.sender.take_opened_at();
            self.probes.opened_finished(&source.record, opened_at);
        }
        self.probes.transfer_finished(now, &mut source.record, source.size);
        self.probes.population.death(now);
        let class = source.record.class();
        let ended = source.connection;
        source.connection = ended.wrapping_add(1) & !SILENT;
        match &self.traffic[class] {
            Traffic::OnOff { persistent, .. } => {
                source.size = 0;
                if *persistent {
                    source.connection = ended | SILENT;
                }
                self.fall_silent(source, index);
            }
            Traffic::Transfers { .. } => {
                self.agenda.timer(Timer::Transfer, class as u32, self.now + GAP);
                self.end_transfer(source, index);
            }
            Traffic::Arrivals { .. } => self.end_transfer(source, index),
            Traffic::Bulk { .. } => {}
        }
        if self.probes.finished() >= self.wanted {
            self.limit = 0;
        }
    }

    /// The silence between two files begins.
    #[inline(always)]
    fn fall_silent<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32) {
        let class = source.record.class();
        if let Some(Some(crowd)) = self.crowds.get_mut(class) {
            return crowd.falls_silent(index, 0);
        }
        let Traffic::OnOff { off, coupling, .. } = &self.traffic[class] else { return };
        let seconds = self.coupling.silence(index, off, *coupling, &mut source.silences);
        self.agenda.timer(Timer::Start, index, self.now + nanoseconds(seconds));
    }
}
