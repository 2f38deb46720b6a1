"""The first example of the guide: a comparison and a figure in five lines."""

import ast
import re
from pathlib import Path

import quipu

GUIDE = Path(__file__).parent.parent.parent / "docs" / "python.md"


def test_a_comparison_and_a_figure_take_five_lines():
    first = re.search(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]
    assert len(first.splitlines()) <= 5
    *statements, shown = ast.parse(first).body
    assert isinstance(shown, ast.Expr)
    names = {}
    exec(compile(ast.Module(statements, []), str(GUIDE), "exec"), names)
    figure = eval(compile(ast.Expression(shown.value), str(GUIDE), "eval"), names)
    assert isinstance(figure, quipu.Figure)
    assert "application/vnd.vegalite.v6+json" in figure._repr_mimebundle_()
