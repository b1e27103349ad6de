"""Sizes of files in packets that remember the bytes in which they were written.

A size is a number of packets wherever it is read. Today's stacks send what was written in bytes to
the byte: the last packet of a file is as long as what is left.
"""

from typing import Self

from tcpcast import units


class SizeInBytes(float):
    """Packets, not rounded, of a size that was written in bytes, ``data_bytes``."""

    data_bytes: int

    def __new__(cls, packets: float, data_bytes: int = 0) -> Self:
        """Take the packets and the bytes of payload that they carry."""
        size = super().__new__(cls, packets)
        size.data_bytes = data_bytes
        return size


class FileInBytes(int):
    """Whole packets of a file whose size was written in bytes, ``data_bytes``."""

    data_bytes: int

    def __new__(cls, packets: int, data_bytes: int = 0) -> Self:
        """Take the packets, the last perhaps not full, and the bytes of payload that they carry."""
        size = super().__new__(cls, packets)
        size.data_bytes = data_bytes
        return size

    def packets(self, payload_bytes: int) -> int:
        """Return how many packets of so much payload the file takes."""
        return -(-self.data_bytes // payload_bytes)

    def lacking_bytes(self, payload_bytes: int) -> int:
        """Return how many bytes the last of these packets lacks of a full one."""
        return self.packets(payload_bytes) * payload_bytes - self.data_bytes


def is_in_bytes(value: object) -> bool:
    """Say whether a size as typed is in bytes."""
    return isinstance(value, str) and value.strip().endswith("B")


def write_size(size: float) -> str:
    """Write a size as it was written: in bytes, or in packets."""
    if isinstance(size, SizeInBytes | FileInBytes):
        return units.format_bytes(size.data_bytes)
    return units.format_packets(size)
