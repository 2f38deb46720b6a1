"""Policies as classes.

    class LeastFull(quipu.PathPolicy):
        \"\"\"The open path whose window is least full.\"\"\"

        def select(self, parcel, view):
            open_paths = [path for path in view.paths if path.is_open and path.is_eligible]
            return min(open_paths, key=lambda path: path.in_flight_bytes / path.cwnd_bytes, default=None)

    quipu.compare(page="dojo-demo", path=["minrtt", LeastFull])

A view, and what it gives out, is valid during the call that got it: whoever keeps it gets an `ExpiredViewError`. A policy
is asked and told only what its class has a method for. An exception ends the runs. Random numbers come from
`self.random`, which depends on the run's seed and the policy's name alone.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from quipu import _quipu


@dataclass(frozen=True)
class Param:
    """What a parameter may be: the default, the least and the greatest value, or the choices, and what it does."""

    default: Any
    least: float | None = None
    greatest: float | None = None
    choices: tuple[str, ...] = ()
    about: str = ""


class _Policy:
    """What all policies have.

    A class may say `name`, `about`, `formula` and `source`; else they come from the class and its docstring. Keyword-only
    arguments of its constructor are its parameters, as in `my-policy:beta=0.5`; their defaults, or `Param`s in `params`,
    say what they may be.
    """

    layer: ClassVar[str]
    name: ClassVar[str | None] = None
    about: ClassVar[str | None] = None
    formula: ClassVar[str | None] = None
    source: ClassVar[str] = "a class of Python"
    params: ClassVar[dict[str, Param]] = {}
    random: _quipu.Random


class PathPolicy(_Policy):
    """Picks paths. Has `select(self, parcel, view)`, which answers with a path of `view.paths` or its id, `Later(path)`,
    `FromBack(path)`, `Wait(until_ns, on=path)`, or `None` if no path can take the bytes.

    Perhaps `fill(self, path, parcel, view)`, `commit_limit(self)` in bytes, `take_back(self, view)` (`None`, a path or
    `"all"`), and methods for events. `stays = True` promises that `select` gives the same path, if it has a round-trip
    time, until it closes, time passes or something else happens than the packet that was sent: then it is not asked.
    """

    layer = "path"
    stays: ClassVar[bool] = False
    probe_interval_ns: ClassVar[int | None] = None


class StreamPolicy(_Policy):
    """Orders streams. Has `next(self, view)`, which answers with a stream of `view.streams` or its id, a pair of stream and
    most bytes, or `None`. Charge in `on_taken(self, stream, bytes, kind, view)`, refund in
    `on_returned(self, stream, bytes, view)`; `order(self)` grows when plans are to be made anew.
    """

    layer = "stream"


class JointPolicy(_Policy):
    """Orders streams and picks paths in one answer. Has `decide(self, filling, view)`, which answers with
    `Send(stream, path)`, `Wait(until_ns, on=path)`, or `None`. `filling` is the id of the path whose packet has room left.
    """

    layer = "joint"


class AckPolicy(_Policy):
    """Routes acknowledgements. Has `route(self, path, view)`, which answers with the path, or a list of paths, on which
    those of packets of `path` (an id) return. `rides = True` lets them ride on any packet that leaves sooner.
    """

    layer = "ack"
    rides: ClassVar[bool] = False


class CongestionController(_Policy):
    """One for each path. Has the attribute `cwnd_bytes`, perhaps `ssthresh_bytes` and `pacing_bps`, which are read after
    `on_sent(self, event)`, `on_acked(self, event)`, `on_lost(self, event)` and `on_change(self, what, number)`. Its
    constructor finds `path`, `datagram_bytes` and `initial_window_bytes`.
    """

    layer = "congestion"
    path: int
    datagram_bytes: int
    initial_window_bytes: int


def _kind(cls: type, name: str, param: Param) -> str:
    default = param.default
    if isinstance(default, bool):
        return "flag"
    if isinstance(default, int):
        return "integer"
    if isinstance(default, float):
        return "number"
    if isinstance(default, timedelta):
        return "time"
    if isinstance(default, str) and default in param.choices:
        return "choice"
    raise TypeError(
        f"{cls.__name__}: parameter {name}={default!r}: expected a bool, an int, a float, a timedelta, or a string that is "
        "one of the choices of its Param"
    )


def _params(cls: type[_Policy]) -> list[tuple[Any, ...]]:
    described = []
    for name, argument in inspect.signature(cls).parameters.items():
        if argument.kind is not inspect.Parameter.KEYWORD_ONLY:
            raise TypeError(f"{cls.__name__}: argument {name}: parameters of a policy are keyword-only")
        param = cls.params.get(name)
        if param is None:
            if argument.default is inspect.Parameter.empty:
                raise TypeError(f"{cls.__name__}: parameter {name}: expected a default")
            param = Param(argument.default)
        kind = _kind(cls, name, param)
        default = param.default
        if isinstance(default, timedelta):
            default = default.total_seconds()
        described.append(
            (name, kind, default, param.least, param.greatest, list(param.choices), param.about or name)
        )
    return described


def _code(cls: type[_Policy]) -> str:
    """What the class is made of, as far as it can be known: results that are kept depend on it."""
    try:
        module = inspect.getmodule(cls)
        return inspect.getsource(module if module and hasattr(module, "__file__") else cls)
    except (OSError, TypeError):
        return repr(sorted((name, repr(value)) for name, value in vars(cls).items()))


def register(cls: type[_Policy]) -> str:
    """Makes a class a policy that can be chosen by name, in every function and in the command, and returns the name. A
    class of the same name that was there before gives way. Functions do it by themselves for classes that they are given.
    """
    if not (isinstance(cls, type) and issubclass(cls, _Policy) and hasattr(cls, "layer")):
        raise TypeError(
            f"{cls!r} is no class of a policy; expected one derived from PathPolicy, StreamPolicy, JointPolicy, AckPolicy or "
            "CongestionController"
        )
    name = cls.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
    about = cls.about or (inspect.getdoc(cls) or "a class of Python").partition("\n")[0].rstrip(".")
    options = {
        "layer": cls.layer,
        "name": name,
        "about": about,
        "formula": cls.formula or "as its class decides",
        "source": cls.source,
        "params": _params(cls),
        "code": _code(cls),
    }
    with _lock:
        _put(cls, options)
    return name


# What is registered, by layer and name: the class, and what `_quipu.register` was told of it.
_registered: dict[tuple[str, str], tuple[type, dict[str, Any]]] = {}
_lock = threading.Lock()


def _put(cls: type, options: dict[str, Any]) -> None:
    _quipu.register(cls, **options)
    _registered[options["layer"], options["name"]] = cls, options


def classes() -> dict[tuple[str, str], type]:
    """The classes that can be chosen, by layer and name."""
    with _lock:
        return {name: cls for name, (cls, _) in _registered.items()}


def packed() -> bytes:
    """All classes that are registered, for `adopt` in another process."""
    with _lock:
        registered = list(_registered.values())
    dumps = _dumps() if registered else pickle.dumps
    for cls, _ in registered:
        try:
            dumps(cls)
        except Exception as error:
            raise TypeError(
                f"{cls!r} cannot be sent to other processes: {error}; expected a class of a module that they can import, or "
                "the package cloudpickle"
            ) from error
    return dumps(registered)


def _dumps() -> Callable[[Any], bytes]:
    """What pickles classes: by value, too, where there is a package that can."""
    for module in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            return importlib.import_module(module).dumps
        except ImportError:
            pass
    return pickle.dumps


def adopt(registered: list[tuple[type, dict[str, Any]]]) -> None:
    """Makes the classes that another process has registered the only ones here."""
    wanted = {(options["layer"], options["name"]): (cls, options) for cls, options in registered}
    with _lock:
        if _registered.keys() - wanted.keys():
            _quipu.forget_policies()
            _registered.clear()
        for name, (cls, options) in wanted.items():
            if name not in _registered or _registered[name][0] is not cls or _registered[name][1] != options:
                _put(cls, options)
