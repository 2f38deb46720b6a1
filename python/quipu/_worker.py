"""What a worker does for a sweep whose parts others make: the part of a task, in a folder that the caller gets."""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import sys
import tempfile
import traceback
import uuid
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from quipu import _policy, _quipu

# Where a sweep keeps its runs, in its folder.
STORE = Path("store", "runs.sqlite")
# Files in the folder of a caller: one that workers know it by, and one that ends what they do.
TOKEN, STOP = "token", "stop"


@dataclass(frozen=True)
class Caller:
    """Who gave out tasks: workers on its machine write straight into its folder `work`."""

    host: str
    pid: int
    work: str
    token: str
    path: list[str]
    folder: str

    @classmethod
    def here(cls, work: Path) -> Caller:
        """This process, with a folder `work` of its own."""
        token = uuid.uuid4().hex
        (work / TOKEN).write_text(token, encoding="ascii")
        return cls(socket.gethostname(), os.getpid(), str(work), token, list(sys.path), os.getcwd())

    def is_here(self) -> bool:
        """Whether this is the machine of the caller, with the same folders."""
        try:
            return socket.gethostname() == self.host and Path(self.work, TOKEN).read_text(encoding="ascii") == self.token
        except (OSError, UnicodeDecodeError):
            return False


@dataclass(frozen=True)
class Task:
    """A part of a sweep: the scenario, which runs of it, and with what they are made."""

    caller: Caller
    scenario: str
    file: str | None
    shard: str
    jobs: int
    # Keys of runs that are left out.
    kept: bytes
    # What the caller's package amounts to, and its classes of policies; `None` if the sweep has no need of them.
    fingerprint: tuple[str, str]
    policies: bytes | None
    # A folder that all machines share, and how the names of this sweep's folders begin in it.
    store: str | None
    prefix: str

    @property
    def name(self) -> str:
        """How folders of this part begin."""
        return self.shard.replace("/", "-of-") + "-"


@dataclass(frozen=True)
class Report:
    """What came of a task: a folder that the caller sees, or the file of runs as a zip; or why it failed."""

    folder: str | None = None
    data: bytes | None = None
    error: str | None = None
    details: str = ""


class Stopped(Exception):
    """The caller wants no more runs."""


def make(task: Task) -> Report:
    """Makes the runs of `task`. What goes wrong is in the report: exceptions of others cannot always be sent."""
    try:
        return _make(task)
    except Exception as error:
        return failed(error)


def failed(error: BaseException) -> Report:
    """The report of a task that raised `error`."""
    line = f"{type(error).__name__}: {error}".rstrip(": ")
    return Report(error=line, details="".join(traceback.format_exception(type(error), error, error.__traceback__)))


def _make(task: Task) -> Report:
    is_here = task.caller.is_here()
    if not (is_here and task.caller.pid == os.getpid()):
        _prepare(task, is_here)
    if is_here:
        folder = tempfile.mkdtemp(prefix=task.name, dir=task.caller.work)
        _run(task, folder, Path(task.caller.work, STOP))
        return Report(folder=folder)
    with tempfile.TemporaryDirectory(prefix="quipu-") as folder:
        _run(task, folder, None)
        if task.store is not None:
            return Report(folder=_put(task, Path(folder), Path(task.store)))
        return Report(data=_packed(Path(folder)))


def _prepare(task: Task, is_here: bool) -> None:
    """Makes this process one that gives the runs which the caller would."""
    if is_here:
        sys.path.extend(entry for entry in task.caller.path if entry not in sys.path)
        # Files that a scenario names may be named from there.
        os.chdir(task.caller.folder)
    if task.policies is not None:
        _policy.adopt(pickle.loads(task.policies))
    own, expected = _quipu.fingerprint(), task.fingerprint
    if own[0] != expected[0]:
        raise _quipu.RunError(
            f"the package quipu on {socket.gethostname()} is {own[0]}; expected that of the caller, {expected[0]}: install "
            "the same wheel on all machines"
        )
    if task.policies is not None and own[1] != expected[1]:
        raise _quipu.RunError(f"policies on {socket.gethostname()} differ from those of the caller; expected the same classes")


def _run(task: Task, folder: str, stop: Path | None) -> None:
    parent = os.getppid()

    def check(made: int = 0, planned: int = 0) -> None:
        if stop is not None and (stop.exists() or os.getppid() != parent):
            raise Stopped("the caller wants no more runs")

    check()
    _quipu.sweep(
        task.scenario,
        folder,
        file=task.file,
        jobs=task.jobs,
        shard=task.shard,
        kept=task.kept,
        progress=check if stop is not None else None,
    )


def _put(task: Task, folder: Path, store: Path) -> str:
    """Copies the finished runs into the shared folder, where they appear at once, and returns their folder."""
    if not store.is_dir():
        raise FileNotFoundError(
            f"store={os.fspath(store)!r}: no such folder on {socket.gethostname()}; expected one that all machines share"
        )
    whole = store / f"{task.prefix}{task.name}{uuid.uuid4().hex}"
    partial = whole.with_name(f"partial-{whole.name}")
    try:
        (partial / STORE).parent.mkdir(parents=True)
        if (folder / STORE).is_file():
            shutil.copyfile(folder / STORE, partial / STORE)
        partial.rename(whole)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return str(whole)


def _packed(folder: Path) -> bytes:
    """The finished runs as a zip."""
    data = BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        if (folder / STORE).is_file():
            archive.write(folder / STORE, STORE.as_posix())
    return data.getvalue()


def unpack(data: bytes, folder: Path) -> None:
    """Puts what `_packed` made into `folder`; nothing else of the zip."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        if STORE.as_posix() in archive.namelist():
            (folder / STORE).parent.mkdir(parents=True)
            with archive.open(STORE.as_posix()) as source, open(folder / STORE, "wb") as target:
                shutil.copyfileobj(source, target)


def in_process(report: str, task: Any) -> None:
    """Makes `task` in a process that is there for nothing else, and writes its report to a file."""
    made = make(pickle.loads(task))
    partial = report + ".partial"
    with open(partial, "wb") as file:
        pickle.dump(made, file)
    os.replace(partial, report)
