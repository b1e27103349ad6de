//! Start and end of files and endless flows.

use super::apps::AppState;
use super::config::FlowTraffic;
use super::parcel::{CLIENT, SERVER};
use super::{FlowSimulation, FlowTimer};
use crate::clock::seconds_to_nanos;
use crate::traffic::{FileSize, TRANSFER_GAP, Traffic};

impl FlowSimulation {
    /// Starts the next file of a flow, its endless data, or its application.
    pub(super) fn start_flow(&mut self, flow: usize) {
        if self.flows[flow].stopped {
            return;
        }
        let class = self.flows[flow].record.class();
        match &self.classes[class].traffic {
            FlowTraffic::Files(Traffic::OnOff { size, rounding, coupling, persistent, .. }) => {
                let state = &mut self.flows[flow];
                let file = if state.size != 0 {
                    // The rest of a file that was in progress at time 0.
                    FileSize::of_full_packets(state.size)
                } else {
                    let drawn = if let Some(population) = &mut self.populations[class] {
                        size.value_at_normal_quantile(
                            population.draw_next_size_deviate(flow as u32),
                        )
                    } else {
                        let sizes = &mut state.sizes;
                        self.coupling.draw_file_size(flow as u32, size, *coupling, sizes)
                    };
                    rounding.round_to_file_size(drawn)
                };
                let is_open = *persistent && state.connection > 0;
                if is_open && self.begin_file_on_open_connection(flow, file) {
                    return;
                }
                self.begin_file(flow, file);
            }
            FlowTraffic::Files(Traffic::Bulk { .. }) => {
                self.begin_file(flow, FileSize::of_full_packets(u32::MAX - 1));
            }
            // The class starts transfers.
            FlowTraffic::Files(Traffic::Transfers { .. } | Traffic::Arrivals { .. }) => (),
            FlowTraffic::Requests(_) => self.begin_requests(flow),
            FlowTraffic::Stream(_) => self.begin_stream(flow),
            FlowTraffic::Page(_) => self.begin_page(flow),
            FlowTraffic::Messages(_) => {
                let sends = self.classes[class].sends;
                for end in [SERVER, CLIENT].into_iter().filter(|end| sends[*end]) {
                    self.send_message(flow, end);
                }
            }
            FlowTraffic::Ping(_) => self.send_message(flow, CLIENT),
        }
    }

    /// Bytes of a file.
    fn bytes_of(&self, flow: usize, file: FileSize) -> u64 {
        let payload = self.classes[self.flows[flow].record.class()].payload_bytes;
        u64::from(file.packets) * u64::from(payload) - u64::from(file.lacking)
    }

    /// Starts a file, or endless data in each direction, on a new connection.
    fn begin_file(&mut self, flow: usize, file: FileSize) {
        let state = &mut self.flows[flow];
        state.size = file.packets;
        self.wire.probes.record_transfer_start(self.now, &mut state.record, file.packets);
        let class = &self.classes[state.record.class()];
        let (sends, closes) = (class.sends, class.traffic_closes());
        let has_handshake = self.class_has_handshake(flow);
        let bytes = self.bytes_of(flow, file);
        if has_handshake {
            let state = &mut self.flows[flow];
            state.opened_at = Some(self.now);
            state.unwritten = sends.map(|sends| if sends { bytes } else { 0 });
            self.start_connection(flow, &[SERVER, CLIENT]);
            let client = &self.flows[flow].ends[CLIENT].endpoint;
            if client.as_ref().is_some_and(|client| !client.is_opening()) {
                // 0-RTT.
                self.on_opened(flow, CLIENT);
            }
            return self.transmit(flow, CLIENT);
        }
        let ends: &[usize] = match sends {
            [true, true] => &[SERVER, CLIENT],
            [true, false] => &[SERVER],
            [false, _] => &[CLIENT],
        };
        self.start_connection(flow, ends);
        for end in ends.iter().copied() {
            self.write_file(flow, end, bytes);
            if closes {
                self.close_stream(flow, end);
            }
            self.transmit(flow, end);
        }
    }

    /// Starts a file on the connection of the previous one; returns false if it has too few packet
    /// numbers left.
    fn begin_file_on_open_connection(&mut self, flow: usize, file: FileSize) -> bool {
        let bytes = self.bytes_of(flow, file);
        let state = &mut self.flows[flow];
        let end = self.classes[state.record.class()].file_sender();
        let endpoint = state.ends[end].endpoint.as_ref();
        if endpoint.is_none_or(|endpoint| !endpoint.has_packet_numbers_left(file.packets)) {
            return false;
        }
        state.size = file.packets;
        // The next packet that reaches the headline link makes the source active again.
        self.wire.seen[flow] = state.connection - 1;
        self.wire.probes.record_transfer_start(self.now, &mut state.record, file.packets);
        self.write(flow, end, bytes);
        self.transmit(flow, end);
        true
    }

    pub(super) fn class_has_handshake(&self, flow: usize) -> bool {
        self.classes[self.flows[flow].record.class()].has_handshake()
    }

    fn close_stream(&mut self, flow: usize, end: usize) {
        if let Some(endpoint) = &mut self.flows[flow].ends[end].endpoint {
            endpoint.close_after_burst();
        }
    }

