"""The Python of the guides runs as it stands there."""

import pytest
from guide import DOCS, run

import quipu


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run("python.md")
    assert "least-full" in {told["name"] for told in names["quipu"].policies("path")}
    assert (tmp_path / "results" / "sweep" / "runs.csv").is_file()


def test_the_code_of_the_guide_to_environments_runs(tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    names = run("environments.md")
    assert names["rows"] > 100 and (tmp_path / "ecf.parquet").is_file()
    assert names["observations"].shape == (8, len(names["vector"].unwrapped.names))


def test_the_guide_to_environments_names_what_is_seen_and_rewarded():
    gymnasium = pytest.importorskip("gymnasium")
    import quipu.envs

    text = (DOCS / "environments.md").read_text(encoding="utf-8")
    seen = gymnasium.make("quipu/Page-v0", act="order").unwrapped.names
    for name in {name.partition(".")[2] or name for name in seen} | set(quipu.envs.REWARDS):
        assert f"`{name}`" in text, name


def test_what_is_seen_of_paths_is_what_learned_policies_see():
    gymnasium = pytest.importorskip("gymnasium")
    import quipu.envs  # noqa: F401

    for act in ("path", "weights", "window"):
        assert gymnasium.make("quipu/Page-v0", act=act).unwrapped.names == quipu.observation_names()
