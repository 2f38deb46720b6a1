"""A sweep on an engine whose name is given, into a folder: for tests in which workers die."""

import sys

import policies
import test_engines

import quipu

if __name__ == "__main__":
    name, out = sys.argv[1:]
    with test_engines.engine(name) as on:
        quipu.sweep(test_engines.with_path(test_engines.Deadly, policies.PyEcf), out=out, on=on)
