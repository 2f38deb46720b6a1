"""The Python of the guides in `docs/`."""

import re
from pathlib import Path

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
