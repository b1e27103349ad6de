//! Sessions: start and end of files, on one connection per file or on a persistent connection.

use super::Network;
use super::path::Path;
use super::source::Source;
use super::transfers::TRANSFER_GAP;
use crate::clock::{Nanos, nanoseconds};
use crate::event_queue::Timer;
use crate::probe::Listener;
use crate::queue::QueueDiscipline;
use crate::tcp::{Idle, ReceivingEnd, SendingEnd, TcpConfig, Transmission};
use crate::traffic::{FileSize, SourceStart, Traffic, draw_start};

/// Marks a persistent connection during an OFF time, in which late packets of the last transfer are
/// ignored.
const IDLE: u32 = 1 << 31;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Time of the first start of a source; `None` if it does not start on its own. `place` is its
    /// index within the class.
    pub(crate) fn first_start<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        place: usize,
        index: u32,
    ) -> Option<Nanos> {
        let class = source.record.class();
        let population = self.populations.get_mut(class).and_then(Option::as_mut);
        let Source { off_times, sizes, .. } = source;
        let seconds = match draw_start(
            &self.traffic[class],
            place,
            population.is_some(),
            off_times,
            sizes,
        )? {
            SourceStart::Sends { after, size } => {
                source.size = size;
                after
            }
            SourceStart::Off { left, elapsed } => {
                if let Some(population) = population {
                    population.turn_off(index, nanoseconds(elapsed));
                    return None;
                }
                left
            }
        };
        Some(nanoseconds(seconds) + self.sender_lookahead)
    }

    /// Starts a transfer at the end of an OFF time.
    pub(crate) fn start<S: SendingEnd>(&mut self, source: &mut Source<S>, path: &Path, index: u32) {
        let file = match &self.traffic[source.record.class()] {
            // The rest of a file that was in progress at time 0.
            Traffic::OnOff { .. } if source.size != 0 => FileSize::full(source.size),
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
                FileSize::full(u32::MAX - 1)
            }
            // Started in `transfers.rs`.
            Traffic::Transfers { .. } | Traffic::Arrivals { .. } => return,
        };
        if source.connection & IDLE != 0 {
            return self.continue_connection(source, path, index, file);
        }
        self.begin(source, path, index, file);
    }

    /// Stops an endless flow: packets in flight arrive, and nothing else is sent.
    #[cold]
    fn stop<S: SendingEnd>(&mut self, source: &mut Source<S>) {
        if source.size == 0 {
            return;
        }
        let now = self.sender_now();
        source.record.end_flight(now, source.sender.in_flight());
        source.sender.abandon();
        source.receiver.abandon();
        if source.seen_at_bottleneck == source.connection {
            self.probes.population.death(now);
        }
        source.connection = source.connection.wrapping_add(1) & !IDLE;
        source.size = 0;
    }

    /// Starts a transfer on a new connection.
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

    /// Opens the connection of a transfer: the receiver sends its SYN now.
    #[inline(never)]
    fn open<S: SendingEnd>(&mut self, source: &mut Source<S>, path: &Path, index: u32) {
        let size = source.size;
        self.call_sender(source, path, index, |sender, now, tcp, listener| {
            sender.start(now, size, tcp, listener)
        });
        source.received = source.connection;
        source.receiver.start(&path.tcp);
        let seed = source.sender.seed();
        source.receiver.connect(self.sender_now(), seed, &path.tcp);
        self.set_ack_timer(source, path, index);
    }

    /// Starts a transfer on the connection of the previous one.
    #[inline(never)]
    fn continue_connection<S: SendingEnd>(
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
        // The next packet that reaches the bottleneck makes the source active again.
        source.seen_at_bottleneck = source.connection.wrapping_sub(1);
        self.probes.transfer_started(now, &mut source.record, size);
        // An acknowledgement of duplicate data may still be in flight: then the connection is not
        // idle.
        let idle = Idle {
            since_ack: now.saturating_sub(source.ack_free),
            since_sent: now.saturating_sub(source.ingress_free),
        };
        let sent = self.call_sender(source, path, index, |sender, now, tcp, listener| {
            sender.resume(now, size, idle, tcp, listener)
        });
        self.send(source, path, source.any_packet(index), sent);
    }

    /// Calls a sender with a listener for its events.
    pub(crate) fn call_sender<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
        call: impl FnOnce(&mut S, Nanos, &TcpConfig, &mut Listener<'_>) -> Transmission,
    ) -> Transmission {
        let now = self.sender_now();
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, index);
        call(&mut source.sender, now, &path.tcp, listener)
    }

    #[inline(never)]
    pub(crate) fn finish<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32) {
        let now = self.sender_now();
        if S::POLLS {
            let opened_at = source.sender.take_opened_at();
            self.probes.transfer_delivered(&source.record, opened_at);
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
                self.events.set_timer(Timer::Transfer, class as u32, self.now + TRANSFER_GAP);
                self.end_transfer(source, index);
            }
            Traffic::Arrivals { .. } => self.end_transfer(source, index),
            Traffic::Bulk { .. } => {}
        }
        if self.probes.finished() >= self.wanted {
            self.limit = 0;
        }
    }

    /// Starts the OFF time between two files.
    #[inline(always)]
    fn turn_off<S: SendingEnd>(&mut self, source: &mut Source<S>, index: u32) {
        let class = source.record.class();
        if let Some(Some(population)) = self.populations.get_mut(class) {
            return population.turn_off(index, 0);
        }
        let Traffic::OnOff { off, coupling, .. } = &self.traffic[class] else { return };
        let seconds = self.coupling.off_time(index, off, *coupling, &mut source.off_times);
        self.events.set_timer(Timer::Start, index, self.now + nanoseconds(seconds));
    }
}
