//! Reads any bytes as a capture: `cargo +nightly fuzz run capture` in this directory.
//!
//! Compressed input is skipped, because it would test the decompression libraries.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpcast_trace::CaptureReader;

fuzz_target!(|bytes: &[u8]| {
    if matches!(
        bytes,
        [0x1f, 0x8b, 8, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [_, 0x2a, 0x4d, 0x18, ..]
    ) {
        return;
    }
    let Ok(reader) = CaptureReader::new(bytes) else {
        return;
    };
    let mut last = 0;
    let summary = reader.for_each(|segment| {
        assert!(segment.frame > last);
        last = segment.frame;
        assert!(u64::from(segment.payload) + 40 <= u64::from(segment.ip_bytes));
        assert!(usize::from(segment.options.sack_blocks) <= segment.options.sack.len());
    });
    assert_eq!(summary.frames, summary.segments + summary.skipped.total());
    assert!(last <= summary.frames);
    for line in summary.warnings() {
        assert!(!line.is_empty());
    }
});
