use super::super::ack_context::AckContext;
use super::super::presets::Preset;
use super::super::recovery_phase::UnreportedRetransmissions;
use super::super::sender::{Sender, TailProbe};
use super::super::stack::Stack;
use super::*;
use tcpcast_link::time::MILLISECOND;

const ALL: [KernelVersion; 7] = [
    KernelVersion::V4_14,
    KernelVersion::V5_4,
    KernelVersion::V5_15,
    KernelVersion::V6_1,
    KernelVersion::V6_12,
    KernelVersion::V6_18,
    KernelVersion::V7_0,
];

fn stack(version: KernelVersion) -> Stack {
    Stack { kernel: version.rules(), ..Preset::LinuxReno.stack() }
}

#[test]
fn default_stack_is_of_6_18() {
    assert_eq!(Preset::LinuxCubic.stack().kernel, KernelVersion::V6_18.rules());
}

#[test]
fn largest_windows_are_those_of_the_releases() {
    let windows = ALL.map(|version| version.rules().receive_memory.max_window());
    let (half, most) = (3 << 20, 20 << 20);
    assert_eq!(windows, [half, half, half, half, 3_932_160, most, most]);
}

#[test]
fn dsack_of_a_loss_probe_undoes_a_recovery_until_6_9() {
    let unreported = ALL.map(|version| {
        let stack = stack(version);
        let mut sender = Sender::new(0, 1, 7, &stack);
        sender.tail_probe = Some(TailProbe { high: 1, retransmits: true });
        sender.save_undo_state(false, &stack);
        sender.undo.map(|undo| undo.unreported)
    });
    let none = Some(UnreportedRetransmissions::NoneSent);
    let one = Some(UnreportedRetransmissions::Packets(1));
    assert_eq!(unreported, [none, none, none, none, one, one, one]);
}

#[test]
fn recovery_without_retransmissions_is_undone_since_6_12() {
    let undone = ALL.map(|version| {
        let stack = stack(version);
        let mut sender = Sender::new(0, 1, 7, &stack);
        sender.save_undo_state(false, &stack);
        let ctx = AckContext::from_sender(MILLISECOND, &sender);
        sender.may_undo(&ctx, &stack)
    });
    assert_eq!(undone, [false, false, false, false, true, true, true]);
}
