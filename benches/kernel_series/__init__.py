"""The original files of the kernel's measurements, as cells of :mod:`tcpcast_papers.kernel`."""
