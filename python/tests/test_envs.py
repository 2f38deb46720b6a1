"""Environments of Gymnasium: that they are environments, and that an agent decides as a policy does."""

import time

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import quipu
import quipu.envs

PAGE = {"page": ["dojo-demo", "pandas-merging"], "network": ["wifi+lte", "dsl+lte"], "stream": "fifo"}
FLOW = {"network": ["wifi+lte"], "duration": "500ms"}


def numbers(env):
    return {name: place for place, name in enumerate(env.unwrapped.names)}


def minrtt(names):
    """The open path of least round-trip time, as `minrtt` chooses it of two paths."""
    open_, srtt = ([names[f"path{place}.{what}"] for place in range(2)] for what in ("is_open", "srtt_100ms"))

    def act(observation):
        known = np.where(observation[..., srtt] > 0, observation[..., srtt], 1e3)
        return np.argmin(np.where(observation[..., open_] > 0, known, 1e6), axis=-1)

    return act


def episode(env, act, **reset):
    observation, info = env.reset(**reset)
    drawn, total, steps, over = info, 0.0, 0, False
    while not over:
        observation, reward, terminated, truncated, info = env.step(act(observation))
        total, steps, over = total + reward, steps + 1, terminated or truncated
    return drawn, total, steps, info, truncated


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "act", "fields"),
    [
        ("Page", "path", PAGE),
        ("Page", "weights", PAGE),
        ("Page", "order", PAGE),
        ("Page", "window", PAGE),
        ("Flow", "path", FLOW),
        ("Flow", "weights", FLOW),
        ("Flow", "window", FLOW),
    ],
)
def test_environments_are_what_gymnasium_expects(name, act, fields):
    env = gymnasium.make(f"quipu/{name}-v0", act=act, **fields)
    check_env(env.unwrapped, skip_render_check=True)
    assert len(env.unwrapped.names) == env.observation_space.shape[0]
    env.close()


def test_an_agent_that_decides_as_minrtt_has_its_page_times():
    env = gymnasium.make("quipu/Page-v0", **PAGE)
    act = minrtt(numbers(env))
    for seed in range(8):
        drawn, total, steps, info, _ = episode(env, act, seed=seed)
        assert steps > 5
        same = quipu.load(
            page=drawn["page"], network=drawn["network"], stream="fifo", path="minrtt", run=drawn["run"]
        )
        expected = same.summary["rows"][0]
        row = next(iter(quipu_rows(same)))
        assert info["page_time_s"] == pytest.approx(float(row["page_time_ns"]) / 1e9, abs=1e-12), expected
        assert info["critical_time_s"] == pytest.approx(float(row["critical_time_ns"]) / 1e9, abs=1e-12)


