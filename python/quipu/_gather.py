"""Sweeps whose parts others make: which parts there are, who has them, and what comes back."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quipu import _policy, _quipu
from quipu._engines import Engine, Lost, engine
from quipu._worker import STOP, Caller, Report, Task, unpack

# Parts for each worker: one that dies costs little, and none has much to do alone at the end.
PARTS = 4
MOST_PARTS = 10_000
# How often a part is given out whose workers die.
ATTEMPTS = 3
# How long an engine is waited for at a time; and those at work, in seconds, if they are to end.
TURN, PATIENCE = 0.5, 10.0
# How folders begin in the store that have what workers on this machine make, by the process that gives it out.
WORK = "parts-"

Progress = Callable[[int, int], None]


class _RemoteError(Exception):
    """An exception of a worker, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def gather(
    scenario: str,
    out: str | os.PathLike[str],
    *,
    file: str | None,
    force: bool,
    merge: list[str],
    on: Any,
    shards: int | None,
    jobs: int | None,
    store: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> tuple[int, int, int]:
    """Has the missing runs of a sweep made by the engine `on`. Returns how many were made, are missing, and failed."""
    jobs = _count("jobs", 1 if jobs is None else jobs)
    shards = None if shards is None else _count("shards", shards)
    makers = engine(on, jobs)
    gathering = _quipu.Gathering(scenario, out, file=file, force=force, from_=merge)
    folder = Path(out, "store")
    folder.mkdir(exist_ok=True)
    _take_left(gathering, folder)
    work = Path(tempfile.mkdtemp(prefix=f"{WORK}{os.getpid()}-", dir=folder)).resolve()
    try:
        fingerprint = _quipu.fingerprint()
        common = {
            "caller": Caller.here(work),
            "scenario": scenario,
            "file": file,
            "jobs": jobs,
            "fingerprint": fingerprint,
            "policies": _policy.packed() if gathering.uses_python else None,
            "store": None if store is None else os.path.abspath(store),
            "prefix": f"sweep-{hashlib.sha256(repr((scenario, fingerprint)).encode()).hexdigest()[:12]}-",
        }
        sweep = _Sweep(gathering, makers, work, common, progress)
        if store is not None:
            sweep.take_stored(Path(store))
        planned = gathering.missing()
        try:
            sweep.make(planned, shards or min(PARTS * makers.workers, MOST_PARTS, max(planned, 1)))
        finally:
            sweep.end()
            missing, failed = gathering.write()
        sweep.complain(out, missing)
        return planned - missing, missing, failed
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _count(name: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST_PARTS:
        raise _quipu.ScenarioError(f"{name}={value!r}: expected a whole number from 1 to {MOST_PARTS}")
    return value


def _take_left(gathering: _quipu.Gathering, folder: Path) -> None:
    """Takes what was made for processes that were killed since."""
    for left in sorted(folder.glob(f"{WORK}*")):
        number = left.name.removeprefix(WORK).partition("-")[0]
        # Without such a folder nobody can know.
        if Path("/proc/self").exists() and number.isdecimal() and not Path("/proc", number).exists():
            for part in sorted(left.glob("*-of-*")):
                gathering.merge(part)
            shutil.rmtree(left, ignore_errors=True)


class _Sweep:
    """A sweep under way."""

    def __init__(
        self,
        gathering: _quipu.Gathering,
        makers: Engine,
        work: Path,
        common: dict[str, Any],
        progress: Progress | None,
    ) -> None:
        self._gathering = gathering
        self._makers = makers
        self._work = work
        self._common = common
        self._planned = 0
        self._progress = progress
        # Tasks that were started and have not ended, by what the engine knows them by.
        self._started: dict[Any, Task] = {}
        self._attempts: dict[str, int] = {}
        # Parts that were given out as often as they may be, and why they were lost the last time.
        self._given_up: dict[str, str] = {}

    def make(self, planned: int, count: int) -> None:
        """Has the `planned` runs that are missing made in `count` parts. An exception of a worker ends this."""
        self._planned = planned
        shards = [f"{index}/{count}" for index in range(1, count + 1)]
        self._start([shard for shard in shards if self._gathering.missing(shard)])
        while self._started:
            ended = self._makers.wait(list(self._started), TURN)
            lost = []
            for handle, outcome in ended:
                task = self._started.pop(handle)
                if isinstance(outcome, Lost):
                    lost.append((task, str(outcome)))
                    continue
                if outcome.error is not None:
                    raise _quipu.RunError(f"shard {task.shard}: {outcome.error}") from _RemoteError(outcome.details)
                self._take(outcome)
                if missing := self._gathering.missing(task.shard):
                    lost.append((task, f"{missing} of its runs did not come back"))
            if ended:
                self._again(lost)
                self._tell()

    def _start(self, shards: list[str]) -> None:
        for shard in shards:
            task = Task(shard=shard, kept=self._gathering.kept(shard), **self._common)
            self._started[self._makers.start(task)] = task

    def _take(self, report: Report) -> None:
        """Merges the runs of a part that has come."""
        if report.data is not None:
            with tempfile.TemporaryDirectory(prefix="came-", dir=self._work) as folder:
                unpack(report.data, Path(folder))
                self._gathering.merge(folder)
        elif report.folder is not None:
            self._gathering.merge(report.folder)
            shutil.rmtree(report.folder, ignore_errors=True)

    def _again(self, lost: list[tuple[Task, str]]) -> None:
        """Gives out again what was lost, without what is there of it."""
        begun = [self._take_partial(task) for task, _ in lost]
        # Where all is lost with one worker, what it did counts as tried, not what nobody had begun.
        counts_all = not (self._makers.loses_all and any(begun))
        left = []
        for (task, reason), was_begun in zip(lost, begun, strict=True):
            self._attempts[task.shard] = self._attempts.get(task.shard, 0) + (was_begun or counts_all)
            if not self._gathering.missing(task.shard):
                continue
            if self._attempts[task.shard] < ATTEMPTS:
                left.append(task.shard)
            else:
                self._given_up[task.shard] = reason
        self._start(left)

    def _take_partial(self, task: Task) -> bool:
        """Merges what workers on this machine have made of a part before they died; whether they had begun."""
        parts = sorted(self._work.glob(f"{task.name}*"))
        for part in parts:
            self._gathering.merge(part)
            shutil.rmtree(part, ignore_errors=True)
        return bool(parts)

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._planned - self._gathering.missing(), self._planned)

    def take_stored(self, store: Path) -> None:
        """Takes parts of this sweep that are in the shared folder since it was begun before."""
        store.mkdir(parents=True, exist_ok=True)
        for part in sorted(store.glob(f"{self._common['prefix']}*")):
            self._gathering.merge(part)
            shutil.rmtree(part, ignore_errors=True)

    def end(self) -> None:
        """Ends what is still being made, and takes what there is of it."""
        if not self._started:
            self._makers.cancel([])
            return
        (self._work / STOP).touch()
        self._makers.cancel(list(self._started))
        until = time.monotonic() + PATIENCE
        while self._started and time.monotonic() < until:
            ended = self._makers.wait(list(self._started), TURN)
            for handle, _ in ended:
                self._started.pop(handle)
        for part in sorted(self._work.glob("*-of-*")):
            self._gathering.merge(part)

    def complain(self, out: str | os.PathLike[str], missing: int) -> None:
        """Raises an error that names the parts which were given up, if there are any; `missing` runs are."""
        if not self._given_up:
            return
        parts = "; ".join(
            f"shard {shard}: given out {ATTEMPTS} times, and its worker was lost each time ({reason})"
            for shard, reason in self._given_up.items()
        )
        raise _quipu.RunError(
            f"{parts}. {missing} runs are missing; what is finished is in {os.fspath(out)}, and the same "
            "sweep goes on there"
        )
