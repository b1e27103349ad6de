"""Congestion control as a Python class, which the ``packet`` engine runs as a stack of its own."""

from __future__ import annotations

import importlib.util
import inspect
import math
import re
import sys
import traceback
from typing import TYPE_CHECKING

from tcpcast.process.errors import ControlError

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast._native import Ack


class CongestionControl:
    """Base class: slow start, one packet per window, half the window after a loss.

    The simulator creates one instance per connection, without arguments, and sets ``cwnd`` to
    ``tcp.initial_window``, whose default is the ``cwnd`` of a new instance. It reads ``cwnd`` and
    ``pacing_rate`` after each call. Loss detection, retransmissions and timers are those of Linux.

    Attributes
    ----------
    cwnd
        Congestion window in packets, at least 1; its fraction is kept, but not sent.
    pacing_rate
        Rate in bit/s of payload at which packets are paced; None for no pacing.
    ssthresh
        Window in packets at which the slow start of this class ends.

    Examples
    --------
    >>> class Cautious(CongestionControl):
    ...     def on_loss(self, now_s):
    ...         self.cwnd = max(1.0, self.cwnd * 0.3)
    >>> register_control("cautious", Cautious)
    'cautious'
    """

    cwnd: float = 10.0
    pacing_rate: float | None = None
    ssthresh: float = math.inf

    def on_ack(self, ack: Ack) -> None:
        """Process an acknowledgement: the fields of Linux's ``rate_sample``, and more.

        Parameters
        ----------
        ack
            ``now_s``, ``delivered``, ``acked``, ``lost`` (packets), ``rtt_s``, ``min_rtt_s``,
            ``srtt_s``, ``delivery_rate_bps``, ``is_app_limited``, ``is_cwnd_limited``,
            ``prior_in_flight``, ``in_flight``, ``total_delivered``, ``total_lost``,
            ``total_marked``, ``prior_delivered``, ``in_recovery``, ``mss``.
        """
        if ack.in_recovery or not ack.is_cwnd_limited:
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += ack.delivered
        else:
            self.cwnd += ack.delivered / self.cwnd

    def on_loss(self, now_s: float) -> None:  # noqa: ARG002 - used by subclasses
        """Process the start of a recovery from losses, at most once per window."""
        self.ssthresh = max(2.0, self.cwnd / 2)
        self.cwnd = self.ssthresh

    def on_timeout(self, now_s: float) -> None:  # noqa: ARG002 - used by subclasses
        """Process the expiry of the retransmission timer."""
        self.ssthresh = max(2.0, self.cwnd / 2)
        self.cwnd = 1.0


NAME_PATTERN = re.compile(r"[a-z][a-z0-9-]{0,30}")


def register_control(name: str, control: type[CongestionControl]) -> str:
    """Make a class available as ``tcp.stack = name`` in this process.

    Parameters
    ----------
    name
        Name of the stack: small letters, digits and hyphens.
    control
        The class; everything except congestion control is as in ``linux-reno``.

    Returns
    -------
    str
        The name.

    Raises
    ------
    ControlError
        The name belongs to another stack, or the class cannot be created without arguments.
    """
    from tcpcast import _native  # noqa: PLC0415 - a compiled module
    from tcpcast.scenario import modern_stacks, modern_tcp, tcp  # noqa: PLC0415 - imports pydantic

    known = tcp.STACKS
    if not NAME_PATTERN.fullmatch(name):
        raise ControlError(
            f'"{name}" is not a name of a stack; use small letters, digits and hyphens'
        )
    if name in known and modern_stacks.MODERN_STACKS.get(name) not in _REGISTERED:
        raise ControlError(f'"{name}" is a stack of tcpcast; use another name')
    if not (inspect.isclass(control) and issubclass(control, CongestionControl)):
        raise ControlError(f'"{name}" must be a subclass of tcpcast.CongestionControl')
    try:
        initial_window = control().cwnd
    except Exception as error:
        raise ControlError(
            f"{control.__name__}() fails ({describe_error(error)}); each connection creates an "
            "instance without arguments"
        ) from error
    is_number = isinstance(initial_window, int | float)
    if not (is_number and 1 <= initial_window <= tcp.MAX_INITIAL_WINDOW):
        raise ControlError(
            f"{control.__name__}().cwnd, the initial window, is {initial_window!r}; use 1 to "
            f"{tcp.MAX_INITIAL_WINDOW:,} packets"
        )
    stack = modern_stacks.ModernStack(
        name,
        f"Python class {control.__name__}",
        window_reduction="that of the class",
        is_rate_based=True,
        why_not_in_linux="it is a Python class",
        unvalidated_source="its author",
        external=_native.register_control(control),
    )
    _REGISTERED.append(stack)
    modern_stacks.MODERN_STACKS[name] = stack
    keys = stack.keys | {"initial_window": int(initial_window)}
    modern_tcp.MODERN_PRESETS[name] = known[name] = keys
    modern_tcp.RATE_BASED.add(name)
    return name


_REGISTERED: list[object] = []


def describe_error(error: BaseException) -> str:
    """Return type and text of an error."""
    return f"{type(error).__name__}: {error}"


def place_in_file(error: BaseException, path: Path) -> str:
    """Return the last line of a file from which an error came, with its function, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename == str(path.resolve())]
    return f"{path}, line {inside[-1].lineno}, in {inside[-1].name}" if inside else ""


def load_control(path: Path) -> type[CongestionControl]:
    """Load the congestion control of a file, which is executed.

    Raises
    ------
    ControlError
        The file cannot be read, raises an error, or does not define exactly one class.
    """
    if not path.is_file():
        raise ControlError(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(f"tcpcast_control_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ControlError(f"{path}: must be a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        place = place_in_file(error, path) or path
        raise ControlError(f"{place}: {describe_error(error)}") from error
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, CongestionControl)
        and value.__module__ == module.__name__
    ]
    derived = [each for each in classes if not any(each in other.__bases__ for other in classes)]
    if len(derived) != 1:
        names = ", ".join(each.__name__ for each in derived) or "none"
        raise ControlError(
            f"{path}: must define one subclass of tcpcast.CongestionControl; it defines {names}"
        )
    return derived[0]
