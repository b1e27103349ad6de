"""Public functions and classes in Markdown, from signatures and numpydoc docstrings."""

import importlib
import inspect
import re
import textwrap

import tcpcast

MODULES: dict[str, tuple[str, ...]] = {
    "tcpcast": ("run", *(name for name in tcpcast.__all__ if name != "run")),
    "tcpcast.plan": (),
    "tcpcast.networks": ("dumbbell", "parking_lot", "fat_tree"),
    "tcpcast.models.mathis": (
        "mathis_constant", "mathis_rate_pps", "mathis_tolerated_loss_ratio",
    ),
    "tcpcast.models.pftk": (),
    "tcpcast.models.cubic": (
        "CubicResponse", "cubic_response", "cubic_tolerated_loss_ratio", "reno_friendly_loss_ratio",
    ),
    "tcpcast.models.bbr": ("BbrBound", "bbr_bound"),
    "tcpcast.models.parallel": (),
    "tcpcast.models.cardwell": ("CardwellLatency", "cardwell_latency", "connection_latency_s"),
    "tcpcast.models.short": (),
    "tcpcast.models.engset": (),
    "tcpcast.models.local_loop": (),
    "tcpcast.statistics": (),
}  # fmt: skip
"""Modules of the public API with their names; an empty tuple means those of ``__all__``."""

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ROLE = re.compile(r":\w+:`~?\.?([^`]+)`")
LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
CODE = re.compile(r"(`[^`]+`)")
LISTS = {"Parameters", "Attributes", "Raises", "Yields", "Returns"}


def api(module: str) -> str:
    """Return the entries of a module, each with a heading."""
    home = importlib.import_module(module)
    text = "\n".join(_entry(name, getattr(home, name)) for name in names(module))
    return re.sub(r"\n{3,}", "\n\n", text)


def names(module: str) -> list[str]:
    """Return the public functions and classes of a module; constants are left out."""
    home = importlib.import_module(module)
    result = MODULES[module] or public(module)
    return [n for n in result if inspect.isroutine(o := getattr(home, n)) or inspect.isclass(o)]


def public(module: str) -> tuple[str, ...]:
    """Return the public names of a module, by default those that it defines."""
    home = importlib.import_module(module)
    if hasattr(home, "__all__"):
        return tuple(home.__all__)
    return tuple(
        name
        for name, value in vars(home).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module
    )


def _entry(name: str, documented: object) -> str:
    kind = "class " if inspect.isclass(documented) else ""
    parts = [f"### {name}\n", f"```text\n{kind}{_signature(name, documented)}\n```\n"]
    parts.append(markdown(inspect.getdoc(documented) or ""))
    if inspect.isclass(documented):
        methods = [_method(result) for result in _methods(documented)]
        parts += ["**Methods**\n", *methods] if methods else []
    return "\n".join(part for part in parts if part) + "\n"


def _signature(name: str, documented: object) -> str:
    if inspect.isclass(documented) and issubclass(documented, Exception):
        return f"{name}({documented.__bases__[0].__name__})"
    if name == "Scenario":  # created by load and from_dict
        return name
    signature = inspect.signature(documented)  # type: ignore[arg-type]
    taken = [_parameter(parameter) for parameter in signature.parameters.values()]
    by_name = [p.kind is p.KEYWORD_ONLY for p in signature.parameters.values()]
    if any(by_name):
        taken.insert(by_name.index(True), "*")
    returned = signature.return_annotation
    known = returned is not inspect.Signature.empty and not inspect.isclass(documented)
    ending = f" -> {returned}" if known else ""
    line = f"{name}({', '.join(taken)}){ending}"
    if len(line) <= 96:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in taken), f"){ending}"])


def _parameter(parameter: inspect.Parameter) -> str:
    annotated = parameter.annotation is not inspect.Parameter.empty
    typed = f"{parameter.name}: {parameter.annotation}" if annotated else parameter.name
    if parameter.default is inspect.Parameter.empty:
        return typed
    return f"{typed} = {parameter.default!r}"


def _methods(documented: type) -> list[tuple[str, object]]:
    result = []
    for name, given in vars(documented).items():
        value = given.__func__ if isinstance(given, classmethod) else given
        described = isinstance(value, property) or inspect.isfunction(value)
        if described and not name.startswith(("_", "model_")) and inspect.getdoc(value):
            result.append((name, value))
    return result


def _method(result: tuple[str, object]) -> str:
    name, value = result
    call = "" if isinstance(value, property) else "()"
    first = (inspect.getdoc(value) or "").split("\n\n")[0]
    return f"- `.{name}{call}`: {_words(' '.join(first.split()))}"


def markdown(text: str) -> str:
    """Return a numpydoc docstring as Markdown."""
    pieces = SECTION.split(text)
    parts = [_prose(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        content = _list(body) if title in LISTS else _prose(body)
        parts.append(f"**{title}**\n\n{content}")
    return "\n".join(parts)


def _prose(body: str) -> str:
    paragraphs = (part for part in body.strip().split("\n\n") if part.strip())
    return "".join(f"{_words(part.strip())}\n\n" for part in paragraphs)


def _list(body: str) -> str:
    """Return the entries of a section: a name at the margin, its meaning indented below it."""
    entries: list[list[str]] = []
    for line in body.strip("\n").splitlines():
        if line and not line.startswith(" "):
            entries.append([line])
        elif entries:
            entries[-1].append(line)
    lines = []
    for name, *description in entries:
        meaning = " ".join(textwrap.dedent("\n".join(description)).split())
        lines.append(f"- `{name}`: {_words(meaning)}" if meaning else f"- `{name}`")
    return "\n".join(lines) + "\n"


def _words(text: str) -> str:
    """Return prose with code in single backticks, and other markup escaped."""
    text = LITERAL.sub(r"`\1`", ROLE.sub(lambda result: f"`{result[1]}`", text))
    parts = CODE.split(text)
    plain = (re.sub(r"([*<$\[\]])", r"\\\1", part) for part in parts[::2])
    return "".join(part for pair in zip(plain, [*parts[1::2], ""], strict=True) for part in pair)
