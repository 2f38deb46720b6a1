"""What comes with the program, by name."""

from __future__ import annotations

from typing import Any

from quipu import _policy, _quipu


def pages() -> dict[str, str]:
    """The pages that come with the program: their names, and what they are."""
    return dict(_quipu.builtin_pages())


def networks() -> dict[str, dict[str, Any]]:
    """The networks that come with the program: their names, with `paths` in words and `about`."""
    return {
        name: {"paths": paths, "about": about} for name, paths, about in _quipu.builtin_networks()
    }


def traces() -> dict[str, str]:
    """The recordings of links that come with the program: their names, and what they are."""
    return dict(_quipu.builtin_traces())


def browsers() -> dict[str, str]:
    """The browsers that pages can be loaded with: their names, and what they are."""
    return dict(_quipu.builtin_browsers())


def policies(layer: str | None = None) -> list[dict[str, Any]]:
    """All policies, or those of one layer, each with `layer`, `name`, `about`, `source` and `is_python`."""
    return [told for told in _quipu.policies() if layer in (None, told["layer"])]


def policy(name: str) -> str:
    """Everything about the policies of that name, with formula and parameters: the text of `quipu schedulers NAME`."""
    return _quipu.describe_policy(name)


def check_policy(policy: Any, scripts: int = 100) -> None:
    """Holds a policy, a class or a name with parameters, to the rules of the seam in random scripts, on 1, 2, 3 and 8 paths
    that come, go and lose packets. Raises `RunError` with what went against the rules.
    """
    text = _policy.register(policy) if isinstance(policy, type) else policy
    faults = []
    for layer, decisions, refused, against in _quipu.check_policy(text, scripts):
        if refused:
            faults.append(f"{text} ({layer}): {refused} of {decisions} answers refused")
        faults.extend(f"{text} ({layer}): {fault}" for fault in against)
    if faults:
        raise _quipu.RunError("; ".join(faults))
