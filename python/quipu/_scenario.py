"""Scenarios: from keyword arguments, dictionaries and files to the text that the program reads."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from quipu import _policy, _quipu

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = None

# Fields that have a shorter name on the command line, too.
SHORT = {
    "page": "pages",
    "network": "networks",
    "stream": "policies.stream",
    "path": "policies.path",
    "joint": "policies.joint",
    "ack": "policies.ack",
    "congestion": "policies.congestion",
    "transport": "transport.profile",
    "tls": "transport.tls",
    "start": "transport.start",
    # Lists of tables.
    "flows": "flows",
    "cross": "cross",
}
# Those that are lists, of which one element may stand alone.
LISTS = {"pages", "networks", "policies.stream", "policies.path", "policies.joint"}


# Fields of paths that each direction has.
DIRECTION = {
    "rate", "trace", "column", "time_column", "steps", "delay", "delay_trace", "rtt_column", "delay_column", "jitter",
    "jitter_correlation", "jitter_reorders", "loss", "loss_trace", "loss_column", "from", "at_end", "queue", "mark", "mtu",
    "reorder", "duplicate", "outages",
}


class Path(dict):
    """A path of a network: `Path(rate="30mbit", delay="10ms", loss=0.01)`, with the fields of paths in scenario files.

    `up` and `down` are dictionaries of what the two directions have of their own.
    """

    def __init__(self, name: str | None = None, **fields: Any) -> None:
        super().__init__({} if name is None else {"name": name}, **fields)


@dataclass
class Network:
    """A network: its paths, and what else networks have in scenario files.

    >>> Network([Path("wifi", rate="30mbit", delay="10ms"), Path("lte", rate="20mbit", delay="30ms")]).name
    'network'
    """

    paths: Iterable[Mapping[str, Any]]
    name: str = "network"
    fields: dict[str, Any] = field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """The table of scenario files."""
        paths = []
        for index, path in enumerate(self.paths):
            path = dict(path)
            table = {"name": path.pop("name", f"path{index}")}
            for direction in ("up", "down"):
                own = path.pop(direction, {})
                if isinstance(own, Mapping):
                    table[direction] = {**{key: path[key] for key in path if key in DIRECTION}, **own}
                else:
                    table[direction] = own
            table.update({key: value for key, value in path.items() if key not in DIRECTION})
            paths.append(table)
        return {"name": self.name, "paths": paths, **self.fields}


def text(value: Any) -> str:
    """A value as TOML, tables inline."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, timedelta):
        return json.dumps(f"{round(value.total_seconds() * 1e9)}ns")
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, Network):
        return text(value.table())
    if isinstance(value, type):
        return json.dumps(_policy.register(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {text(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Iterable):
        return "[" + ", ".join(text(item) for item in value) + "]"
    raise TypeError(
        f"{value!r} of type {type(value).__name__} is no value of a scenario; expected a number, a string, a list, a "
        "dictionary, a Network or a class of a policy"
    )


def document(tables: Mapping[str, Any]) -> str:
    """A scenario as TOML, a line for each field."""
    return "".join(f"{json.dumps(str(key))} = {text(value)}\n" for key, value in tables.items())


def put(tables: dict[str, Any], path: str, value: Any) -> None:
    """Sets the field at `path`, such as `transport.start`."""
    *outer, last = path.split(".")
    for name in outer:
        tables = tables.setdefault(name, {})
    tables[last] = value


def read(source: Any) -> tuple[dict[str, Any], str | None]:
    """The tables of a scenario, and the file that they are from: `source` is a dictionary, TOML, or a file's name."""
    if source is None:
        return {}, None
    if isinstance(source, Mapping):
        return copy.deepcopy(dict(source)), None
    if tomllib is None:
        raise TypeError("scenarios in TOML need Python 3.11 or later; give a dictionary")
    if isinstance(source, os.PathLike) or "\n" not in source:
        with open(source, "rb") as file:
            return tomllib.load(file), os.fspath(source)
    return tomllib.loads(source), None


def build(source: Any, fields: Mapping[str, Any]) -> tuple[str, str | None]:
    """The text of the scenario `source` with `fields` changed, and the file beside which others are named."""
    tables, file = read(source)
    for name, value in fields.items():
        if value is None:
            continue
        path = SHORT.get(name) or _quipu.resolve_field(name)
        alone = isinstance(value, (str, type, Mapping, Network, os.PathLike))
        if path in LISTS and alone:
            value = [value]
        put(tables, path, value)
    return document(tables), file
