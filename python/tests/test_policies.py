"""Policies of Python: the decisions of those that come with the program, and clear errors."""

import csv
from datetime import timedelta

import pytest
from policies import PyEcf, PyMinRtt, PyRr

import quipu

SMALL = {"page": "dojo-demo", "network": "wifi+lte", "runs": 1, "baselines": False, "stream": "fifo"}


def rows(results, policy):
    """The lines of the tables of runs, objects and paths about a policy, without its name."""
    lines = []
    for name in ("runs", "objects", "paths"):
        with open(results.folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            lines.extend({**row, "policy": ""} for row in csv.DictReader(file) if row["policy"] == policy)
    assert lines
    return lines


def test_streams_in_turns_decide_as_those_of_the_program():
    results = quipu.compare(**{**SMALL, "page": "framework-youtube", "stream": ["rr:unit=frame", PyRr], "runs": 10})
    assert rows(results, "py-rr + minrtt") == rows(results, "rr:unit=frame + minrtt")


def test_an_exception_ends_the_runs_with_its_traceback():
    class Broken(quipu.PathPolicy):
        def select(self, parcel, view):
            return view.paths[7]

    with pytest.raises(IndexError) as raised:
        quipu.compare(**SMALL, path=Broken)
    assert "view.paths[7]" in str(raised.getrepr())


def test_a_kept_view_raises():
    kept = []

    class Keeps(quipu.PathPolicy):
        def select(self, parcel, view):
            if kept:
                assert kept[0] is not view
                return kept[1]
            kept.extend([view, view.paths[0]])
            return view.paths[0]

    with pytest.raises(quipu.ExpiredViewError, match="copy the numbers"):
        quipu.compare(**SMALL, path=Keeps)
    with pytest.raises(quipu.ExpiredViewError):
        kept[0].now_ns


@pytest.mark.parametrize("part", ["parcel", "path", "paths", "view"])
def test_whatever_part_of_a_view_is_kept_expires(part):
    kept, numbers = [], []

    class Keeps(quipu.PathPolicy):
        def select(self, parcel, view):
            parts = {"parcel": parcel, "path": view.paths[-1], "paths": view.paths, "view": view}
            kept.append(parts[part])
            numbers.append((parcel.bytes, view.now_ns, [path.id for path in view.paths]))
            return next((path for path in view.paths if path.is_open), None)

    quipu.compare(**SMALL, path=Keeps)
    assert len(kept) == len(numbers) > 100
    # Those of one call are not those of another, all of which are expired.
    assert len({id(it) for it in kept}) == len(kept)
    for it in kept:
        first = it[0] if part == "paths" else it
        with pytest.raises(quipu.ExpiredViewError):
            first.bytes if part == "parcel" else first.now_ns if part == "view" else first.id


@pytest.mark.parametrize("answer", ["wifi", 7, 1.5, [0]])
def test_a_wrong_answer_says_what_was_expected(answer):
    class Wrong(quipu.PathPolicy):
        def select(self, parcel, view):
            return answer

    with pytest.raises(TypeError, match="the policy answered .*expected"):
        quipu.compare(**SMALL, path=Wrong)


def test_parameters_are_those_of_the_constructor():
    seen = []

    class Parametric(quipu.PathPolicy):
        params = {"level": quipu.Param(2, least=1, greatest=5, about="how much")}

        def __init__(self, *, level=2, share=0.5, eager=False, pause=timedelta(milliseconds=5)):
            seen.append((level, share, eager, pause))

        def select(self, parcel, view):
            return next((path for path in view.paths if path.is_open), None)

    name = quipu.register(Parametric)
    assert "how much" in quipu.policy(name)
    quipu.compare(**SMALL, path=f"{name}:level=4,share=0.25,eager=true,pause=7ms")
    assert seen[-1] == (4, 0.25, True, timedelta(milliseconds=7))
    with pytest.raises(quipu.ScenarioError, match="level=6; expected a whole number in 1..=5"):
        quipu.compare(**SMALL, path=f"{name}:level=6")


def test_only_methods_that_a_class_has_are_called_and_random_numbers_come_from_the_seed():
    def draws(seed):
        drawn, lost = [], []

        class Draws(quipu.PathPolicy):
            def __init__(self):
                self.first = self.random.random()
                drawn.append(self.first)

            def on_lost(self, packet, view):
                lost.append(packet.number)

            def select(self, parcel, view):
                return next((path for path in view.paths if path.is_open), None)

        quipu.compare(**SMALL, path=Draws, seed=seed)
        return drawn

    assert draws(1) == draws(1) != draws(2)


def test_a_class_without_its_method_or_base_is_refused():
    class Empty(quipu.PathPolicy):
        pass

    with pytest.raises(TypeError, match="expected a method select"):
        quipu.compare(**SMALL, path=Empty)
    with pytest.raises(TypeError, match="no class of a policy"):
        quipu.compare(**SMALL, path=int)


def test_policies_of_acknowledgements_and_windows():
    class Back(quipu.AckPolicy):
        def route(self, path, view):
            return [other for other in view.paths if other.state == "usable"] or path

    class Fixed(quipu.CongestionController):
        def __init__(self, *, packets=20):
            self.cwnd_bytes = packets * self.datagram_bytes

    results = quipu.compare(**SMALL, ack=Back, congestion=Fixed)
    assert results.summary["rows"][0]["runs"] == 1


def test_policies_stand_the_conformance_suite():
    for policy in (PyMinRtt, PyEcf, PyRr):
        quipu.check_policy(policy, scripts=20)

    class Refused(quipu.PathPolicy):
        def select(self, parcel, view):
            return view.paths[0]

    with pytest.raises(quipu.RunError, match="refused"):
        quipu.check_policy(Refused, scripts=20)
