"""Programs for the ends of a link: UDP senders and an echo, as texts for ``python -c``."""

import sys

PORT = 5001

ECHO = f"""
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("", {PORT}))
while True:
    data, peer = own.recvfrom(2000)
    own.sendto(data[:12], peer)
"""
"""Answers each datagram with its first 12 bytes; with headers 40 bytes, like an ack."""

PINGS = f"""
import os, socket, sys
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.settimeout(1)
for number in range(int(sys.argv[1])):
    own.sendto(number.to_bytes(4) + bytes(1468), (os.environ["TCPCAST_PEER"], {PORT}))
    try:
        own.recv(2000)
    except TimeoutError:
        pass
"""
"""Sends datagrams of 1500 bytes with headers, each after the answer to the previous one."""

FLOOD = f"""
import os, socket, sys, time
count, payload, burst, pause = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.connect((os.environ["TCPCAST_PEER"], {PORT}))
data = bytes(payload)
for number in range(count):
    own.send(data)
    if number % burst == burst - 1:
        time.sleep(float(pause))
time.sleep(float(sys.argv[5]))
"""
"""Sends datagrams: count, size, burst length, pause after a burst, pause at the end."""

TRAINS = f"""
import os, socket, sys, time
count, payload, rate = map(int, sys.argv[1:4])
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.setsockopt(socket.SOL_UDP, 103, payload)  # UDP_SEGMENT: the kernel cuts a train
own.connect((os.environ["TCPCAST_PEER"], {PORT}))
data = bytes(64 * payload)
began = time.monotonic()
for number in range(count // 64):
    own.send(data)
    while time.monotonic() - began < number * 64 / rate:
        pass
time.sleep(0.2)
"""
"""Sends datagrams in trains of 64: count, size, maximum rate per second."""

SINK = f"""
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
own.bind(("", {PORT}))
while True:
    own.recv(2000)
"""
"""Receives and discards datagrams."""


def python(program: str, *arguments: object) -> list[str]:
    """Return the command of a program with its arguments."""
    return [sys.executable, "-c", program, *map(str, arguments)]
