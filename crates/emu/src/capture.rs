//! Captures the packets at one side of the link, without delaying the loop.

use crate::namespace::thread_start_error;
use crate::path::{LinkPort, LinkSide, PacketInTransit, PacketObserver};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};
use tcpcast_link::time::Nanos;
use tcpcast_net::{DropCause, LinkId, Service};
use tcpcast_wire::CaptureWriter;

/// Bytes stored per packet: all headers with all options.
const SNAPLEN: usize = 128;
const BUFFER_BYTES: usize = 1 << 18;
/// Maximum number of buffers waiting for a slow disk; more make the capture fail.
const MAX_QUEUED_BUFFERS: usize = 64;

/// Passes buffers to a writer thread, because the disk may be slower than a packet can wait.
struct ThreadedWriter {
    buffer: Vec<u8>,
    full: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl ThreadedWriter {
    fn new(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let (full, waiting) = sync_channel(MAX_QUEUED_BUFFERS);
        let writer = Builder::new()
            .spawn(move || write_received_buffers(&waiting, sink))
            .map_err(thread_start_error)?;
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Ok(Self { buffer, full: Some(full), writer: Some(writer) })
    }

    fn send_buffer(&mut self) -> io::Result<()> {
        let buffer = std::mem::replace(&mut self.buffer, Vec::with_capacity(BUFFER_BYTES));
        let slow = || io::Error::other("the disk is full, or too slow for the capture");
        match &self.full {
            Some(full) => full.try_send(buffer).map_err(|_| slow()),
            None => Ok(()),
        }
    }

    fn join_writer(mut self) -> io::Result<()> {
        if let Some(full) = self.full.take() {
            // A failed writer does not receive the buffer; its error is returned below.
            let _ = full.send(std::mem::take(&mut self.buffer));
        }
        let panicked = || io::Error::other("the capture's writer panicked");
        self.writer.take().map_or(Ok(()), |writer| writer.join().map_err(|_| panicked())?)
    }
}

fn write_received_buffers(waiting: &Receiver<Vec<u8>>, mut sink: impl Write) -> io::Result<()> {
    waiting.iter().try_for_each(|buffer| sink.write_all(&buffer))?;
    sink.flush()
}

impl Write for ThreadedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.send_buffer()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the packets at one side of the link: sent and received by hosts of that side.
pub struct LinkCapture {
    side: LinkSide,
    sides: Vec<LinkSide>,
    /// Time of day at link time 0, ns.
    began: Nanos,
    /// Total pause of the link's clock. The times of the capture are those of the host's clock,
    /// which does not pause. The hosts use this clock for timestamps and timers, which would
    /// contradict other times.
    paused: Nanos,
    file: CaptureWriter<ThreadedWriter>,
    error: Option<io::Error>,
}

impl LinkCapture {
    /// Creates a capture of one side, starting now.
    ///
    /// # Errors
    /// Returns the errors of the sink.
    pub fn new(
        side: LinkSide,
        ports: &[LinkPort],
        sink: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            side,
            sides: ports.iter().map(|port| port.side).collect(),
            began: began.as_nanos() as Nanos,
            paused: 0,
            file: CaptureWriter::new(ThreadedWriter::new(sink)?)?,
            error: None,
        })
    }

    fn write_packet(&mut self, now: Nanos, port: u16, packet: &[u8]) {
        if self.sides[usize::from(port)] != self.side || self.error.is_some() {
            return;
        }
        let kept = &packet[..packet.len().min(SNAPLEN)];
        let time = self.began + self.paused + now;
        let written = self.file.write_packet(time, packet.len() as u32, kept);
        self.error = written.err();
    }

    /// Writes the remaining packets.
    ///
    /// # Errors
    /// Returns the first error of the sink.
    pub fn finish_writing(self) -> io::Result<()> {
        let ended = self.file.into_inner().join_writer();
        self.error.map_or(ended, Err)
    }
}

impl PacketObserver for LinkCapture {
    fn on_enter(&mut self, now: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        self.write_packet(now, packet.from, bytes);
    }

    fn on_deliver(&mut self, now: Nanos, _due: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        self.write_packet(now, packet.to, bytes);
    }

