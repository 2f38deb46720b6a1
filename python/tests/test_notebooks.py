"""The notebooks of the gallery: each runs in a kernel of its own, and prints what it shows.

With `QUIPU_NOTEBOOKS=write` their outputs are written instead, for which figures are drawn (`pip install vl-convert-python pillow`).
"""

import base64
import io
import os
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

FOLDER = Path(__file__).parent.parent.parent / "notebooks" / "python"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
FIGURE = "application/vnd.vegalite.v6+json"
# The tag of cells whose outputs differ from run to run, as messages of other programs do.
UNSTORED = "not-stored"
# A cell takes seconds, on a busy machine a minute; beyond this it hangs.
SECONDS = 300


def run(notebook, folder):
    """The notebook with the outputs of a fresh kernel, which works in `folder`."""
    made = nbformat.from_dict(notebook)
    for cell in code(made):
        cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(made, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    return made


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell):
    """What a cell prints and shows, without figures, whose text is their caption."""
    printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
    shown = [output.data["text/plain"] for output in cell.outputs if "text/plain" in output.get("data", {})]
    return [text.rstrip("\n") for text in (printed, *shown) if text.strip()]


def figures(cell):
    """Specifications of the figures that a cell shows."""
    return [output.data[FIGURE] for output in cell.outputs if FIGURE in output.get("data", {})]


def pictures(cell):
    return [output for output in cell.outputs if "image/png" in output.get("data", {})]


def kept(cell):
    """The outputs of a cell as notebooks keep them: what it prints as one text, tables as text, figures as pictures."""
    printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
    outputs = [nbformat.v4.new_output("stream", name="stdout", text=printed)] if printed else []
    for output in cell.outputs:
        if "text/plain" not in output.get("data", {}):
            continue
        data = {"text/plain": output.data["text/plain"]}
        if FIGURE in output.data:
            data["image/png"] = base64.b64encode(picture(output.data[FIGURE])).decode()
        outputs.append(nbformat.v4.new_output("display_data", data=data))
    return outputs


def picture(spec):
    """A figure as a PNG of few colours, some ten kilobytes."""
    import vl_convert
    from PIL import Image

    drawn = Image.open(io.BytesIO(vl_convert.vegalite_to_png(spec)))
    small = io.BytesIO()
    drawn.convert("RGB").quantize(32).save(small, "PNG", optimize=True)
    return small.getvalue()


def write(file, made):
    for cell in code(made):
        cell.outputs = [] if UNSTORED in cell.metadata.get("tags", []) else kept(cell)
        cell.metadata.pop("execution", None)
    made.metadata.pop("widgets", None)
    made.metadata.language_info = {"name": "python"}
    nbformat.validate(made)
    nbformat.write(made, file)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_prints_what_it_shows(file, tmp_path):
    stored = nbformat.read(file, as_version=4)
    for package in stored.metadata.get("needs", []):
        pytest.importorskip(package)
    made = run(stored, tmp_path)
    if os.environ.get("QUIPU_NOTEBOOKS") == "write":
        write(file, made)
        return
    for before, now in zip(code(stored), code(made), strict=True):
        if UNSTORED not in before.metadata.get("tags", []):
            assert texts(now) == texts(before), f"{file.name}, cell {before.id}: other outputs than those it shows"
        assert len(figures(now)) == len(pictures(before)), f"{file.name}, cell {before.id}: other figures"
        for figure in figures(now):
            assert "vega-lite" in figure["$schema"]


def test_the_gallery_lists_every_notebook():
    assert len(NOTEBOOKS) >= 3
    listed = re.findall(r"\]\(([^)]+\.ipynb)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [file.name for file in NOTEBOOKS]