    /// The session of an end is open: its application writes.
    #[inline(never)]
    pub(super) fn on_opened(&mut self, flow: usize, end: usize) {
        let state = &mut self.flows[flow];
        if matches!(state.app, AppState::Page(_)) {
            return self.on_page_connection_open(flow, end);
        }
        let class = &self.classes[state.record.class()];
        let is_file = matches!(class.traffic, FlowTraffic::Files(_));
        let closes = class.traffic_closes();
        let bytes = std::mem::take(&mut state.unwritten[end]);
        if bytes > 0 {
            if is_file {
                let size = state.size;
                self.wire.probes.record_file_start(self.now, &mut state.record, size);
            }
            self.write_file(flow, end, bytes);
            if closes {
                self.close_stream(flow, end);
            }
        }
    }

    /// Writes the bytes of a file, or the first chunk of an application that writes in steps.
    fn write_file(&mut self, flow: usize, end: usize, bytes: u64) {
        if self.classes[self.flows[flow].record.class()].writing.is_some() {
            self.begin_chunks(flow, end);
        } else {
            self.write(flow, end, bytes);
        }
    }

    /// The last packet of a file is acknowledged.
    #[inline(never)]
    pub(super) fn finish_transfer(&mut self, flow: usize) {
        let (now, probes) = (self.now, &mut self.wire.probes);
        let state = &mut self.flows[flow];
        let opened_at = state.opened_at.take();
        probes.record_transfer_delivery(&state.record, opened_at);
        probes.record_transfer_end(now, &mut state.record, state.size);
        if self.wire.seen[flow] == state.connection {
            probes.population.record_source_end(now);
        }
        state.size = 0;
        let class = state.record.class();
        match &self.classes[class].traffic {
            FlowTraffic::Files(Traffic::OnOff { off, coupling, .. }) => {
                if let Some(population) = &mut self.populations[class] {
                    population.add_idle_source(flow as u32, 0);
                    return self.stop_if_complete();
                }
                let draws = &mut state.off_times;
                let seconds = self.coupling.draw_off_time(flow as u32, off, *coupling, draws);
                let due = now + seconds_to_nanos(seconds);
                self.timers.set(FlowTimer::Start, flow, SERVER, due);
            }
            FlowTraffic::Files(
                traffic @ (Traffic::Arrivals { .. } | Traffic::Transfers { .. }),
            ) => {
                probes.record_single_transfer_end(now, &state.record);
                self.arrivals[class].idle.push_back(flow as u32);
                if matches!(traffic, Traffic::Transfers { .. }) {
                    self.timers.set(FlowTimer::Arrival, class, SERVER, now + TRANSFER_GAP);
                }
            }
            _ => (),
        }
        self.stop_if_complete();
    }

    fn stop_if_complete(&mut self) {
        if self.wire.probes.transfers_finished_after_warm_up() >= self.wanted_transfers {
            self.limit = 0;
        }
    }

    /// Starts the next transfer of a class, or performs the next step of its scaled population.
    pub(super) fn on_class_timer(&mut self, class: usize) {
        let Some(population) = &mut self.populations[class] else {
            return self.begin_arriving_transfer(class);
        };
        let (now, timers) = (self.now, &mut self.timers);
        population.end_off_times_of_step(|source, after| {
            timers.set(FlowTimer::Start, source as usize, SERVER, now + after);
        });
        timers.set(FlowTimer::Arrival, class, SERVER, now + population.step_length());
    }

    /// Starts a transfer of a class on an idle or new flow.
    fn begin_arriving_transfer(&mut self, class: usize) {
        let arrivals = &mut self.arrivals[class];
        let file = match &self.classes[class].traffic {
            FlowTraffic::Files(Traffic::Arrivals { gap, size, rounding }) => {
                let file = rounding.round_to_file_size(size.draw_value(&mut arrivals.sizes));
                let next = self.now + seconds_to_nanos(gap.draw_value(&mut arrivals.gaps));
                self.timers.set(FlowTimer::Arrival, class, SERVER, next);
                file
            }
            FlowTraffic::Files(Traffic::Transfers { sizes }) => {
                // A spurious retransmission may still be in flight after its transfer.
                if self.network.packets_in_transit() > 0 {
                    let next = self.now + TRANSFER_GAP;
                    return self.timers.set(FlowTimer::Arrival, class, SERVER, next);
                }
                self.network.restart_idle_links(self.now);
                let file = sizes[arrivals.started % sizes.len()];
                arrivals.started += 1;
                file
            }
            _ => return,
        };
        let idle = arrivals.idle.pop_front();
        let flow = match idle {
            Some(flow) => flow as usize,
            None if self.has_too_many_flows() => {
                self.too_many_transfers = true;
                self.limit = 0;
                return;
            }
            None => self.add_flow(class),
        };
        self.flows[flow].record.reset_transfer_losses();
        self.begin_file(flow, file);
    }

    /// Stops an endless flow or application: packets in flight arrive, and nothing else is sent.
    #[cold]
    pub(super) fn stop_flow(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        state.app.stop();
        state.stopped = true;
        if state.connection == 0 {
            return;
        }
        let sends = self.classes[state.record.class()].sends;
        for (end, sends) in state.ends.iter_mut().zip(sends) {
            let Some(endpoint) = &mut end.endpoint else { continue };
            if sends {
                state.record.end_flight_times(self.now, endpoint.packets_in_flight());
            }
            endpoint.abandon();
        }
        if self.wire.seen[flow] == state.connection {
            self.wire.probes.population.record_source_end(self.now);
        }
        state.size = 0;
    }
}
