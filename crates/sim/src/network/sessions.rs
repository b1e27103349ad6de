//! Sessions: start and end of files, on one connection per file or on a persistent connection.

use super::Network;
use super::path::ClassPath;
use super::source::SimulatedSource;
use crate::clock::{Nanos, seconds_to_nanos};
use crate::event_queue::TimerKind;
use crate::probe::SenderListener;
use crate::queue::QueueDiscipline;
use crate::traffic::{FileSize, SourceStart, TRANSFER_GAP, Traffic, draw_source_start};
use tcpcast_tcp::{IdleTime, PacketsToSend, ReceivingEnd, SendingEnd, TcpConfig};

/// Marks a persistent connection during an OFF time, in which late packets of the last transfer are
/// ignored.
const IDLE_FLAG: u32 = 1 << 31;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Time of the first start of a source; `None` if the source does not start on its own.
    /// `index_in_class` is its index within the class.
    pub(crate) fn draw_first_start_time<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        index_in_class: usize,
        index: u32,
    ) -> Option<Nanos> {
        let class = source.record.class();
        let population = self.populations.get_mut(class).and_then(Option::as_mut);
        let SimulatedSource { off_times, sizes, .. } = source;
        let seconds = match draw_source_start(
            &self.traffic[class],
            index_in_class,
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
                    population.add_idle_source(index, seconds_to_nanos(elapsed));
                    return None;
                }
                left
            }
        };
        Some(seconds_to_nanos(seconds) + self.sender_lookahead)
    }

    /// Starts a transfer at the end of an OFF time.
    pub(crate) fn start_transfer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
    ) {
        let file = match &self.traffic[source.record.class()] {
            // The rest of a file that was in progress at time 0.
            Traffic::OnOff { .. } if source.size != 0 => FileSize::of_full_packets(source.size),
            Traffic::OnOff { size, rounding, coupling, .. } => {
                let drawn = if let Some(Some(population)) =
                    self.populations.get_mut(source.record.class())
                {
                    size.value_at_normal_quantile(population.draw_next_size_deviate(index))
                } else {
                    self.coupling.draw_file_size(index, size, *coupling, &mut source.sizes)
                };
                rounding.round_to_file_size(drawn)
            }
            Traffic::Bulk { stop, .. } => {
                let ends = stop
                    .is_some_and(|stop| self.now >= seconds_to_nanos(stop) + self.sender_lookahead);
                if ends {
                    return self.stop_endless_flow(source);
                }
                FileSize::of_full_packets(u32::MAX - 1)
            }
            // Started in `transfers.rs`.
            Traffic::Transfers { .. } | Traffic::Arrivals { .. } => return,
        };
        if source.connection & IDLE_FLAG != 0 {
            return self.begin_file_on_open_connection(source, path, index, file);
        }
        self.begin_file_on_new_connection(source, path, index, file);
    }

    /// Stops an endless flow: packets in flight arrive, and nothing else is sent.
    #[cold]
    fn stop_endless_flow<S: SendingEnd>(&mut self, source: &mut SimulatedSource<S>) {
        if source.size == 0 {
            return;
        }
        let now = self.current_sender_time();
        source.record.end_flight_times(now, source.sender.packets_in_flight());
        source.sender.abandon_connection();
        source.receiver.abandon_connection();
        if source.seen_at_bottleneck == source.connection {
            self.probes.population.record_source_end(now);
        }
        source.connection = source.connection.wrapping_add(1) & !IDLE_FLAG;
        source.size = 0;
    }

    /// Starts a transfer on a new connection.
    #[inline(always)]
    pub(crate) fn begin_file_on_new_connection<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
        file: FileSize,
    ) {
        let now = self.current_sender_time();
        source.size = file.packets;
        source.sender.set_last_packet_padding(file.lacking);
        self.probes.record_transfer_start(now, &mut source.record, source.size);
        if S::IS_POLLED && path.tcp.has_handshake() {
            return self.open_connection(source, path, index);
        }
        let listener = &mut SenderListener::new(&mut self.probes, &mut source.record, index);
        let sent =
            source.sender.start_file_on_new_connection(now, source.size, &path.tcp, listener);
        self.send_packets_and_set_timer(source, path, source.template_packet(index), sent);
    }

    /// Opens the connection of a transfer: the receiver sends its SYN now.
    #[inline(never)]
    fn open_connection<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
    ) {
        let size = source.size;
        self.call_sender_with_listener(source, path, index, |sender, now, tcp, listener| {
            sender.start_file_on_new_connection(now, size, tcp, listener)
        });
        source.received = source.connection;
        source.receiver.start_connection(&path.tcp);
        let seed = source.sender.draw_connection_seed();
        source.receiver.open_connection(self.current_sender_time(), seed, &path.tcp);
        self.set_ack_timer(source, path, index);
    }

    /// Starts a transfer on the connection of the previous one.
    #[inline(never)]
    fn begin_file_on_open_connection<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
        file: FileSize,
    ) {
        let size = file.packets;
        source.connection &= !IDLE_FLAG;
        if !source.sender.has_packet_numbers_left(size) {
            source.connection = source.connection.wrapping_add(1) & !IDLE_FLAG;
            return self.begin_file_on_new_connection(source, path, index, file);
        }
        source.sender.set_last_packet_padding(file.lacking);
        let now = self.current_sender_time();
        source.size = size;
        // The next packet that reaches the bottleneck makes the source active again.
        source.seen_at_bottleneck = source.connection.wrapping_sub(1);
        self.probes.record_transfer_start(now, &mut source.record, size);
        // An acknowledgement of duplicate data may still be in flight: then the connection is not
        // idle.
        let idle = IdleTime {
            since_ack: now.saturating_sub(source.ack_free),
            since_sent: now.saturating_sub(source.ingress_free),
        };
        let sent =
            self.call_sender_with_listener(source, path, index, |sender, now, tcp, listener| {
                sender.send_file_on_open_connection(now, size, idle, tcp, listener)
            });
        self.send_packets_and_set_timer(source, path, source.template_packet(index), sent);
    }

    /// Calls a sender with a listener for its events.
    pub(crate) fn call_sender_with_listener<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
        call: impl FnOnce(&mut S, Nanos, &TcpConfig, &mut SenderListener<'_>) -> PacketsToSend,
    ) -> PacketsToSend {
        let now = self.current_sender_time();
        let listener = &mut SenderListener::new(&mut self.probes, &mut source.record, index);
        call(&mut source.sender, now, &path.tcp, listener)
    }

    #[inline(never)]
    pub(crate) fn finish_transfer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        index: u32,
    ) {
        let now = self.current_sender_time();
        if S::IS_POLLED {
            let opened_at = source.sender.take_opening_time();
            self.probes.record_transfer_delivery(&source.record, opened_at);
            source.sender.cache_deadline_lower_bound();
        }
        self.probes.record_transfer_end(now, &mut source.record, source.size);
        self.probes.population.record_source_end(now);
        let class = source.record.class();
        let ended = source.connection;
        source.connection = ended.wrapping_add(1) & !IDLE_FLAG;
        match &self.traffic[class] {
            Traffic::OnOff { persistent, .. } => {
                source.size = 0;
                if *persistent {
                    source.connection = ended | IDLE_FLAG;
                }
                self.start_off_time(source, index);
            }
            Traffic::Transfers { .. } => {
                self.events.set_timer(TimerKind::Transfer, class as u32, self.now + TRANSFER_GAP);
                self.end_transfer(source, index);
            }
            Traffic::Arrivals { .. } => self.end_transfer(source, index),
            Traffic::Bulk { .. } => {}
        }
        if self.probes.transfers_finished_after_warm_up() >= self.wanted {
            self.limit = 0;
        }
    }

    /// Starts the OFF time between two files.
    #[inline(always)]
    fn start_off_time<S: SendingEnd>(&mut self, source: &mut SimulatedSource<S>, index: u32) {
        let class = source.record.class();
        if let Some(Some(population)) = self.populations.get_mut(class) {
            return population.add_idle_source(index, 0);
        }
        let Traffic::OnOff { off, coupling, .. } = &self.traffic[class] else { return };
        let seconds = self.coupling.draw_off_time(index, off, *coupling, &mut source.off_times);
        self.events.set_timer(TimerKind::Start, index, self.now + seconds_to_nanos(seconds));
    }
}
