"""A small learner beats an agent that decides by chance."""

import gymnasium
import numpy as np

import quipu
import quipu.envs

SLOTS = 16
PER_PATH = 10
PLACES = 4


def page_times(env, score, seeds, run):
    """The page times of as many loads as `seeds` has, of which slot after slot takes one; each slot decides by `score`."""
    observations, infos = env.reset(seed=list(seeds), options={"run": run})
    times, done = np.zeros(env.num_envs), np.zeros(env.num_envs, bool)
    while not done.all():
        scores = np.where(infos["mask"], score(observations), -np.inf)
        observations, _, terminated, truncated, infos = env.step(scores.argmax(axis=1))
        new = (terminated | truncated) & ~done
        if new.any():
            times[new], done = infos["page_time_s"][new], done | new
    return times


def linear(weights):
    """Scores of places: the same weights for each path; `weights` has a row for each slot, or one for all."""

    def score(observations):
        paths = observations[:, : PLACES * PER_PATH].reshape(len(observations), PLACES, PER_PATH)
        return np.einsum("spn,sn->sp", paths, np.broadcast_to(weights, (len(paths), PER_PATH)))

    return score


def by_chance(seed):
    random = np.random.default_rng(seed)
    return lambda observations: random.random((len(observations), PLACES))


def learned(env, rounds, loads, seed):
    """The cross-entropy method: weights are drawn, and the better half says where to draw next."""
    random = np.random.default_rng(seed)
    mean, deviation = np.zeros(PER_PATH), np.ones(PER_PATH)
    for step in range(rounds):
        drawn = mean + deviation * random.standard_normal((env.num_envs, PER_PATH))
        times = sum(
            page_times(env, linear(drawn), [100 * step + load] * env.num_envs, run=100 * step + load)
            for load in range(loads)
        )
        best = drawn[np.argsort(times)[: env.num_envs // 4]]
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.05
    return mean


def test_a_small_learner_beats_an_agent_that_decides_by_chance():
    env = gymnasium.make_vec(
        "quipu/Page-v0",
        num_envs=SLOTS,
        vectorization_mode="vector_entry_point",
        page=["dojo-demo", "pandas-merging"],
        network=["wifi+lte", "dsl+lte"],
        stream="fifo",
    )
    weights = learned(env, rounds=8, loads=3, seed=1)
    # Loads that it has not seen, the same for both.
    rows = range(3)
    mine, chance = (
        np.concatenate(
            [page_times(env, score, range(90_000 + SLOTS * row, 90_000 + SLOTS * (row + 1)), run=9_000 + row) for row in rows]
        )
        for score in (linear(weights), by_chance(2))
    )
    difference = chance - mine
    half = 2.01 * difference.std(ddof=1) / np.sqrt(len(difference))
    print(f"page time {1e3 * mine.mean():.0f} ms, by chance {1e3 * chance.mean():.0f} ms, "
          f"difference {1e3 * difference.mean():.0f} ± {1e3 * half:.0f} ms in {len(difference)} loads")
    assert difference.mean() - half > 0
