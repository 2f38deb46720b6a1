"""The Python of the guide runs as it stands there."""

import re
from pathlib import Path

GUIDE = Path(__file__).parent.parent.parent / "docs" / "python.md"


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 7
    names = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert "least-full" in {told["name"] for told in names["quipu"].policies("path")}
    assert (tmp_path / "results" / "sweep" / "runs.csv").is_file()
