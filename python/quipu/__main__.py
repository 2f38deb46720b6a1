"""The `quipu` command. `quipu --import MODULE …` imports a module first, whose policies can then be chosen by name."""

import importlib
import os
import signal
import sys

from quipu import _quipu


def main() -> int:
    """Runs the command with the arguments of the process, and returns its exit code."""
    started_by = [sys.executable, "-m", "quipu"]
    arguments = list(sys.argv[1:])
    while len(arguments) > 1 and arguments[0] == "--import":
        sys.path.insert(0, os.getcwd())
        importlib.import_module(arguments[1])
        started_by += arguments[:2]
        del arguments[:2]
    # The command has handlers of its own where it can leave something behind; nobody runs Python's.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _quipu.command(started_by, ["quipu", *arguments])


if __name__ == "__main__":
    sys.exit(main())
