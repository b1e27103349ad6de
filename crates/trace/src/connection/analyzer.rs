//! Analyses connections, identified by slot: all connections, or the connections assigned to one
//! thread ([`worker_pool`](super::worker_pool)).

use std::sync::Arc;

use super::analysis_batch::{AnalysisBatch, AnalysisStep};
use super::connection_state::{Connection, ConnectionBeginning};
use super::segment_encoding::decode_segments;
use crate::analysis::{ConnectionReport, EventQuota, ObservedEnd};
use crate::segment::Segment;

/// Connections by slot. Processes their steps in the order of the capture.
#[derive(Debug)]
pub(super) struct Analyzer {
    connections: Vec<Option<Box<Connection>>>,
    /// Maximum number of listed events per direction, and the quota of all connections.
    events: usize,
    quota: Arc<EventQuota>,
}

impl Analyzer {
    pub(super) fn new(events: usize, quota: Arc<EventQuota>) -> Self {
        Self { connections: Vec::new(), events, quota }
    }

    /// Adds the connection of a slot.
    pub(super) fn begin_connection(&mut self, slot: usize, beginning: &ConnectionBeginning) {
        if slot >= self.connections.len() {
            self.connections.resize_with(slot + 1, || None);
        }
        self.connections[slot] = Some(Box::new(Connection::new(*beginning, self.events)));
    }

    #[inline]
    pub(super) fn push_segment(&mut self, slot: usize, segment: &Segment) {
        if let Some(Some(connection)) = self.connections.get_mut(slot) {
            connection.process_segment(segment, &self.quota);
        }
    }

    /// Processes the log of a slot.
    #[inline]
    pub(super) fn analyze_log(&mut self, slot: usize, log: &[u8]) {
        if let Some(Some(connection)) = self.connections.get_mut(slot) {
            let (last, ends) = (connection.last_time(), connection.ends());
            decode_segments(log, last, ends, |segment| {
                connection.process_segment(segment, &self.quota)
            });
        }
    }

    /// Removes the connection of a slot and returns its report.
    pub(super) fn end_connection(
        &mut self,
        slot: usize,
        end: ObservedEnd,
        copies: [u64; 2],
    ) -> Option<ConnectionReport> {
        let connection = self.connections.get_mut(slot)?.take()?;
        Some(connection.into_report(end, copies, &self.quota))
    }

    /// Processes a batch. Returns the reports of ended connections with their sequence numbers.
    pub(super) fn run_batch(&mut self, batch: &AnalysisBatch) -> Vec<(u64, ConnectionReport)> {
        let mut reports = Vec::new();
        let (mut beginnings, mut logs) = (batch.beginnings.iter(), batch.logs.as_slice());
        for &(slot, step) in &batch.steps {
            match step {
                AnalysisStep::Begin => {
                    let beginning = beginnings.next();
                    beginning
                        .into_iter()
                        .for_each(|beginning| self.begin_connection(slot, beginning));
                }
                AnalysisStep::Log { bytes } => {
                    let (log, rest) = logs.split_at(bytes);
                    logs = rest;
                    self.analyze_log(slot, log);
                }
                AnalysisStep::End { number, end, copies } => {
                    let report = self.end_connection(slot, end, copies);
                    reports.extend(report.map(|report| (number, report)));
                }
            }
        }
        reports
    }

    /// Moves the connections into `2^shift` analyzers by slot.
    pub(super) fn split_by_slot(&mut self, shift: u32) -> Vec<Self> {
        let part = || Self::new(self.events, Arc::clone(&self.quota));
        let mut parts: Vec<_> = (0..1 << shift).map(|_| part()).collect();
        for (slot, connection) in self.connections.drain(..).enumerate() {
            parts[slot & ((1 << shift) - 1)].connections.push(connection);
        }
        parts
    }

    /// Takes back the connections moved by [`split_by_slot`](Self::split_by_slot).
    pub(super) fn join_parts(&mut self, parts: Vec<Self>, shift: u32) {
        for (share, part) in parts.into_iter().enumerate() {
            for (slot, connection) in part.connections.into_iter().enumerate() {
                let slot = (slot << shift) + share;
                if slot >= self.connections.len() {
                    self.connections.resize_with(slot + 1, || None);
                }
                self.connections[slot] = connection;
            }
        }
    }
}
