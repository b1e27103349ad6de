//! A process whose namespaces, children and devices are removed when the process ends, even if it
//! is killed.
//!
//! ```text
//! caller ---- lifeline (a pipe) ----.
//!   `- this process, new namespaces  |
//!        `- process 1 of them <------'  when it ends, the kernel kills its children
//! ```
//!
//! When the first process of a PID namespace ends, the kernel kills all others. That process ends
//! when the caller's end of the lifeline closes; if the caller is killed, the kernel closes that
//! end. So no cleanup is needed.

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

/// Reason why the sandbox cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The machine does not allow this user to create namespaces.
    #[error(
        "this machine does not allow you to create network namespaces ({0}); run as root, or allow \
         users to create them: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
         kernel.apparmor_restrict_unprivileged_userns"
    )]
    Refused(Errno),
    /// A process cannot be created.
    #[error("cannot create a process: {0}")]
    Process(Errno),
    /// The user cannot be mapped into the new user namespace.
    #[error("cannot map the user into a new user namespace: {0}")]
    Mapping(io::Error),
}

/// Runs `inside` as the first process of new network, PID and mount namespaces. Returns its exit
/// code; 128 plus the signal if a signal ended it.
///
/// An unprivileged caller gets a user namespace in which it keeps its identity, so programs started
/// by `inside` have no privileges there.
///
/// The caller must have one thread, and must not use descriptors that `inside` needs.
///
/// # Errors
/// Fails if the machine does not allow new namespaces.
pub fn run_in_sandbox(inside: impl FnOnce() -> i32) -> Result<i32, SandboxError> {
    enter_namespaces()?;
    // SAFETY: the process has one thread (otherwise `enter_namespaces` would have failed), so the child does
    // not inherit a lock held by another thread.
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
            // SAFETY: ends the process without running the parent's exit handlers.
            #[allow(unsafe_code)]
            unsafe {
                libc::_exit(code)
            }
        }
    }
}

/// Moves this process into new namespaces, and its children into a new PID namespace.
fn enter_namespaces() -> Result<(), SandboxError> {
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

/// Maps only this user and this group, each to itself: user_namespaces(7).
fn map_user(user: Uid, group: Gid) -> io::Result<()> {
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Mounts a `/proc` with only the processes of this PID namespace. Some containers do not allow
/// that; all processes are then visible, which is harmless.
fn mount_proc() {
    if are_mounts_separate() {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let _ = mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>);
    }
}

/// Hides the name servers, which cannot be reached from a sandbox, so that a program that asks for a
/// name fails at once and does not wait for 10 s. Does nothing where that is not allowed.
pub fn hide_name_servers() {
    if are_mounts_separate() {
        let (kind, data) = (None::<&str>, None::<&str>);
        let _ = mount(Some("/dev/null"), "/etc/resolv.conf", kind, MsFlags::MS_BIND, data);
    }
}

/// Keeps mounts of this process from the host; false if that is not allowed.
fn are_mounts_separate() -> bool {
    let (nothing, separate) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE);
    mount(nothing, "/", nothing, separate, nothing).is_ok()
}
