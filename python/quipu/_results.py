"""Results: a folder of tables, as the command writes it."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from quipu import _quipu
from quipu._quipu import Table

TABLES = ("runs", "objects", "paths", "radios", "connections", "streams", "flows", "links", "cross", "networks", "series")


@dataclass(frozen=True)
class Figure:
    """A figure of the report: a Vega-Lite specification with its data. Notebooks draw it."""

    name: str
    caption: str
    spec: dict[str, Any]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"application/vnd.vegalite.v6+json": self.spec, "text/plain": self.caption}

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the specification to `file`."""
        File(file).write_text(json.dumps(self.spec), encoding="utf-8")


class Results:
    """A folder of results. Without a folder of one's own it is gone with this object."""

    def __init__(self, folder: str | os.PathLike[str], text: str = "", keep: Any = None) -> None:
        self.folder = File(folder)
        self._text = text
        self._keep = keep

    def __str__(self) -> str:
        return self._text or repr(self)

    def __repr__(self) -> str:
        return f"<Results in {self.folder}>"

    def table(self, name: str) -> Table:
        """A table by name: `runs`, `objects`, `paths`, … Units are in the names of its columns."""
        return Table.read(self.folder / f"{name}.csv")

    @property
    def tables(self) -> list[str]:
        """The names of the tables that are there."""
        return [name for name in TABLES if (self.folder / f"{name}.csv").is_file()]

    def __getattr__(self, name: str) -> Table:
        if name in TABLES and (self.folder / f"{name}.csv").is_file():
            return self.table(name)
        there = ", ".join(self.tables)
        raise AttributeError(f"{name}: the results have no such table; expected one of {there}")

    @property
    def summary(self) -> dict[str, Any]:
        """What the runs say together: medians, intervals, ratios, failures."""
        return json.loads((self.folder / "summary.json").read_text(encoding="utf-8"))

    @property
    def scenario(self) -> str:
        """The complete scenario, as TOML."""
        name = "sweep.toml" if (self.folder / "sweep.toml").is_file() else "scenario.toml"
        return (self.folder / name).read_text(encoding="utf-8")

    def figures(self) -> dict[str, Figure]:
        """The figures of the report by name."""
        told = _quipu.figures(self.folder)
        return {name: Figure(name, caption, json.loads(spec)) for name, caption, spec in told}

    def report(self, file: str | os.PathLike[str]) -> File:
        """Writes the report to `file`, one page of HTML that works offline, and returns its name."""
        _quipu.write_report(self.folder, file)
        return File(file)


class Verdicts:
    """What came of experiments of the papers: a verdict on each of their claims."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        rules: str,
        judged: list[dict[str, Any]],
        keep: Any = None,
        simulated: list[dict[str, Any]] | None = None,
    ) -> None:
        self.folder = File(folder)
        self.judged = judged
        # What was judged of the same in the simulator, if these runs were emulated.
        self.simulated = simulated
        self._rules = rules
        self._keep = keep

    def __str__(self) -> str:
        return self._rules

    @property
    def rules(self) -> list[dict[str, str]]:
        """A row for each rule: experiment, rule, paper, numbers, verdict."""
        return list(csv.DictReader(io.StringIO(self._rules)))


def open_results(folder: str | os.PathLike[str]) -> Results:
    """The results in a folder that the command or this package has written."""
    if not (File(folder) / "runs.csv").is_file():
        raise FileNotFoundError(f"{os.fspath(folder)} has no results; expected a folder with runs.csv")
    return Results(folder)


def place(out: str | os.PathLike[str] | None) -> tuple[File, Any]:
    """The folder for results, and what keeps it there as long as it is needed."""
    if out is not None:
        return File(out), None
    keep = tempfile.TemporaryDirectory(prefix="quipu-")
    return File(keep.name) / "results", keep
