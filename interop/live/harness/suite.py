"""All cases by name, in the order of the tables."""

from harness import cases, http3

CASES = {**cases.CASES, **{case.name: case for case in http3.HTTP3}}
