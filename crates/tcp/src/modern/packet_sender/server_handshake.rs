//! Handshake of the sending end, which is the server.

use super::super::handshake::SynAttempts;
use super::super::packet_header::{AckHeader, DataHeader};
use super::super::segment::{Timestamps, timestamp_at};
use super::super::stack_options::ModernTcpConfig;
use super::super::tick_clock::TimerSpan;
use super::{PacketSender, establish_connection};
use crate::file_size::FileSize;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::{NEVER, Nanos};

/// Server side of a handshake in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerHandshake {
    seed: u64,
    file: FileSize,
    state: ServerState,
}

#[derive(Clone, Copy, Debug)]
enum ServerState {
    /// Waiting for a SYN.
    Listen,
    /// SYN-ACK is due or was sent.
    SynReceived { attempts: SynAttempts, due: bool },
    /// TLS handshake: number of flights sent.
    TlsFlights { flights: usize },
}

impl ServerHandshake {
    pub(super) fn new(file: FileSize, seed: u64) -> Self {
        Self { seed, file, state: ServerState::Listen }
    }

    /// Deadline for retransmitting SYN-ACK; [`None`] if the sender's own timer is used.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Nanos> {
        match self.state {
            ServerState::Listen => Some(NEVER),
            ServerState::SynReceived { attempts, .. } => Some(attempts.deadline),
            ServerState::TlsFlights { .. } => None,
        }
    }
}

impl PacketSender {
    /// Waits for the SYN of a connection that will send `file`.
    pub(super) fn listen(&mut self, file: FileSize, seed: u64) {
        self.handshake = Some(Box::new(ServerHandshake::new(file, seed)));
    }

    /// Whether the handshake is in progress.
    #[inline(always)]
    #[must_use]
    pub fn is_handshake_pending(&self) -> bool {
        self.handshake.is_some()
    }

    /// Processes a SYN or a later packet of the handshake; returns true if the packet was consumed,
    /// so that the sender ignores it.
    #[inline(never)]
    pub(super) fn on_handshake_packet(
        &mut self,
        now: Nanos,
        header: &AckHeader,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> bool {
        let Some(handshake) = &mut self.handshake else { return header.syn };
        if header.syn {
            let attempts = SynAttempts::new(NEVER, &tcp.stack);
            let new = ServerState::SynReceived { attempts, due: true };
            match &mut handshake.state {
                ServerState::Listen => handshake.state = new,
                // The client has not received the SYN-ACK.
                ServerState::SynReceived { due, .. } => *due = true,
                ServerState::TlsFlights { .. } => (),
            }
            return true;
        }
        if let ServerState::SynReceived { attempts, .. } = handshake.state {
            let stack = &tcp.stack;
            let stamps = header.timestamps().filter(|_| stack.timestamps);
            let rtt = attempts.handshake_rtt(now, stamps);
            self.sender.restart_connection(now, handshake.seed, stack);
            establish_connection(&mut self.sender, now, rtt, tcp);
            if attempts.starts_with_one_packet(stamps) {
                self.sender.start_with_one_packet();
            }
            handshake.state = ServerState::TlsFlights { flights: 0 };
            self.on_client_messages(now, header.messages, tcp, probe);
            return true;
        }
        false
    }

    /// The client has sent `messages` messages: sends the next flight, or the file.
    pub(super) fn on_client_messages(
        &mut self,
        now: Nanos,
        messages: u8,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        let Some(handshake) = &mut self.handshake else { return };
        let ServerState::TlsFlights { flights } = &mut handshake.state else { return };
        if usize::from(messages) <= *flights {
            return;
        }
        if let Some(bytes) = tcp.handshake.flight_bytes().get(*flights) {
            *flights += 1;
            let packets = bytes.div_ceil(tcp.stack.mss);
            let lacking = packets * tcp.stack.mss - bytes;
            self.write_data(now, FileSize { packets, lacking }, tcp, probe);
        } else {
            let file = handshake.file;
            self.handshake = None;
            probe.on_tcp_event(now, TcpEvent::Opened { packets: file.packets });
            self.write_file(now, file, tcp, probe);
        }
    }

    /// Returns the header of a SYN-ACK (packet 0) if it is due.
    #[inline(never)]
    pub(super) fn poll_syn_ack(&mut self, now: Nanos, tcp: &ModernTcpConfig) -> Option<DataHeader> {
        let ServerState::SynReceived { attempts, due, .. } = &mut self.handshake.as_mut()?.state
        else {
            return None;
        };
        if !std::mem::take(due) {
            return None;
        }
        let wait = attempts.record_transmission(now);
        attempts.deadline = self.sender.clock.expiry_of(TimerSpan::new(now, wait));
        Some(DataHeader::new_syn_ack(Timestamps { value: timestamp_at(now), echo: self.echo }, tcp))
    }

    /// A SYN-ACK timed out.
    pub(super) fn on_handshake_timer(&mut self, tcp: &ModernTcpConfig) -> bool {
        let Some(handshake) = &mut self.handshake else { return false };
        let ServerState::SynReceived { attempts, due } = &mut handshake.state else { return false };
        attempts.on_syn_ack_timeout(&tcp.stack);
        *due = true;
        true
    }
}
