"""One path, as somebody types it: its options, ranges of them, and what every model predicts."""
