"""Learned policies: what they observe, how linear ones are exported, and what a file decides in Rust."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable
from typing import Any

from quipu import _quipu


def observation_names() -> list[str]:
    """The names of the numbers of an observation, in order, with their units."""
    return _quipu.observation_names()


def _single(values: Iterable[Any]) -> list[float]:
    """As float32; a number that does not fit raises OverflowError."""
    return [struct.unpack("f", struct.pack("f", float(value)))[0] for value in values]


def save_linear(file: str | os.PathLike[str], weights: Iterable[Iterable[Any]], bias: Iterable[Any]) -> None:
    """Writes a linear policy for `linear:file=…`: a row of weights and a bias for each place, as lists or arrays. A file
    that was there before is replaced if the new one is a policy.
    """
    policy = {
        "names": observation_names(),
        "weights": [_single(row) for row in weights],
        "bias": _single(bias),
    }
    name = os.fspath(file)
    fresh = f"{name}.{os.getpid()}.new"
    try:
        with open(fresh, "w", encoding="utf-8") as out:
            json.dump(policy, out)
        _quipu.LearnedPolicy(fresh)
        os.replace(fresh, name)
    finally:
        if os.path.exists(fresh):
            os.remove(fresh)


class LearnedPolicy:
    """The policy of a file, an ONNX model if its name ends in `.onnx`, else a linear one, as Rust runs it."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self._policy = _quipu.LearnedPolicy(os.fspath(file))

    def decide(self, numbers: Any, allowed: Any) -> int | list[int]:
        """The place that an observation gets, or a list of the places of several. `numbers` is an array of float32, and
        `allowed` one of bools, both C-contiguous.
        """
        numbers, allowed = memoryview(numbers), memoryview(allowed)
        if numbers.format != "f" or allowed.format not in ("?", "b", "B"):
            raise TypeError(
                f"numbers, allowed: formats {numbers.format!r}, {allowed.format!r}: expected arrays of float32 and bool"
            )
        places = self._policy.decide_rows(numbers.tobytes(), allowed.tobytes())
        return places[0] if numbers.ndim == 1 and len(places) == 1 else places
