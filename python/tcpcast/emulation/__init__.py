"""An emulated link for real programs: runs in a process in separate namespaces."""
