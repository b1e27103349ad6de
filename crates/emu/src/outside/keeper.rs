//! A process that has the host forward, and sets that back when the link's process has ended.
//!
//! It is no child of the link's namespaces, so it outlives whatever is killed there. Links share an
//! interface by locks on its setting: the last one that forwards by it sets it back.

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, chdir, close, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

/// The end of a conversation with the keeper; it sets everything back when this is closed.
#[derive(Debug)]
pub(super) struct Keeper(UnixStream);

impl Keeper {
    /// Starts it, in the calling process's network namespace.
    pub(super) fn start() -> io::Result<Self> {
        let (ours, its) = UnixStream::pair()?;
        // SAFETY: the process has one thread, so the child finds no lock taken that nobody gives
        // back.
        #[allow(unsafe_code)]
        let forked = unsafe { fork() }?;
        if let ForkResult::Parent { .. } = forked {
            return Ok(Self(ours));
        }
        // Whatever fails here is told by silence.
        let _ = detach(its.as_raw_fd()).and_then(|()| keep(&its));
        // SAFETY: it ends the process without running what the parent registered for its own end.
        #[allow(unsafe_code)]
        unsafe {
            nix::libc::_exit(0)
        }
    }

    /// The interfaces by which the host does not forward what comes, so that this has to change.
    pub(super) fn look(&self) -> io::Result<Vec<String>> {
        let told = self.ask("look")?;
        Ok(told.split_whitespace().map(str::to_owned).collect())
    }

    /// Has it change.
    pub(super) fn forward(&self) -> io::Result<()> {
        self.ask("forward").map(drop)
    }

    fn ask(&self, word: &str) -> io::Result<String> {
        writeln!(&self.0, "{word}")?;
        let mut line = String::new();
        if BufReader::new(&self.0).read_line(&mut line)? == 0 {
            return Err(io::Error::other("this machine cannot be made to forward"));
        }
        Ok(line)
    }
}

/// Leaves everything of the parent's but one descriptor.
fn detach(kept: RawFd) -> io::Result<()> {
    setsid()?;
    for ignored in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        // SAFETY: no handler is installed.
        #[allow(unsafe_code)]
        unsafe { signal(ignored, SigHandler::SigIgn) }?;
    }
    chdir("/")?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    drop(null);
    let open = fs::read_dir("/proc/self/fd")?;
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let numbers: Vec<RawFd> = numbers.filter(|number| *number > 2 && *number != kept).collect();
    for number in numbers {
        // One of them was the folder's own.
        let _ = close(number);
    }
    Ok(())
}

fn keep(its: &UnixStream) -> io::Result<()> {
    let mut shut = Vec::new();
    for line in BufReader::new(its).lines() {
        match line?.as_str() {
            "look" => {
                shut = closed()?;
                let names: Vec<&str> = shut.iter().map(|(name, _)| name.as_str()).collect();
                writeln!(&*its, "{}", names.join(" "))?;
            }
            _ => {
                let done = shut.iter().try_for_each(|(_, setting)| write(setting, "1"));
                done.and_then(|()| writeln!(&*its))?;
            }
        }
    }
    for (_, setting) in shut {
        // Where another link still forwards by it, the setting stays until that ends.
        if setting.relock(FlockArg::LockExclusiveNonblock).is_ok() {
            let _ = write(&setting, "0");
        }
    }
    Ok(())
}

fn write(setting: &Flock<File>, value: &str) -> io::Result<()> {
    // Behind its beginning a setting is not written.
    setting.write_all_at(value.as_bytes(), 0)
}

/// Interfaces with a route that forward nothing, or do because another link has them do so; with
/// their settings, locked.
fn closed() -> io::Result<Vec<(String, Flock<File>)>> {
    let routes = fs::read_to_string("/proc/net/route")?;
    let names = routes.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let names: BTreeSet<&str> = names.filter(|name| !name.starts_with("tcpcast")).collect();
    let mut found = Vec::new();
    for name in names {
        let path = format!("/proc/sys/net/ipv4/conf/{name}/forwarding");
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let setting = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(_) if fs::read_to_string(&path)?.trim() != "0" => continue,
            Ok(setting) => {
                setting.relock(FlockArg::LockShared)?;
                setting
            }
            Err((file, _)) => {
                Flock::lock(file, FlockArg::LockShared).map_err(|(_, fault)| fault)?
            }
        };
        found.push((name.to_owned(), setting));
    }
    Ok(found)
}
