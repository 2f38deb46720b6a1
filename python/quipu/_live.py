"""Live connections: the same classes of policies at both ends of real sockets.

The ends are the commands `quipu serve` and `quipu fetch`, processes of their own, which import classes by their modules.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from quipu import _policy, _quipu, _world

# How long a server may take to end after it was told to: its grace, and a little more.
END_S = 20
# The exit code of the command for wrong arguments.
USAGE = 2


def _arguments(options: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The options of a command, and what imports the classes among them. `max_time=3` is `--max-time 3`, `True` an option
    without a value, `False` and `None` none, and a list the option as often as it has elements.
    """
    arguments, classes = [], []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        alone = isinstance(value, (str, type, os.PathLike)) or not isinstance(value, Iterable)
        for one in [value] if alone else value:
            if one is True:
                arguments.append(option)
            elif one is not None and one is not False:
                if isinstance(one, type):
                    one = _policy.register(one)
                cls = _policy.classes().get((name, str(one).partition(":")[0]))
                if cls is not None and cls not in classes:
                    classes.append(cls)
                arguments += [option, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    imports = []
    for cls in classes:
        if not _world.can_be_imported(cls):
            raise _quipu.ScenarioError(
                f"{cls.layer}: {cls.__qualname__}: expected a class that can be imported, as live ends are processes of their "
                "own; put it into a module"
            )
        imports += ["--import", _world.import_name(cls)]
    return arguments, imports


def _command(name: str, options: dict[str, Any], *rest: str) -> list[str]:
    arguments, imports = _arguments(options)
    return [*_world.starter(), *imports, name, *arguments, "--", *rest]


def _print(output: Any) -> None:
    """Prints what policies print in the server."""
    with output:
        for line in output:
            sys.stdout.write(line)


class Server:
    """A running server. It ends with its `with` statement, at `close`, or with this process.

    `url` is where it answers, `pin` what clients know it by.
    """

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._end = weakref.finalize(self, self._process.kill)
        output: Any = self._process.stdout
        told = []
        # Its first lines: what it serves, where, and the pin.
        while len(told) < 3 and (line := output.readline()):
            told.append(line.strip())
        if len(told) < 3:
            code = self._process.wait()
            output.close()
            error = _quipu.ScenarioError if code == USAGE else _quipu.RunError
            raise error(f"the server ended with code {code} before it was ready; standard error says why")
        self.url = told[1]
        self.pin = told[2].removeprefix("pin ")
        self._printer = threading.Thread(target=_print, args=(output,), daemon=True)
        self._printer.start()

    def close(self) -> None:
        """Ends it, and waits until open requests are answered.

        A `RunError` says that it had ended before, as it does when a policy raises an exception.
        """
        code = self._process.poll()
        if code is None:
            self._process.terminate()
            try:
                code = self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                code = self._process.wait()
        self._end.detach()
        self._printer.join()
        if code != 0:
            raise _quipu.RunError(f"the server ended with code {code}; standard error says why")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except _quipu.RunError:
            # What came first tells more.
            if kind is None:
                raise

    def __repr__(self) -> str:
        return f"<Server at {self.url}>"


def serve(folder: str | os.PathLike[str], *, listen: str = "127.0.0.1:0", **options: Any) -> Server:
    """Serves the files of a folder over HTTP/3 and Multipath QUIC, until the server is closed.

    Options are those of `quipu serve` by name, with `_` for `-`: `path=MyPolicy` decides which path what it sends takes.
    """
    return Server(_command("serve", {"listen": listen, "no_tcp": True, **options}, os.fspath(folder)))


@dataclass(frozen=True)
class Fetched:
    """What a URL brought: the body, and what `quipu fetch --json` tells of it and of the connection's paths."""

    body: bytes = field(repr=False)
    object: dict[str, Any]
    paths: list[dict[str, Any]]


def fetch(url: str, **options: Any) -> Fetched:
    """Fetches a URL over HTTP/3, with one or several uplinks.

    Options are those of `quipu fetch` by name, with `_` for `-`, such as `pin=server.pin`, `via=["wlan0", "wwan0"]`,
    `path=MyPolicy` for what this end sends.
    """
    with tempfile.TemporaryDirectory(prefix="quipu-") as folder:
        file = File(folder) / "body"
        command = _command("fetch", {**options, "json": True, "quiet": True, "output": file}, url)
        told = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if told.returncode != 0:
            error = _quipu.ScenarioError if told.returncode == USAGE else _quipu.RunError
            raise error(told.stderr.strip().removeprefix("error: ") or f"{url}: exit code {told.returncode}")
        report = json.loads(told.stdout)
        body = file.read_bytes() if file.exists() else b""
    paths = [path for connection in report["connections"] for path in connection["paths"]]
    return Fetched(body, report["objects"][0], paths)
