"""Environments of Gymnasium: an agent decides in the simulator, which stops at every question.

    import gymnasium, quipu.envs

    env = gymnasium.make("quipu/Page-v0", page="dojo-demo", network=["wifi+lte", "dsl+lte"], act="path")
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample(info["mask"].astype("int8")))

`quipu/Page-v0` loads a page in each episode, `quipu/Flow-v0` sends bytes for some time. The agent decides for the end that
sends them. What `act` says it decides:

- `"path"`: the path of each packet, asked for while one is open and another answer than that is possible. An action is the
  place of a path, in order of identifiers; that of a path that is closed is a wait for it.
- `"weights"`: every `interval`, shares of the paths, from 0 to 1.
- `"order"`: the stream of each packet, a place among the first 16 that are ready, in order of arrival.
- `"window"`: every `interval`, factors of the paths' congestion windows, as powers of 4: from -1, a quarter, to 1, four times; paths are those of `minrtt`.

Observations are the numbers that `names` lists with their units, from 0 to 100. `info["mask"]` says which places are
allowed, and so does `action_masks()`. Another place than these counts as the open path of least round-trip time, or as the
first stream.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from quipu import _quipu, _scenario
from quipu._networks import random_networks
from quipu._policy import PathPolicy, register

__all__ = [
    "REWARDS", "FlowEnv", "FlowVectorEnv", "Moment", "PageEnv", "PageVectorEnv", "expert_dataset", "random_networks",
]


@dataclass(frozen=True)
class Moment:
    """How the simulations of an environment stand: an array each, of a number for each of them."""

    time_s: np.ndarray
    """Time in the simulation."""
    acked_bytes: np.ndarray
    """Bytes of packets of the agent's end that were acknowledged."""
    lost_bytes: np.ndarray
    """Those that were declared lost."""
    has_ended: np.ndarray
    """True where the episode is over."""
    is_cut: np.ndarray
    """True where it is over as its time was up."""
    page_time_s: np.ndarray
    """Page time where the page is there, else the time so far."""
    critical_time_s: np.ndarray
    """The same for document, style sheets and scripts that block."""
    flow_bytes: np.ndarray
    """What flows delivered, once the episode is over."""

    @staticmethod
    def of(numbers: np.ndarray) -> Moment:
        ended = numbers[:, 0] > 0
        whole = numbers[:, 0] == 1
        time = numbers[:, 1]
        return Moment(
            time_s=time,
            acked_bytes=numbers[:, 2],
            lost_bytes=numbers[:, 3],
            has_ended=ended,
            is_cut=numbers[:, 0] == 2,
            page_time_s=np.where(whole & (numbers[:, 4] > 0), numbers[:, 4], time),
            critical_time_s=np.where(whole & (numbers[:, 5] > 0), numbers[:, 5], time),
            flow_bytes=numbers[:, 6],
        )


Reward = Callable[[Moment, Moment], np.ndarray]


def _time(before: Moment, after: Moment) -> np.ndarray:
    return before.time_s - after.time_s


def _finish(before: Moment, after: Moment) -> np.ndarray:
    return np.where(after.has_ended, -after.page_time_s, 0.0)


def _critical(before: Moment, after: Moment) -> np.ndarray:
    return np.where(after.has_ended, -after.critical_time_s, 0.0)


def _delivered(before: Moment, after: Moment) -> np.ndarray:
    return (after.acked_bytes - before.acked_bytes) / 1e6


def _delivered_less_lost(before: Moment, after: Moment) -> np.ndarray:
    return _delivered(before, after) - (after.lost_bytes - before.lost_bytes) / 1e6


REWARDS: dict[str, Reward] = {
    "time": _time,
    "finish": _finish,
    "critical": _critical,
    "delivered": _delivered,
    "delivered-less-lost": _delivered_less_lost,
}
"""Rewards by name. `time`: minus the seconds since the last decision, and so over an episode minus the time from the first one
to the page's end. `finish` and `critical`: minus the page time and the critical time in seconds, at the end. `delivered`: megabytes
that were acknowledged since the last decision; `delivered-less-lost`: less those that were lost."""

RUNS = 10_000
"""How many runs there are of a page over a network: as many as a scenario may have."""
PASSED = 100
"""How many runs in a row may have nothing to decide."""

PAGE: dict[str, Any] = {"page": "dojo-demo", "network": "wifi+lte", "stream": "dwrr"}
FLOW: dict[str, Any] = {"page": [], "network": "wifi+lte", "duration": "2s", "congestion": "cubic"}


