"""File sizes in packets that also keep the size in bytes if it was given in bytes.

All code uses the number of packets. In addition, modern stacks send the exact number of bytes: the
last packet of a file may be smaller.
"""

from typing import Self

from tcpcast.quantity import units


class SizeInBytes(float):
    """Number of packets, not rounded, for a payload of ``data_bytes``."""

    data_bytes: int

    def __new__(cls, packets: float, data_bytes: int = 0) -> Self:
        """Create the number of packets for a payload of ``data_bytes``."""
        size = super().__new__(cls, packets)
        size.data_bytes = data_bytes
        return size


class FileInBytes(int):
    """Number of whole packets for a file of ``data_bytes``."""

    data_bytes: int

    def __new__(cls, packets: int, data_bytes: int = 0) -> Self:
        """Create the number of packets for a payload of ``data_bytes``."""
        size = super().__new__(cls, packets)
        size.data_bytes = data_bytes
        return size

    def packets(self, payload_bytes: int) -> int:
        """Return the number of packets of the file with ``payload_bytes`` per full packet."""
        return -(-self.data_bytes // payload_bytes)

    def padding_bytes(self, payload_bytes: int) -> int:
        """Return the bytes by which the last packet is smaller than a full packet."""
        return self.packets(payload_bytes) * payload_bytes - self.data_bytes


def is_in_bytes(value: object) -> bool:
    """Return True if a size as typed is in bytes."""
    return isinstance(value, str) and value.strip().endswith("B")


def write_size(size: float) -> str:
    """Format a size in its original unit: bytes or packets."""
    if isinstance(size, SizeInBytes | FileInBytes):
        return units.format_bytes(size.data_bytes)
    return units.format_packets(size)
