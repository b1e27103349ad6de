//! Sessions: how a file begins and ends, on a connection of its own or on the one that all files of
//! its source take.

use super::Network;
use super::path::Path;
use super::source::Source;
use super::transfers::GAP;
use crate::agenda::Timer;
use crate::clock::{Nanos, nanoseconds};
use crate::probe::Listener;
use crate::queue::QueueDiscipline;
use crate::tcp::{Idle, ReceivingEnd, SendingEnd, TcpConfig, Transmission};
use crate::traffic::{FileSize, First, Traffic, first};

/// Marks the connection of a source that is OFF and will go on with it: what is left of the last
/// transfer is ignored meanwhile.
const IDLE: u32 = 1 << 31;

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
        let population = self.populations.get_mut(class).and_then(Option::as_mut);
        let Source { off_times, sizes, .. } = source;
        let seconds =
            match first(&self.traffic[class], place, population.is_some(), off_times, sizes)? {
                First::Sends { after, size } => {
                    source.size = size;
                    after
                }
                First::Off { left, over } => {
                    if let Some(population) = population {
                        population.turns_off(index, nanoseconds(over));
                        return None;
                    }
                    left
                }
            };
        Some(nanoseconds(seconds) + self.sender_lookahead)
    }

    /// An OFF time is over: a transfer begins.
    pub(crate) fn start<S: SendingEnd>(&mut self, source: &mut Source<S>, path: &Path, index: u32) {
        let file = match &self.traffic[source.record.class()] {
            // What is left of a file in which the source began.
            Traffic::OnOff { .. } if source.size != 0 => FileSize::of_full(source.size),
            Traffic::OnOff { size, rounding, coupling, .. } => {
                let drawn = if let Some(Some(population)) =
                    self.populations.get_mut(source.record.class())
                {
                    size.at_normal(population.next_size(index))
                } else {
                    self.coupling.size(index, size, *coupling, &mut source.sizes)
                };
                rounding.file(drawn)
            }
            Traffic::Bulk { stop, .. } => {
                let ends =
                    stop.is_some_and(|stop| self.now >= nanoseconds(stop) + self.sender_lookahead);
                if ends {
                    return self.stop(source);
                }
                FileSize::of_full(u32::MAX - 1)
            }
            // These begin by themselves: `transfers.rs`.
            Traffic::Transfers { .. } | Traffic::Arrivals { .. } => return,
        };
        if source.connection & IDLE != 0 {
            return self.go_on(source, path, index, file);
        }
        self.begin(source, path, index, file);
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
        source.connection = source.connection.wrapping_add(1) & !IDLE;
        source.size = 0;
    }

    /// A transfer begins on a connection of its own.
    #[inline(always)]
    pub(crate) fn begin<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
        file: FileSize,
    ) {
        let now = self.sender_now();
        source.size = file.packets;
        source.sender.set_last_packet_padding(file.lacking);
        self.probes.transfer_started(now, &mut source.record, source.size);
        if S::POLLS && path.tcp.has_handshake() {
            return self.open(source, path, index);
        }
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, index);
        let sent = source.sender.start(now, source.size, &path.tcp, listener);
        self.send(source, path, source.any_packet(index), sent);
    }

    /// The receiver opens the connection of a transfer: its SYN is sent now.
    #[inline(never)]
    fn open<S: SendingEnd>(&mut self, source: &mut Source<S>, path: &Path, index: u32) {
        let size = source.size;
        self.ask(source, path, index, |sender, now, tcp, listener| {
            sender.start(now, size, tcp, listener)
        });
        source.received = source.connection;
        source.receiver.start(&path.tcp);
        let seed = source.sender.seed();
        source.receiver.connect(self.sender_now(), seed, &path.tcp);
        self.set_ack_timer(source, path, index);
    }

    /// A transfer begins on the connection of the one before it.
    #[inline(never)]
    fn go_on<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
        file: FileSize,
    ) {
        let size = file.packets;
        source.connection &= !IDLE;
        if !source.sender.has_numbers(size) {
            source.connection = source.connection.wrapping_add(1) & !IDLE;
            return self.begin(source, path, index, file);
        }
        source.sender.set_last_packet_padding(file.lacking);
        let now = self.sender_now();
        source.size = size;
        // The first packet to reach the bottleneck makes the source active again.
        source.announced = source.connection.wrapping_sub(1);
        self.probes.transfer_started(now, &mut source.record, size);
        // An ack of data that came twice may still be on its way: then the connection was not idle.
        let idle = Idle {
            since_ack: now.saturating_sub(source.ack_free),
            since_sent: now.saturating_sub(source.ingress_free),
        };
        let sent = self.ask(source, path, index, |sender, now, tcp, listener| {
            sender.resume(now, size, idle, tcp, listener)
        });
        self.send(source, path, source.any_packet(index), sent);
    }

    /// Asks a sender, with a listener to what it publishes.
    pub(crate) fn ask<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
        question: impl FnOnce(&mut S, Nanos, &TcpConfig, &mut Listener<'_>) -> Transmission,
    ) -> Transmission {
        let now = self.sender_now();
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, index);
        question(&mut source.sender, now, &path.tcp, listener)
    }

    #[inline(never)]
    pub(crate) fn finish<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32) {
        let now = self.sender_now();
        if S::POLLS {
            let opened_at = source.sender.take_opened_at();
            self.probes.opened_finished(&source.record, opened_at);
            source.sender.cache_deadline();
        }
        self.probes.transfer_finished(now, &mut source.record, source.size);
        self.probes.population.death(now);
        let class = source.record.class();
        let ended = source.connection;
        source.connection = ended.wrapping_add(1) & !IDLE;
        match &self.traffic[class] {
            Traffic::OnOff { persistent, .. } => {
                source.size = 0;
                if *persistent {
                    source.connection = ended | IDLE;
                }
                self.turn_off(source, index);
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

    /// The OFF time between two files begins.
    #[inline(always)]
    fn turn_off<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32) {
        let class = source.record.class();
        if let Some(Some(population)) = self.populations.get_mut(class) {
            return population.turns_off(index, 0);
        }
        let Traffic::OnOff { off, coupling, .. } = &self.traffic[class] else { return };
        let seconds = self.coupling.off_time(index, off, *coupling, &mut source.off_times);
        self.agenda.timer(Timer::Start, index, self.now + nanoseconds(seconds));
    }
}