class _Episodes:
    """Simulations of one kind, whose pages, networks and runs are drawn."""

    def __init__(
        self,
        kind: str,
        count: int,
        scenario: Any,
        act: str,
        reward: str | Reward | None,
        interval: float | timedelta,
        fields: Mapping[str, Any],
    ) -> None:
        self.kind, self.count, self.act = kind, count, act
        self.scenario, self.fields = scenario, dict(fields)
        seconds = interval.total_seconds() if isinstance(interval, timedelta) else float(interval)
        if not seconds > 0:
            raise ValueError(f"interval: {interval}: expected a time greater than zero, in seconds")
        self.interval_ns = round(seconds * 1e9)
        reward = reward or ("time" if kind == "page" else "delivered")
        if not callable(reward) and reward not in REWARDS:
            raise ValueError(f"reward: {reward!r}: expected a function, or one of {', '.join(REWARDS)}")
        self.reward = reward if callable(reward) else REWARDS[reward]
        self.sims = self.simulations({})
        numbers, allowed, answer, greatest = self.sims.shape
        self.numbers, self.allowed, self.answers = numbers, allowed, answer
        self.observation_space = gymnasium.spaces.Box(0.0, greatest, (numbers,), np.float32)
        if act in ("path", "order"):
            self.action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(allowed)
        elif act == "weights":
            self.action_space = gymnasium.spaces.Box(0.0, 1.0, (answer,), np.float32)
        else:
            self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (answer,), np.float32)

    def simulations(self, changed: Mapping[str, Any]) -> _quipu.Simulations:
        """The simulations of the scenario with other fields."""
        fields = {**(PAGE if self.kind == "page" else FLOW), **self.fields, **changed}
        if self.kind == "page":
            fields["stream" if self.act == "order" else "path"] = "agent"
            if self.act == "window":
                fields["congestion"] = "agent"
        elif self.act == "order":
            raise ValueError("act: 'order': a flow has one stream; expected 'path', 'weights' or 'window'")
        else:
            congestion = {"congestion": "agent"} if self.act == "window" else {}
            fields.setdefault("flows", [{"name": "flow"}])
            fields["flows"] = [{**flow, "path": "agent", **congestion} for flow in fields["flows"]]
        fields["baselines"] = False
        text, file = _scenario.build(self.scenario, fields)
        return _quipu.Simulations(text, self.act, self.interval_ns, self.count, file=file)

    def change(self, options: Mapping[str, Any]) -> None:
        """Takes the scenario that `options` say, if they do, and whatever else is drawn from them."""
        unknown = set(options) - {"scenario", "page", "network", "run"}
        if unknown:
            raise ValueError(f"options: {sorted(unknown)[0]!r}: expected 'scenario', 'page', 'network' or 'run'")
        if "scenario" in options:
            self.sims.close()
            self.sims = self.simulations(options["scenario"])

    def start(self, slot: int, random: np.random.Generator, options: Mapping[str, Any]) -> dict[str, Any]:
        """Starts an episode in `slot`, and tells what was drawn for it."""
        pages, networks = self.sims.pages, self.sims.networks
        # Always drawn, so that what options leave to chance does not depend on them.
        page, network = int(random.integers(max(len(pages), 1))), int(random.integers(len(networks)))
        run = int(random.integers(RUNS))
        page = _place("page", options.get("page"), pages, page)
        network = _place("network", options.get("network"), networks, network)
        run = int(options.get("run", run))
        # A load in which nothing is to be decided is no episode: then the next run is.
        for passed in range(PASSED):
            self.sims.start(slot, page, network, run + passed)
            if self.sims.asks(slot):
                return {"page": pages[page] if pages else "", "network": networks[network], "run": run + passed}
        raise _quipu.RunError(
            f"runs {run} to {run + PASSED - 1} of {networks[network]} ask nothing; expected a network on which something "
            "is to be decided, such as one of two paths"
        )

    def answer(self, actions: Any, slots: list[int] | None = None) -> None:
        """Goes on with `actions`, in all simulations or those in `slots`."""
        answers = np.ascontiguousarray(actions, np.float32)
        if answers.size != self.count * self.answers:
            raise ValueError(f"action: {actions!r}: expected one of {self.action_space}")
        if self.act == "window":
            answers = np.float32(4.0) ** answers
        self.sims.step(answers.tobytes(), slots)

    def look(self) -> tuple[np.ndarray, np.ndarray, Moment]:
        """Observations, masks, and how all stand."""
        numbers, allowed, standing = self.sims.state()
        return (
            np.frombuffer(numbers, np.float32).reshape(self.count, self.numbers),
            # Writable, as PyTorch expects arrays to be.
            np.frombuffer(allowed, np.bool_).reshape(self.count, self.allowed).copy(),
            Moment.of(np.frombuffer(standing, np.float64).reshape(self.count, 7)),
        )