    fn on_clock_pause(&mut self, total_pause: Nanos) {
        self.paused = total_pause;
    }
}

/// Notifies both observers.
impl<A: PacketObserver, B: PacketObserver> PacketObserver for (A, B) {
    fn on_enter(&mut self, now: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        self.0.on_enter(now, packet, bytes);
        self.1.on_enter(now, packet, bytes);
    }

    fn on_link_entered(&mut self, link: LinkId, packet: &PacketInTransit, bytes: &[u8]) {
        self.0.on_link_entered(link, packet, bytes);
        self.1.on_link_entered(link, packet, bytes);
    }

    fn on_served(&mut self, link: LinkId, packet: &PacketInTransit, bytes: &[u8], of: &Service) {
        self.0.on_served(link, packet, bytes, of);
        self.1.on_served(link, packet, bytes, of);
    }

    fn on_drop(&mut self, link: LinkId, packet: &PacketInTransit, bytes: &[u8], of: DropCause) {
        self.0.on_drop(link, packet, bytes, of);
        self.1.on_drop(link, packet, bytes, of);
    }

    fn on_deliver(&mut self, now: Nanos, due: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        self.0.on_deliver(now, due, packet, bytes);
        self.1.on_deliver(now, due, packet, bytes);
    }

    fn on_clock_pause(&mut self, paused: Nanos) {
        self.0.on_clock_pause(paused);
        self.1.on_clock_pause(paused);
    }
}

/// Notifies the observer, if any.
impl PacketObserver for Option<LinkCapture> {
    fn on_enter(&mut self, now: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        if let Some(capture) = self {
            capture.on_enter(now, packet, bytes);
        }
    }

    fn on_deliver(&mut self, now: Nanos, due: Nanos, packet: &PacketInTransit, bytes: &[u8]) {
        if let Some(capture) = self {
            capture.on_deliver(now, due, packet, bytes);
        }
    }

    fn on_clock_pause(&mut self, total_pause: Nanos) {
        if let Some(capture) = self {
            capture.on_clock_pause(total_pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn capture_stores_truncated_packets_of_one_side() {
        let port = |side| LinkPort { side, address: Ipv4Addr::LOCALHOST };
        let packet = |from, to| PacketInTransit { from, to, ..PacketInTransit::default() };
        let sink = Shared::default();
        let ports = [port(LinkSide::Near), port(LinkSide::Far)];
        let mut capture = LinkCapture::new(LinkSide::Far, &ports, sink.clone()).unwrap();
        capture.on_enter(5, &packet(0, 1), &[0; 1500]);
        capture.on_deliver(7, 6, &packet(0, 1), &[1; 1500]);
        capture.on_enter(9, &packet(1, 0), &[2; 40]);
        capture.finish_writing().unwrap();
        let bytes = sink.0.lock().unwrap();
        assert_eq!(bytes.len(), 24 + 16 + SNAPLEN + 16 + 40);
        assert_eq!(bytes[24 + 12..24 + 16], 1500_u32.to_le_bytes());
    }

    #[test]
    fn capture_has_times_of_the_host() {
        let packet = PacketInTransit { from: 0, to: 1, ..PacketInTransit::default() };
        let sink = Shared::default();
        let ports = [LinkSide::Near, LinkSide::Far]
            .map(|side| LinkPort { side, address: Ipv4Addr::LOCALHOST });
        let mut capture = LinkCapture::new(LinkSide::Far, &ports, sink.clone()).ok();
        capture.on_deliver(1_000_000, 0, &packet, &[1; 40]);
        capture.on_clock_pause(20_000_000);
        capture.on_deliver(5_000_000, 0, &packet, &[1; 40]);
        capture.unwrap().finish_writing().unwrap();
        let bytes = sink.0.lock().unwrap();
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let time = |at: usize| u64::from(number(at)) * 1_000_000_000 + u64::from(number(at + 4));
        assert_eq!(time(24 + 16 + 40) - time(24), 24_000_000);
    }

    #[test]
    fn end_reports_full_disk() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let capture = LinkCapture::new(LinkSide::Near, &[], Full).unwrap();
        assert_eq!(capture.finish_writing().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
