"""The Python of the guides runs as it stands there."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"


def run(guide):
    """Runs the blocks of a guide one after the other, and returns the names that are there in the end."""
    text = (DOCS / guide).read_text(encoding="utf-8")
    code = r"^(<!-- not run: [^\n]*-->\n)?```python\n(.*?)^```$"
    names = {}
    for not_run, block in re.findall(code, text, re.DOTALL | re.MULTILINE):
        if not not_run:
            exec(compile(block, guide, "exec"), names)
    return names


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
    pytest.importorskip("gymnasium")
    import gymnasium

    import quipu.envs

    text = (DOCS / "environments.md").read_text(encoding="utf-8")
    seen = gymnasium.make("quipu/Page-v0").unwrapped.names
    seen += gymnasium.make("quipu/Page-v0", act="order").unwrapped.names
    for name in {name.partition(".")[2] or name for name in seen} | set(quipu.envs.REWARDS):
        assert f"`{name}`" in text, name
