"""The `quipu` command.

`quipu --import MODULE …` imports a module first; policies that it registers can then be chosen by name.
`quipu --import MODULE:CLASS …` registers a class of it, too.
"""

import importlib
import os
import signal
import sys

from quipu import _policy, _quipu, _world


def main() -> int:
    """Runs the command with the arguments of the process, and returns its exit code."""
    started_by = [sys.executable, "-m", "quipu"]
    arguments = list(sys.argv[1:])
    while len(arguments) > 1 and arguments[0] == "--import":
        sys.path.insert(0, os.getcwd())
        module, _, name = arguments[1].partition(":")
        if name:
            _policy.register(_world.class_of(module, name))
        else:
            importlib.import_module(module)
        started_by += arguments[:2]
        del arguments[:2]
    # The command has handlers of its own where it can leave something behind; nobody runs Python's.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _quipu.command(started_by, ["quipu", *arguments])


if __name__ == "__main__":
    sys.exit(main())
