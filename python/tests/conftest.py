"""What all tests begin with."""

import importlib
import signal
import sys

import pytest

# As in a terminal, for the processes that tests start and interrupt: where tests run in the background it may be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """A function that makes a module of a name and a text that other processes can import, too, and returns it with the file
    that its classes find as `ASKED_IN`, to say there that they were asked.
    """

    def make(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, name, raising=False)
        asked = tmp_path / "asked"
        monkeypatch.setenv("ASKED_IN", str(asked))
        return importlib.import_module(name), asked

    return make
