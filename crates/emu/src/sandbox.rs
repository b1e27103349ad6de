//! A process whose namespaces, children and devices die with it, however it ends.
//!
//! ```text
//! caller ---- lifeline (a pipe) ----.
//!   `- this process, new namespaces  |
//!         `- process 1 of them <-----'  what it starts is killed by the kernel when it ends
//! ```
//!
//! The first process of a PID namespace takes all others with it. It ends when the caller's end of
//! the lifeline closes, which the kernel does for a caller that is killed; so nothing has to be
//! cleaned up.

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, fork, getegid, geteuid};
use std::fs;
use std::io;

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The machine does not let this user make namespaces.
    #[error(
        "this machine lets you make no network namespaces ({0}); run as root, or let users make \
         them: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
         kernel.apparmor_restrict_unprivileged_userns"
    )]
    Refused(Errno),
    /// A process could not be made.
    #[error("cannot make a process: {0}")]
    Process(Errno),
    /// The user could not be named in the new user namespace.
    #[error("cannot name the user in a new user namespace: {0}")]
    Mapping(io::Error),
}

/// Runs `inside` as the first process of new network, PID and mount namespaces, and returns its exit
/// code; 128 and the signal where one ended it.
///
/// Where the caller is not privileged, a user namespace comes around them, in which it stays who it
/// is: programs that `inside` starts have no privileges there.
///
/// The caller has one thread, and uses no descriptor that `inside` needs.
///
/// # Errors
/// The machine does not allow it.
pub fn run(inside: impl FnOnce() -> i32) -> Result<i32, SandboxError> {
    enter()?;
    // SAFETY: the process has one thread (a second one would have made `enter` fail), so the child
    // finds no lock taken that nobody gives back.
    #[allow(unsafe_code)]
    let forked = unsafe { fork() };
    match forked.map_err(SandboxError::Process)? {
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, code)) => return Ok(code),
                Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(128 + signal as i32),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(SandboxError::Process(error)),
            }
        },
        ForkResult::Child => {
            let _ = set_pdeathsig(Signal::SIGKILL);
            mount_proc();
            let code = inside();
            // SAFETY: it ends the process without running what the parent registered for its own end.
            #[allow(unsafe_code)]
            unsafe {
                libc::_exit(code)
            }
        }
    }
}

/// Moves this process into new namespaces, and its children into a new PID namespace.
fn enter() -> Result<(), SandboxError> {
    let all = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    match unshare(all) {
        Err(Errno::EPERM) => {
            let (user, group) = (geteuid(), getegid());
            unshare(CloneFlags::CLONE_NEWUSER).map_err(SandboxError::Refused)?;
            map_user(user, group).map_err(SandboxError::Mapping)?;
            unshare(all).map_err(SandboxError::Refused)
        }
        other => other.map_err(SandboxError::Refused),
    }
}

/// The user is who it was, and nobody else is there: user_namespaces(7).
fn map_user(user: Uid, group: Gid) -> io::Result<()> {
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Shows the processes of this PID namespace alone in `/proc`. In some containers that is not
/// allowed: then all are shown, which harms nothing.
fn mount_proc() {
    let nothing = None::<&str>;
    let private = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    if mount(nothing, "/", nothing, private, nothing).is_ok() {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let _ = mount(Some("proc"), "/proc", Some("proc"), flags, nothing);
    }
}
