//! Files one after another, each over a connection of its own on the empty path.

use super::tally::Shared;
use super::tcp_info::TcpInfo;
use super::{Driver, SERVICE, list, near};
use crate::command::LinkError;
use crate::network::Network;
use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often the driver looks for what was told.
const LOOKS: Duration = Duration::from_millis(20);
/// How often a sender is asked whether all is acknowledged, and how long it may take.
const ASKS: Duration = Duration::from_millis(1);
const ACKED_WITHIN: Duration = Duration::from_secs(300);
const PIECE: usize = 1 << 16;

impl Driver<'_> {
    /// Runs transfers; each is a line with its times, by the link's clock.
    pub(super) fn transfers(
        &mut self,
        sizes: &[u64],
        pause: Duration,
        close: bool,
    ) -> Result<(), LinkError> {
        let listener = self.listen(0)?;
        let (accepted, sockets) = channel();
        let sent = sizes.to_vec();
        let serving = thread::spawn(move || serve(&listener, &sent, close, &accepted));
        let (tell, told) = channel();
        let receiver = Client {
            network: Arc::clone(&self.network),
            tally: self.tally.clone(),
            sockets,
            pause,
        };
        let wanted = sizes.to_vec();
        let receiving = thread::spawn(move || receiver.receive_all(&wanted, &tell));
        loop {
            match told.try_recv() {
                Ok(line) => self.tell("transfer", &line)?,
                Err(TryRecvError::Empty) => self.sleep_until(Instant::now() + LOOKS)?,
                Err(TryRecvError::Disconnected) => break,
            }
        }
        let lateness = list(self.tally.get().lateness);
        self.tell("lateness", &lateness)?;
        let gone = |_| LinkError::Loop(io::Error::other("an end of a transfer panicked"));
        receiving.join().map_err(gone)?.map_err(LinkError::Network)?;
        serving.join().map_err(gone)?.map_err(LinkError::Network)
    }
}

/// Sends each file as soon as its connection is there.
fn serve(
    listener: &TcpListener,
    sizes: &[u64],
    close: bool,
    accepted: &Sender<TcpStream>,
) -> io::Result<()> {
    let piece = vec![0; PIECE];
    for size in sizes {
        let (mut stream, _) = listener.accept()?;
        let mut left = *size;
        while left > 0 {
            let bytes = left.min(PIECE as u64);
            stream.write_all(&piece[..bytes as usize])?;
            left -= bytes;
        }
        if close {
            stream.shutdown(Shutdown::Write)?;
        }
        if accepted.send(stream).is_err() {
            break;
        }
    }
    Ok(())
}

struct Client {
    network: Arc<Network>,
    tally: Shared,
    sockets: Receiver<TcpStream>,
    pause: Duration,
}

impl Client {
    fn receive_all(&self, sizes: &[u64], tell: &Sender<String>) -> io::Result<()> {
        for (number, size) in sizes.iter().enumerate() {
            self.tally.forget(0);
            let line = self.receive(number, *size)?;
            if tell.send(line).is_err() {
                break;
            }
            // What is still on the link comes to a connection that is gone.
            thread::sleep(self.pause);
        }
        Ok(())
    }

    /// Fetches a file: which it is, when the receiver asked, the first packet entered the link, the
    /// last byte left it, and the last ack; how many packets were sent, dropped, retransmitted.
    fn receive(&self, number: usize, size: u64) -> io::Result<String> {
        let to = SocketAddrV4::new(near(0), SERVICE);
        let far = &self.network.hosts[self.network.hosts.len() - 1];
        let mut stream = far.namespace.within(|| TcpStream::connect(to))?;
        let mut piece = vec![0; PIECE];
        let mut left = size;
        while left > 0 {
            let most = left.min(PIECE as u64) as usize;
            match stream.read(&mut piece[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => left -= bytes as u64,
            }
        }
        let delivered = self.tally.get().flows[0].last_left;
        let gone = |_| io::Error::other("a sender has gone");
        let sender = self.sockets.recv().map_err(gone)?;
        let retransmitted = self.acknowledged(&sender)?;
        for end in [&stream, &sender] {
            // A reset, so that nothing of the connection is left on the path.
            setsockopt(end, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 })?;
        }
        let flow = self.tally.get().flows[0];
        let first = flow.first_entered.unwrap_or(0);
        Ok(list([
            number as u64,
            flow.opened.unwrap_or(first),
            first,
            delivered,
            flow.last_ack,
            flow.arrived,
            flow.queue_drops + flow.random_drops,
            u64::from(retransmitted),
        ]))
    }

    /// Waits until the sender knows that all has arrived.
    fn acknowledged(&self, sender: &TcpStream) -> io::Result<u32> {
        let until = Instant::now() + ACKED_WITHIN;
        loop {
            let info = TcpInfo::of(sender)?;
            if info.in_flight() == 0 {
                return Ok(info.retransmitted());
            }
            if Instant::now() > until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(ASKS);
        }
    }
}