def _place(what: str, chosen: Any, names: list[str], drawn: int) -> int:
    if chosen is None:
        return drawn
    if isinstance(chosen, str):
        if chosen not in names:
            raise ValueError(f"options: {what}: {chosen!r}: expected one of {', '.join(names)}")
        return names.index(chosen)
    return int(chosen)


def _told(moment: Moment, slot: int, mask: np.ndarray) -> dict[str, Any]:
    """What `info` has at every step."""
    told: dict[str, Any] = {"mask": mask[slot], "time_s": float(moment.time_s[slot])}
    if moment.has_ended[slot]:
        told["page_time_s"] = float(moment.page_time_s[slot])
        told["critical_time_s"] = float(moment.critical_time_s[slot])
        told["flow_bytes"] = float(moment.flow_bytes[slot])
    return told


class _Env(gymnasium.Env[np.ndarray, Any]):
    """One simulation after the other.

    `scenario` and `fields` are those of `quipu.compare`; several pages and networks are drawn from, an episode each.
    `reward` is a name of `REWARDS` or a function of two `Moment`s, before and after a step, that gives an array.
    """

    metadata = {"render_modes": []}
    kind = "page"

    def __init__(
        self,
        scenario: Any = None,
        *,
        act: str = "path",
        reward: str | Reward | None = None,
        interval: float | timedelta = 0.02,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        self._episodes = _Episodes(self.kind, 1, scenario, act, reward, interval, fields)
        self.observation_space = self._episodes.observation_space
        self.action_space = self._episodes.action_space
        self.render_mode = render_mode
        self._mask = np.zeros((1, self._episodes.allowed), np.bool_)
        self._moment: Moment | None = None

    @property
    def names(self) -> list[str]:
        """The names of the numbers of an observation, with their units."""
        return self._episodes.sims.names

    def action_masks(self) -> np.ndarray:
        """Which places are allowed now."""
        return self._mask[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode. `options` may have `page`, `network` (names or places), `run` (a number), and `scenario`:
        fields that change the environment's scenario from now on, such as `{"network": quipu.random_networks(50, seed=7)}`.

        `info` says what was drawn: `quipu.load` with that page, network and run is the same load with another policy. A
        load in which nothing is to be decided is passed over: the next run is taken.
        """
        super().reset(seed=seed)
        options = options or {}
        self._episodes.change(options)
        drawn = self._episodes.start(0, self.np_random, options)
        numbers, self._mask, self._moment = self._episodes.look()
        return numbers[0].copy(), {**drawn, **_told(self._moment, 0, self._mask)}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Answers the question with `action`, and goes on to the next."""
        before = self._moment
        if before is None or before.has_ended[0]:
            raise gymnasium.error.ResetNeeded("step: the episode is over; expected reset() first")
        self._episodes.answer(action)
        numbers, self._mask, after = self._episodes.look()
        self._moment = after
        reward = float(self._episodes.reward(before, after)[0])
        cut = bool(after.is_cut[0]) or (self.kind == "flow" and bool(after.has_ended[0]))
        ended = bool(after.has_ended[0]) and not cut
        return numbers[0].copy(), reward, ended, cut, _told(after, 0, self._mask)

    def close(self) -> None:
        """Ends the simulation that is under way."""
        self._episodes.sims.close()


class PageEnv(_Env):
    """An episode is a page load; it is cut where the page is not there within the scenario's time limit."""

    kind = "page"


class FlowEnv(_Env):
    """An episode is the `duration` of the scenario, in which its flows send; its end is a cut, as nothing is reached."""

    kind = "flow"


class _VectorEnv(VectorEnv[np.ndarray, Any, np.ndarray]):
    """Simulations side by side, stepped by one call. An episode that is over starts anew with the next step."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
    kind = "page"

    def __init__(
        self,
        num_envs: int = 1,
        scenario: Any = None,
        *,
        act: str = "path",
        reward: str | Reward | None = None,
        interval: float | timedelta = 0.02,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        self._episodes = _Episodes(self.kind, num_envs, scenario, act, reward, interval, fields)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = self._episodes.observation_space
        self.single_action_space = self._episodes.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._randoms = [np.random.default_rng() for _ in range(num_envs)]
        self._moment: Moment | None = None
        self._mask = np.zeros((num_envs, self._episodes.allowed), np.bool_)

    @property
    def names(self) -> list[str]:
        """The names of the numbers of an observation, with their units."""
        return self._episodes.sims.names

    def action_masks(self) -> np.ndarray:
        """Which places are allowed now, for each simulation."""
        return self._mask

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode in each; see `PageEnv.reset`. A number as `seed` is that of the first, and one more for each."""
        seeds = [None if seed is None else seed + slot for slot in range(self.num_envs)] if not isinstance(seed, list) else seed
        for slot, own in enumerate(seeds):
            if own is not None:
                self._randoms[slot] = gymnasium.utils.seeding.np_random(own)[0]
        options = options or {}
        self._episodes.change(options)
        drawn = [self._episodes.start(slot, random, options) for slot, random in enumerate(self._randoms)]
        numbers, self._mask, self._moment = self._episodes.look()
        there = np.ones(self.num_envs, np.bool_)
        infos: dict[str, Any] = {"mask": self._mask, "_mask": there}
        for key in ("page", "network", "run"):
            infos[key], infos[f"_{key}"] = np.array([own[key] for own in drawn]), there
        return numbers.copy(), infos

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Answers all questions, and goes on to the next ones."""
        before = self._moment
        if before is None:
            raise gymnasium.error.ResetNeeded("step: no episode; expected reset() first")
        anew = np.flatnonzero(before.has_ended)
        if len(anew):
            going = np.flatnonzero(~before.has_ended).tolist()
            self._episodes.answer(actions, going)
            for slot in anew:
                self._episodes.start(int(slot), self._randoms[slot], {})
        else:
            self._episodes.answer(actions)
        numbers, self._mask, after = self._episodes.look()
        self._moment = after
        rewards = np.asarray(self._episodes.reward(before, after), np.float64)
        ended = after.has_ended
        infos: dict[str, Any] = {"mask": self._mask, "_mask": np.ones(self.num_envs, np.bool_)}
        if len(anew):
            rewards = np.where(before.has_ended, 0.0, rewards)
        if ended.any():
            for key in ("page_time_s", "critical_time_s", "flow_bytes"):
                infos[key], infos[f"_{key}"] = np.where(ended, getattr(after, key), 0.0), ended
        cut = ended if self.kind == "flow" else after.is_cut
        return numbers.copy(), rewards, ended & ~cut, cut, infos

    def close(self, **kwargs: Any) -> None:
        """Ends the simulations that are under way."""
        self._episodes.sims.close()


class PageVectorEnv(_VectorEnv):
    """Page loads side by side."""

    kind = "page"


class FlowVectorEnv(_VectorEnv):
    """Flows side by side."""

    kind = "flow"


def expert_dataset(
    file: str | os.PathLike[str],
    expert: str | type[PathPolicy] = "ecf",
    *,
    episodes: int = 100,
    seed: int = 0,
    scenario: Any = None,
    **fields: Any,
) -> int:
    """Writes what the path policy `expert` decides in `episodes` page loads into the Parquet file `file`, a row for each
    decision for which an agent with `act="path"` is asked, and returns how many rows there are. Pages, networks and runs
    are drawn by `seed`.

    Columns: `episode`, `page`, `network`, `run`, `page_time_ns` of the episode, `time_s`, the numbers of the observation by
    their names, `path0.is_allowed` and so on, and `place`, the expert's action.
    """
    if isinstance(expert, type):
        expert = register(expert)
    text, source = _scenario.build(scenario, {**PAGE, **fields, "path": "agent", "baselines": False})
    sims = _quipu.Simulations(text, "path", 1, 0, file=source)
    random = np.random.default_rng(seed)
    pages, networks = max(len(sims.pages), 1), len(sims.networks)
    runs = [
        (int(random.integers(pages)), int(random.integers(networks)), int(random.integers(RUNS)))
        for _ in range(episodes)
    ]
    return _quipu.expert_decisions(text, expert, runs, file, file=source)


for _name in ("Page", "Flow"):
    if f"quipu/{_name}-v0" not in gymnasium.registry:
        gymnasium.register(
            f"quipu/{_name}-v0",
            entry_point=f"quipu.envs:{_name}Env",
            vector_entry_point=f"quipu.envs:{_name}VectorEnv",
        )
