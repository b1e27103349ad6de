"""An emulated link for real programs: a process in separate namespaces, and its results."""
