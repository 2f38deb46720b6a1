"""In which world runs are made: in virtual time, or over emulated links, between processes of their own."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from quipu import _policy, _quipu

# Starts the command, whose arguments follow.
STARTER = "import sys; sys.path[:] = {folders!r}; from quipu.__main__ import main; sys.exit(main())"


def class_of(module: str, name: str) -> Any:
    """The object `name`, such as `Outer.Inner`, of a module, which is imported for it."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def can_be_imported(cls: type) -> bool:
    """Whether another process gets the same class by its module and its name."""
    if cls.__module__ == "__main__":
        return False
    try:
        return class_of(cls.__module__, cls.__qualname__) is cls
    except (AttributeError, ImportError):
        return False


def import_name(cls: type) -> str:
    """What the command's `--import` takes for a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def starter() -> list[str]:
    """What starts the command, by file and first arguments, with this process's folders of modules."""
    # It is started in the same folder, but relative names need not last.
    folders = [os.path.abspath(folder) for folder in sys.path]
    return [sys.executable, "-c", STARTER.format(folders=folders)]


def world_of(name: str) -> dict[str, Any]:
    """What `compare`, `load` and `reproduce` of the native part take for the world of that name: what starts the processes of
    emulated hosts, and which policies of Python they can import: layer, name, module and class.
    """
    if name == "simulated":
        return {"started_by": None, "known": []}
    if name != "emulated":
        raise _quipu.ScenarioError(f"world: {name!r}: expected 'simulated' or 'emulated'")
    known = [
        (layer, name, import_name(cls))
        for (layer, name), cls in _policy.classes().items()
        if can_be_imported(cls)
    ]
    return {"started_by": starter(), "known": known}
