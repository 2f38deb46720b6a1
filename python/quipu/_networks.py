"""Networks that are drawn, for training and for comparisons over many."""

from __future__ import annotations

import random

from quipu._scenario import Network, Path


def random_networks(
    count: int,
    *,
    seed: int,
    paths: tuple[int, int] = (2, 2),
    rate_mbit: tuple[float, float] = (2.0, 60.0),
    delay_ms: tuple[float, float] = (5.0, 100.0),
    loss: tuple[float, float] = (0.0, 0.01),
) -> list[Network]:
    """`count` networks, each of some `paths`, whose rates (logarithmically), one-way delays and loss rates are drawn evenly
    from these ranges. The same `seed` gives the same networks.
    """
    draw = random.Random(seed)

    def path(name: str) -> Path:
        low, high = rate_mbit
        rate = low * (high / low) ** draw.random()
        return Path(
            name,
            rate=f"{round(rate * 1000)}kbit",
            delay=f"{round(draw.uniform(*delay_ms) * 1000)}us",
            loss=round(draw.uniform(*loss), 5),
        )

    return [
        Network([path(f"path{place}") for place in range(draw.randint(*paths))], name=f"random-{seed}-{index}")
        for index in range(count)
    ]
