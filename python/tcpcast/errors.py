"""What can go wrong, one class a kind: what, where, and what to write instead."""


class TcpcastError(Exception):
    """The base of every error tcpcast raises on purpose."""

    exit_code = 2


class UnitError(TcpcastError, ValueError):
    """A quantity that cannot be read, such as a bare ``10mbps``."""


class ScenarioError(TcpcastError, ValueError):
    """A scenario that cannot be answered: an unknown key, a value out of range, a contradiction."""


class CaptureError(TcpcastError, ValueError):
    """A file that cannot be read, or is no packet capture; the message names it."""


class DomainError(TcpcastError, ValueError):
    """A model was asked outside its domain; the message names the argument and why."""


class NotApplicable(TcpcastError):  # noqa: N818 - an answer of its own kind rather than a fault
    """An engine that exists but cannot answer this scenario; the message says why."""


class _NotFound(TcpcastError, KeyError):  # noqa: N818 - as below
    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError's own would quote the message


class UnknownEngine(_NotFound):
    """An engine name that is not in the registry, or that has no answer here."""


class UnknownMetric(_NotFound):
    """A metric that an answer has not; the message names those that are meant, or there."""


class QueryStopped(TcpcastError):  # noqa: N818 - incomplete rather than a fault
    """A query took longer than it may."""

    exit_code = 1


class EnvironmentFault(TcpcastError):  # noqa: N818 - the machine's fault, not an error of the question
    """The machine lacks something: an optional package, a writable folder."""

    exit_code = 3
