"""What makes the parts of a sweep: processes, executors of `concurrent.futures`, joblib, Dask, and Ray.

An engine starts tasks and tells what came of them: a `Report`, or `Lost` if the worker is gone. Everything else that a
sweep needs of its workers is in `_gather`.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
import warnings
from collections.abc import Collection, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from quipu import _worker
from quipu._worker import Report, Task

EXPECTED = (
    "expected a number of processes, an executor of concurrent.futures, a joblib.Parallel, a dask.distributed.Client, or "
    "ray (the module, or its name)"
)


class Lost(Exception):
    """The worker of a task is gone, and with it what it did not write down."""


class Engine(Protocol):
    """Starts tasks, and tells what came of them."""

    # How many tasks are made at once, as far as is known.
    workers: int
    # Whether with one worker all tasks are lost that were started, also those that no worker had begun.
    loses_all: bool

    def start(self, task: Task) -> Any:
        """Starts `task`; returns something by which it is known."""

    def wait(self, started: Collection[Any], seconds: float) -> list[tuple[Any, Report | Lost]]:
        """What ended of what was started, as soon as something did; nothing if that takes longer than `seconds`."""

    def cancel(self, started: Collection[Any]) -> None:
        """Ends what was started, as soon as this engine can."""


def engine(on: Any, jobs: int) -> Engine:
    """The engine that `on` is, for tasks that have `jobs` threads each."""
    if isinstance(on, int) and not isinstance(on, bool) and on > 0:
        return Processes(on)
    if isinstance(on, futures.Executor):
        return Executor(on)
    if on == "ray" or (isinstance(on, types.ModuleType) and on.__name__ == "ray"):
        return Ray(jobs)
    joblib, distributed = sys.modules.get("joblib"), sys.modules.get("distributed")
    if joblib is not None and isinstance(on, joblib.Parallel):
        return Joblib(on)
    if distributed is not None and isinstance(on, distributed.Client):
        if on.asynchronous:
            raise TypeError(f"on={on!r} is asynchronous; expected a Client that waits")
        return Dask(on)
    raise TypeError(f"on={on!r}: {EXPECTED}")


def _ended(future: futures.Future[Report]) -> Report | Lost:
    try:
        return future.result(timeout=0)
    except Lost as lost:
        return lost
    except (futures.BrokenExecutor, futures.CancelledError) as error:
        return Lost(str(error) or type(error).__name__)
    except Exception as error:
        return _worker.failed(error)


class Processes:
    """A process for each task, so many at once. One that dies takes nothing with it but what it was doing."""

    loses_all = False
    START = (
        "import pickle, sys; path, *rest = pickle.load(sys.stdin.buffer); sys.path[:] = path; "
        "from quipu import _worker; _worker.in_process(*rest)"
    )

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._threads = futures.ThreadPoolExecutor(workers, thread_name_prefix="quipu-process")
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_cancelled = False

    def start(self, task: Task) -> Any:
        return self._threads.submit(self._make, task)

    def _make(self, task: Task) -> Report:
        report = Path(task.caller.work, f"{uuid4().hex}.report")
        given = pickle.dumps((sys.path, str(report), pickle.dumps(task)))
        with self._lock:
            if self._is_cancelled:
                raise Lost("cancelled")
            # In a session of its own, Ctrl-C of a terminal does not reach it: the caller ends it.
            process = subprocess.Popen([sys.executable, "-c", self.START], stdin=subprocess.PIPE, start_new_session=True)
            self._running.add(process)
        try:
            process.communicate(given)
        finally:
            with self._lock:
                self._running.discard(process)
        try:
            return pickle.loads(report.read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            raise Lost(f"process {process.pid} {_ending(process.returncode)}") from None

    def wait(self, started: Collection[Any], seconds: float) -> list[tuple[Any, Report | Lost]]:
        # Executors may tell of cancelled ones much later.
        done: Collection[Any] = [future for future in started if future.cancelled()]
        if not done:
            done, _ = futures.wait(started, timeout=seconds, return_when=futures.FIRST_COMPLETED)
        return [(future, _ended(future)) for future in done]

    def cancel(self, started: Collection[Any]) -> None:
        with self._lock:
            self._is_cancelled = True
            for process in self._running:
                process.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            pass
    return f"ended with exit code {code}"


class Executor:
    """An executor of `concurrent.futures`, or one like it. A pool of processes is of no use once one of them has died:
    processes of our own take its place.
    """

    loses_all = True

    def __init__(self, executor: futures.Executor) -> None:
        self.workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self._executor = executor
        self._instead: Processes | None = None

    def start(self, task: Task) -> Any:
        if self._instead is None:
            try:
                return self._executor.submit(_worker.make, task)
            except futures.BrokenExecutor:
                self._instead, self.loses_all = Processes(self.workers), False
        return self._instead.start(task)

    wait = Processes.wait

    def cancel(self, started: Collection[Any]) -> None:
        for future in started:
            future.cancel()
        if self._instead is not None:
            self._instead.cancel(started)


def _numbered(number: int, task: Task) -> tuple[int, Report]:
    return number, _worker.make(task)


class Joblib:
    """A `joblib.Parallel`, called again with what is left once a worker has died."""

    loses_all = True

    def __init__(self, parallel: Any) -> None:
        import joblib

        self._joblib = joblib
        self.workers = max(1, joblib.effective_n_jobs(parallel.n_jobs))
        self._parallel = parallel
        self._tasks: list[Task] = []
        self._queued: list[int] = []
        self._sent: set[int] = set()
        self._results: Iterator[tuple[int, Report]] | None = None
        self._is_cancelled = False

    def _as_they_come(self) -> Any:
        """One like ours that gives results as they come, where its backend can; else ours, which gives them at the end. Each
        call has its own: results of one that has failed would come late in the next.
        """
        try:
            return self._joblib.Parallel(
                n_jobs=self._parallel.n_jobs,
                backend=self._parallel._backend,
                return_as="generator_unordered",
                batch_size=1,
            )
        except (AttributeError, TypeError, ValueError):
            return self._parallel

    def start(self, task: Task) -> int:
        self._tasks.append(task)
        self._queued.append(len(self._tasks) - 1)
        return self._queued[-1]

    def wait(self, started: Collection[Any], seconds: float) -> list[tuple[Any, Report | Lost]]:
        if self._is_cancelled:
            return [(number, Lost("cancelled")) for number in started]
        try:
            if self._results is None:
                self._sent, queued, self._queued = set(self._queued), self._queued, []
                call = self._joblib.delayed(_numbered)
                self._results = iter(self._as_they_come()(call(number, self._tasks[number]) for number in queued))
            number, report = next(self._results)
        except StopIteration:
            return self._end(Lost("joblib gave no result"))
        except futures.BrokenExecutor as error:
            return self._end(Lost(str(error).partition("\n")[0] or type(error).__name__))
        except Exception as error:
            return self._end(_worker.failed(error))
        if number not in self._sent:
            return []
        self._sent.discard(number)
        return [(number, report)]

    def _end(self, outcome: Report | Lost) -> list[tuple[Any, Report | Lost]]:
        """The call has ended, with this outcome of what it gave no result of."""
        self._results = None
        left, self._sent = self._sent, set()
        return [(number, outcome) for number in left]

    def cancel(self, started: Collection[Any]) -> None:
        close = getattr(self._results, "close", None)
        self._results, self._is_cancelled = None, True
        if close is not None:
            with warnings.catch_warnings():
                # That results are left out is what is wanted.
                warnings.simplefilter("ignore")
                close()


class Dask:
    """A cluster of Dask, by its `Client`."""

    loses_all = False
    # Between two looks at what has ended.
    INTERVAL = 0.02

    def __init__(self, client: Any) -> None:
        import distributed

        self._client, self._killed = client, distributed.KilledWorker
        self.workers = max(1, sum(client.ncores().values()))

    def start(self, task: Task) -> Any:
        return self._client.submit(_worker.make, task, key=f"quipu-{task.name}{uuid4().hex}", pure=False)

    def wait(self, started: Collection[Any], seconds: float) -> list[tuple[Any, Report | Lost]]:
        until = time.monotonic() + seconds
        while True:
            done = [future for future in started if future.done()]
            if done or time.monotonic() > until:
                return [(future, self._ended(future)) for future in done]
            time.sleep(self.INTERVAL)

    def _ended(self, future: Any) -> Report | Lost:
        if future.status not in ("finished", "error"):
            return Lost(f"its task is {future.status}")
        try:
            return future.result()
        except self._killed as error:
            return Lost(str(error))
        except Exception as error:
            return _worker.failed(error)

    def cancel(self, started: Collection[Any]) -> None:
        self._client.cancel(list(started), force=True)


class Ray:
    """The cluster of Ray to which this process is connected; without one, Ray is started as it is by default."""

    loses_all = False

    def __init__(self, jobs: int) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("on=\"ray\" needs the package ray; expected after: pip install 'quipu[ray]'") from error
        self._ray = ray
        if not ray.is_initialized():
            ray.init()
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        each = min(jobs, cores)
        self.workers = cores // each
        # Tasks that are lost are given out again by the sweep, which knows what of them is there.
        self._make = ray.remote(num_cpus=each, max_retries=0)(_worker.make)

    def start(self, task: Task) -> Any:
        return self._make.remote(task)

    def wait(self, started: Collection[Any], seconds: float) -> list[tuple[Any, Report | Lost]]:
        done, _ = self._ray.wait(list(started), num_returns=1, timeout=seconds)
        return [(reference, self._ended(reference)) for reference in done]

    def _ended(self, reference: Any) -> Report | Lost:
        known = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except known.RayTaskError as error:
            return _worker.failed(error)
        except known.RayError as error:
            return Lost(str(error).partition("\n")[0] or type(error).__name__)

    def cancel(self, started: Collection[Any]) -> None:
        for reference in started:
            self._ray.cancel(reference, force=True)
