//! The ring of a packet socket: frames that the kernel fills and this process returns.

use super::packet_socket::set_option;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const FRAME_BYTES: usize = 2048;
const BLOCK_BYTES: usize = 1 << 16;
/// Frames per block.
const FRAMES_PER_BLOCK: usize = BLOCK_BYTES / FRAME_BYTES;

/// Frames of a packet socket in memory shared with the kernel (format version 2).
#[derive(Debug)]
pub(super) struct PacketRing {
    frames: NonNull<u8>,
    count: usize,
    next: usize,
}

// SAFETY: only this ring accesses the memory in this process, and only through `&mut self`.
#[allow(unsafe_code)]
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Creates the ring of an unbound socket, with at least `frames` frames of 2 KiB.
    pub(super) fn new(socket: &OwnedFd, frames: usize) -> io::Result<Self> {
        let blocks = frames.div_ceil(FRAMES_PER_BLOCK).max(1);
        let version: libc::c_int = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (blocks * FRAMES_PER_BLOCK) as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: the kernel chooses the address of the mapping, which covers the complete ring;
        // the result is checked.
        #[allow(unsafe_code)]
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let length = blocks * BLOCK_BYTES;
            let nowhere = std::ptr::null_mut();
            libc::mmap(nowhere, length, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        match NonNull::new(memory.cast()) {
            Some(frames) if memory != libc::MAP_FAILED => {
                Ok(Self { frames, count: blocks * FRAMES_PER_BLOCK, next: 0 })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Copies the IP packet of the next frame to `buffer`, as far as it fits, and returns the frame
    /// to the kernel. Returns the packet length; `None` if no frame is filled.
    pub(super) fn copy_next_packet(&mut self, buffer: &mut [u8]) -> Option<usize> {
        // SAFETY: `next` is below `count`, so the frame is within the mapped memory, and the frame
        // starts with its header, aligned to the frame length.
        #[allow(unsafe_code)]
        let (frame, status) = unsafe {
            let frame = self.frames.add(self.next * FRAME_BYTES);
            // The status is the first word of the header, written by both sides.
            (frame, AtomicU32::from_ptr(frame.cast().as_ptr()))
        };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has passed the frame to this process, so it does not write to it. The
        // header contains the packet's position, and the copy is limited to the frame and to
        // `buffer`.
        #[allow(unsafe_code)]
        let bytes = unsafe {
            let header: libc::tpacket2_hdr = frame.cast().read();
            let begin = usize::from(header.tp_net).min(FRAME_BYTES);
            let link_header = usize::from(header.tp_net).saturating_sub(header.tp_mac.into());
            let kept = (header.tp_snaplen as usize).saturating_sub(link_header);
            let copied = kept.min(FRAME_BYTES - begin).min(buffer.len());
            frame.add(begin).copy_to_nonoverlapping(NonNull::from(&mut *buffer).cast(), copied);
            (header.tp_len as usize).saturating_sub(link_header)
        };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.count;
        Some(bytes)
    }

    /// Packets dropped because the ring was full, since the last call.
    pub(super) fn read_drop_count(&self, socket: &OwnedFd) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `stats`.
        #[allow(unsafe_code)]
        let result = unsafe {
            let value = std::ptr::from_mut(&mut stats).cast();
            let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
            libc::getsockopt(socket.as_raw_fd(), level, option, value, &mut length)
        };
        if result == 0 { u64::from(stats.tp_drops) } else { 0 }
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was created by `new`, and no references into it exist.
        #[allow(unsafe_code)]
        unsafe {
            libc::munmap(self.frames.as_ptr().cast(), self.count * FRAME_BYTES);
        }
    }
}
