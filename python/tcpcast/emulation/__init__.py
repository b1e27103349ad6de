"""A link for real programs: a process in namespaces of its own, and what it says of the link."""