def quipu_rows(results):
    import csv

    with open(results.folder / "runs.csv", newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def test_a_seed_gives_the_same_episode_and_rewards_are_named():
    def sums(seed, reward):
        env = gymnasium.make("quipu/Page-v0", reward=reward, **PAGE)
        random = np.random.default_rng(5)
        drawn, total, steps, info, _ = episode(env, lambda _: int(random.integers(2)), seed=seed)
        return drawn["run"], total, steps, info["page_time_s"]

    assert sums(1, "finish") == sums(1, "finish") != sums(2, "finish")
    run, total, _, page_time = sums(3, "finish")
    assert total == -page_time
    # The same episode, rewarded otherwise.
    by_time = sums(3, "time")
    assert by_time[0] == run and -page_time < by_time[1] < 0
    assert sums(3, "delivered")[1] > sums(3, "delivered-less-lost")[1] - 1e-9 > 0
    mine = sums(3, lambda before, after: np.where(after.has_ended, 7.0, 0.0))
    assert mine[1] == 7.0


@pytest.mark.parametrize(("act", "better", "worse"), [("weights", [1, 1, 1, 1], [0, 1, 0, 0]), ("window", [0] * 4, [-1] * 4)])
def test_answers_for_a_while_matter(act, better, worse):
    env = gymnasium.make("quipu/Page-v0", act=act, page="pandas-merging", network="wifi+lte", reward="finish")

    def total(action):
        return sum(episode(env, lambda _: np.array(action, np.float32), seed=seed)[1] for seed in range(4))

    assert total(better) > total(worse)


def test_the_order_of_streams_matters():
    env = gymnasium.make("quipu/Page-v0", act="order", page="pandas-merging", network="wifi+lte", reward="critical")
    random = np.random.default_rng(1)

    def last(observation):
        there = [place for place in range(16) if observation[7 * place] > 0]
        return there[-1]

    first = episode(env, lambda _: 0, seed=1)[1]
    assert first != episode(env, last, seed=1)[1]
    assert episode(env, lambda _: int(random.integers(16)), seed=1)[1] < 0


def test_a_vector_of_environments_is_as_many_single_ones():
    count, steps = 4, 1500
    vector = gymnasium.make_vec(
        "quipu/Page-v0", num_envs=count, vectorization_mode="vector_entry_point", reward="time", **PAGE
    )
    singles = [gymnasium.make("quipu/Page-v0", reward="time", **PAGE) for _ in range(count)]
    observations, infos = vector.reset(seed=11)
    for slot, env in enumerate(singles):
        observation, info = env.reset(seed=11 + slot)
        assert np.array_equal(observation, observations[slot]) and info["run"] == infos["run"][slot]
    random = np.random.default_rng(0)
    over, episodes = [False] * count, 0
    for _ in range(steps):
        actions = random.integers(2, size=count)
        observations, rewards, terminated, truncated, infos = vector.step(actions)
        for slot, env in enumerate(singles):
            if over[slot]:
                observation, info = env.reset()
                reward, over[slot] = 0.0, False
            else:
                observation, reward, ended, cut, info = env.step(actions[slot])
                over[slot] = ended or cut
                episodes += over[slot]
            assert np.array_equal(observation, observations[slot])
            assert reward == rewards[slot] and over[slot] == (terminated[slot] or truncated[slot])
            assert np.array_equal(info["mask"], infos["mask"][slot])
    assert episodes > count


def test_options_choose_and_change_scenarios():
    env = gymnasium.make("quipu/Page-v0", **PAGE)
    _, info = env.reset(seed=1, options={"page": "pandas-merging", "network": 1, "run": 7})
    assert (info["page"], info["network"], info["run"]) == ("pandas-merging", "dsl+lte", 7)
    with pytest.raises(quipu.RunError, match="ask nothing"):
        env.reset(options={"scenario": {"network": quipu.Network([quipu.Path("alone", rate="5mbit", delay="20ms")])}})
    drawn = quipu.random_networks(5, seed=3)
    assert drawn == quipu.random_networks(5, seed=3) != quipu.random_networks(5, seed=4)
    _, info = env.reset(seed=1, options={"scenario": {"network": drawn}})
    assert info["network"].startswith("random-3-")
    assert {env.reset()[1]["network"] for _ in range(40)} == {network.name for network in drawn}


def test_what_is_wrong_is_told():
    with pytest.raises(ValueError, match="act: paths: expected one of path, weights"):
        gymnasium.make("quipu/Page-v0", act="paths")
    with pytest.raises(ValueError, match="reward: 'tim': expected a function, or one of time"):
        gymnasium.make("quipu/Page-v0", reward="tim")
    with pytest.raises(ValueError, match="a flow has one stream"):
        gymnasium.make("quipu/Flow-v0", act="order")
    with pytest.raises(quipu.ScenarioError, match="dojo-dem"):
        gymnasium.make("quipu/Page-v0", page="dojo-dem")
    env = gymnasium.make("quipu/Page-v0").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(ValueError, match="options: 'pages'"):
        env.reset(options={"pages": 1})
    with pytest.raises(ValueError, match="options: network: 'wifi'"):
        env.reset(options={"network": "wifi"})
    env.reset(seed=1)
    with pytest.raises(ValueError, match="action"):
        env.step([0, 1])


def test_a_load_that_takes_too_long_is_cut():
    slow = quipu.Network([quipu.Path("slow", rate="200kbit", delay="20ms"), quipu.Path("other", rate="200kbit", delay="20ms")])
    env = gymnasium.make("quipu/Page-v0", page="pandas-merging", network=slow, time_limit="1s")
    *_, info, cut = episode(env, lambda _: 0, seed=1)
    assert cut and info["page_time_s"] == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize("name", ["Page", "Flow"])
def test_a_trivial_agent_makes_steps_at_a_rate_that_is_told(name, record_property):
    fields = {"page": "pandas-merging", "network": "wifi+lte"} if name == "Page" else {"network": "wifi+lte"}
    env = gymnasium.make_vec(f"quipu/{name}-v0", num_envs=8, vectorization_mode="vector_entry_point", **fields)
    env.reset(seed=1)
    actions, steps = np.zeros(8, np.int64), 2000
    began = time.perf_counter()
    for _ in range(steps):
        env.step(actions)
    rate = 8 * steps / (time.perf_counter() - began)
    record_property("steps_per_second", rate)
    print(f"{name}-v0: {rate:,.0f} decisions per second")
    env.close()


def test_decisions_of_an_expert_are_written_as_parquet_and_are_those_that_it_takes(tmp_path):
    polars = pytest.importorskip("polars")
    file = tmp_path / "ecf.parquet"
    count = quipu.envs.expert_dataset(file, "ecf", episodes=6, seed=1, **PAGE)
    table = polars.read_parquet(file)
    assert len(table) == count > 100
    assert sorted(table["episode"].unique()) == list(range(6))
    # Whoever decides so has the expert's page time.
    env = gymnasium.make("quipu/Page-v0", **PAGE)
    for (_, page, network, run), rows in table.group_by("episode", "page", "network", "run", maintain_order=True):
        places, names = iter(rows["place"]), env.unwrapped.names
        observation, info = env.reset(options={"page": page, "network": network, "run": run})
        observations, over = iter(rows.select(names).rows()), False
        while not over:
            assert np.array_equal(observation, np.array(next(observations), np.float32))
            observation, _, over, _, info = env.step(next(places))
        assert info["page_time_s"] == pytest.approx(rows["page_time_ns"][0] / 1e9)
    with pytest.raises(quipu.ScenarioError, match="expert: .*ecff"):
        quipu.envs.expert_dataset(file, "ecff", **PAGE)
