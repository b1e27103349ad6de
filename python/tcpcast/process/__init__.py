"""What a process reads, writes and reports: errors, files, interrupts."""
