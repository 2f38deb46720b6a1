"""Experiments as functions: what `quipu compare`, `run`, `load` and `sweep` do."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from quipu import _gather, _quipu, _scenario
from quipu._results import Results, Verdicts, place
from quipu._world import world_of

Progress = Callable[[int, int], None]


def compare(
    scenario: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    sort: str | None = None,
    world: str = "simulated",
    progress: Progress | None = None,
    **fields: Any,
) -> Results:
    """Loads pages with several schedulers, and compares them.

    `scenario` is a dictionary, TOML, or a file; `fields` change it: `page`, `network`, `stream`, `path`, `joint`, `ack`,
    `congestion`, `transport`, `browser`, `runs`, `seed`, … by their names in scenarios, where `path="ecf:beta=0.5"`,
    `path=["minrtt", "ecf"]` and `path=MyPolicy` are all well. `out` is the folder for the results. Runs are made on
    `jobs` threads, one for each core unless policies are of Python; `progress(made, planned)` is called after each.

    `world="emulated"` makes the runs in real time over emulated links, one after the other, on Linux. It takes root, or a
    process with a single thread whose user may make namespaces. Hosts are processes of their own, which import the classes of
    policies by their modules.
    """
    text, file = _scenario.build(scenario, fields)
    folder, keep = place(out)
    table = _quipu.compare(
        text,
        folder,
        world=world_of(world),
        file=file,
        force=force,
        jobs=jobs,
        sort=sort,
        progress=progress,
    )
    results = Results(folder, table, keep)
    failures = results.summary.get("failures", [])
    if failures:
        warnings.warn(f"{len(failures)} runs failed: {failures[0]['reason']}", stacklevel=2)
    return results


def run(scenario: Any, **options: Any) -> Results:
    """Runs an experiment from its file, a dictionary or TOML: pages, flows, or both. Options are those of `compare`."""
    return compare(scenario, **options)


def load(
    scenario: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    run: int = 0,
    world: str = "simulated",
    **fields: Any,
) -> Results:
    """Loads one page once, as the run number `run`. `world` is as in `compare`."""
    fields.setdefault("runs", run + 1)
    fields.setdefault("stream", "dwrr")
    fields.setdefault("path", "minrtt")
    fields.setdefault("baselines", False)
    text, file = _scenario.build(scenario, fields)
    folder, keep = place(out)
    table = _quipu.load(text, folder, world=world_of(world), file=file, force=force, run=run)
    return Results(folder, table, keep)


def sweep(
    scenario: Any,
    *,
    out: str | os.PathLike[str],
    force: bool = False,
    jobs: int | None = None,
    shard: str | None = None,
    merge: Iterable[str | os.PathLike[str]] = (),
    on: Any = None,
    shards: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> Results:
    """Runs an experiment at every point of a grid, or at random points, in the folder `out`; goes on where it was.

    `shard` is a part of it, such as `"2/4"`. Runs that the folders of `merge` have count as made.

    `on` is what makes the runs in place of this process: a number of processes, an executor of `concurrent.futures`, a
    `joblib.Parallel`, a `dask.distributed.Client`, or `ray`. The sweep is given out in `shards` parts, four for each
    worker unless told, which have `jobs` threads each, one unless told; `progress` is called as parts come in. A part
    whose worker died is given out again, three times at most. Workers on other machines send back the runs of a part, or
    put them into `store`, a folder that all machines share. The files are the same as without `on`.
    """
    text, file = _scenario.build(scenario, fields)
    folders = [os.fspath(folder) for folder in merge]
    if on is None:
        for name, value in (("shards", shards), ("store", store)):
            if value is not None:
                raise _quipu.ScenarioError(f"{name}={value!r}: expected only with `on`, the engine that makes the parts")
        made, missing, failed = _quipu.sweep(
            text, out, file=file, force=force, jobs=jobs, shard=shard, from_=folders, progress=progress
        )
    else:
        if shard is not None:
            raise _quipu.ScenarioError(f"shard={shard!r}: expected none with `on`, which gives out all parts")
        made, missing, failed = _gather.gather(
            text, out, file=file, force=force, merge=folders, on=on, shards=shards, jobs=jobs, store=store, progress=progress
        )
    if failed:
        warnings.warn(f"{failed} runs failed", stacklevel=2)
    return Results(out, f"{made} runs made, {missing} missing, {failed} failed\n")


def experiments(*names: str) -> list[dict[str, str]]:
    """The experiments of the papers, all or those that `names` (ids, or beginnings of them) choose."""
    keys = ("id", "paper", "figure", "title")
    return [dict(zip(keys, told, strict=True)) for told in _quipu.experiments(list(names))]


def reproduce(
    *names: str,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    quick: bool = False,
    runs: int | None = None,
    settings: bool = True,
    world: str = "simulated",
    progress: Progress | None = None,
) -> Verdicts:
    """Runs experiments of the papers and judges their claims. `runs` limits the runs of each combination, `quick` takes the
    quick form of each experiment, and `settings=False` leaves out the values that a paper does not tell. `world` is as in
    `compare`; before emulated runs come simulated ones, whose judgements are in `simulated`.
    """
    folder, keep = place(out)
    rules, judged, simulated = _quipu.reproduce(
        list(names),
        folder,
        world=world_of(world),
        force=force,
        jobs=jobs,
        quick=quick,
        runs=runs,
        settings=settings,
        progress=progress,
    )
    there = None if simulated is None else json.loads(simulated)
    return Verdicts(folder, rules, json.loads(judged), keep, simulated=there)
