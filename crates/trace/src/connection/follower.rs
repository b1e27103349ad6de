//! Who follows connections, by their places: at home, or on a thread of its own ([`team`](super::team)) its share.

use std::hint::black_box;
use std::sync::Arc;

use super::batch::{Batch, Step};
use super::encoding::read;
use super::live::{Beginning, Connection};
use crate::analysis::{Budget, ConnectionReport, End};
use crate::segment::Segment;

/// Connections that are fetched together.
pub(super) const FETCHED: usize = 16;

/// Connections by place. It is told what its connections are to follow, in the order of the capture.
#[derive(Debug)]
pub(super) struct Follower {
    known: Vec<Option<Box<Connection>>>,
    /// Events kept of a direction, and those that may still be kept of all.
    events: usize,
    budget: Arc<Budget>,
}

impl Follower {
    pub(super) fn new(events: usize, budget: Arc<Budget>) -> Self {
        Self { known: Vec::new(), events, budget }
    }

    /// Begins to follow the connection of a place.
    pub(super) fn meet(&mut self, place: usize, beginning: &Beginning) {
        if place >= self.known.len() {
            self.known.resize_with(place + 1, || None);
        }
        self.known[place] = Some(Box::new(Connection::new(*beginning, self.events)));
    }

    #[inline]
    pub(super) fn push(&mut self, place: usize, segment: &Segment) {
        if let Some(Some(known)) = self.known.get_mut(place) {
            known.push(segment, &self.budget);
        }
    }

    /// Follows what a log of a place says.
    #[inline]
    pub(super) fn settle(&mut self, place: usize, log: &[u8]) {
        if let Some(Some(known)) = self.known.get_mut(place) {
            let (last, ends) = (known.last(), known.ends());
            read(log, last, ends, |segment| known.push(segment, &self.budget));
        }
    }

    /// What is said of the connection of a place, which goes.
    pub(super) fn end(
        &mut self,
        place: usize,
        end: End,
        copies: [u64; 2],
    ) -> Option<ConnectionReport> {
        let known = self.known.get_mut(place)?.take()?;
        Some(known.report(end, copies, &self.budget))
    }

    /// Fetches from memory what will change at these places, a few.
    pub(super) fn fetch(&self, places: impl Iterator<Item = usize> + Clone) {
        let known = || places.clone().filter_map(|place| self.known.get(place)?.as_deref());
        black_box(known().map(Connection::fetch).fold(0, u64::wrapping_add));
        black_box(known().map(Connection::fetch_more).fold(0, u64::wrapping_add));
        black_box(known().map(Connection::fetch_most).fold(0, u64::wrapping_add));
    }

    /// Does what a batch says; the reports of connections that end, by their turn.
    pub(super) fn follow(&mut self, batch: &Batch) -> Vec<(u64, ConnectionReport)> {
        let mut reports = Vec::new();
        let (mut beginnings, mut logs) = (batch.beginnings.iter(), batch.logs.as_slice());
        for steps in batch.steps.chunks(FETCHED) {
            self.fetch(steps.iter().map(|step| step.0));
            for &(place, step) in steps {
                match step {
                    Step::Meet => {
                        let beginning = beginnings.next();
                        beginning.into_iter().for_each(|beginning| self.meet(place, beginning));
                    }
                    Step::Log { bytes } => {
                        let (log, rest) = logs.split_at(bytes);
                        logs = rest;
                        self.settle(place, log);
                    }
                    Step::End { turn, end, copies } => {
                        let report = self.end(place, end, copies);
                        reports.extend(report.map(|report| (turn, report)));
                    }
                }
            }
        }
        reports
    }

    /// Parts with connections: two to the power of `shift` followers, each with its share of the places.
    pub(super) fn split(&mut self, shift: u32) -> Vec<Self> {
        let part = || Self::new(self.events, Arc::clone(&self.budget));
        let mut parts: Vec<_> = (0..1 << shift).map(|_| part()).collect();
        for (place, known) in self.known.drain(..).enumerate() {
            parts[place & ((1 << shift) - 1)].known.push(known);
        }
        parts
    }

    /// Takes back what it has parted with.
    pub(super) fn join(&mut self, parts: Vec<Self>, shift: u32) {
        for (share, part) in parts.into_iter().enumerate() {
            for (place, known) in part.known.into_iter().enumerate() {
                let place = (place << shift) + share;
                if place >= self.known.len() {
                    self.known.resize_with(place + 1, || None);
                }
                self.known[place] = known;
            }
        }
    }
}
