"""Runs the notebook, and the Python of its document, as a reader would.

    check.py NOTEBOOK DOCUMENT FOLDER

NOTEBOOK is run in FOLDER, where it must end without an error and every chart must have been drawn: its
specification keeps to the schema that Altair ships, has rows, and becomes an image with marks. So does each
figure of the report that was written there. In the repository the notebook has no outputs. Each block of Python in DOCUMENT is run in the folder above FOLDER.
"""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import altair
import jsonschema
import nbformat
import vl_convert
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

# Cells that show a figure of the report, drawn from its file.
REDRAWN = ["curves", "shares", "waterfall"]
# Cells that show a chart made from tables.
FROM_TABLES = ["raw", "sweep"]
# A cell takes seconds, on a busy machine a minute; beyond this it hangs.
SECONDS = 300

# Charts become data under the name that Vega-Lite has in notebooks, not pages.
MIME = "application/vnd.vegalite.v6+json"
PREAMBLE = f"""
import altair
altair.renderers.register("data", lambda spec, **options: {{"{MIME}": spec}})
altair.renderers.enable("data")
"""

SCHEMA = json.loads(
    (Path(altair.__file__).parent / "vegalite/v6/schema/vega-lite-schema.json").read_text()
)


def stripped(notebook):
    """Whether nothing of a run is left in the notebook."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return all(not cell.outputs and cell.execution_count is None for cell in code)


def run(notebook, folder):
    """The notebook with its outputs."""
    notebook.cells.insert(0, nbformat.v4.new_code_cell(PREAMBLE))
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=place)
    try:
        client.execute()
    except CellExecutionError as error:
        sys.exit(f"a cell of the notebook fails: {error.ename}: {error.evalue[:1000]}")
    return notebook


def charts(cell):
    """Specifications of the charts that a cell shows."""
    return [output.data[MIME] for output in cell.outputs if MIME in output.get("data", {})]


def rows(spec):
    """Rows of all data in a specification."""
    if isinstance(spec, list):
        return sum(map(rows, spec))
    if not isinstance(spec, dict):
        return 0
    named = sum(len(values) for values in spec.get("datasets", {}).values())
    own = spec.get("data", {}).get("values", []) if isinstance(spec.get("data"), dict) else []
    parts = [spec.get(key, []) for key in ("layer", "hconcat", "vconcat", "concat", "spec")]
    return named + len(own) + sum(map(rows, parts))


def marks(spec):
    """Marks in the image of a specification."""
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec))
    groups = [group for group in root.iter() if "role-mark" in group.get("class", "").split()]
    return sum(1 for group in groups for mark in group if mark.get("d") or mark.tag.endswith("text"))


def check_chart(name, cell):
    specs = charts(cell)
    assert len(specs) == 1, f"cell {name} shows {len(specs)} charts; expected 1"
    check_spec(f"the chart of cell {name}", specs[0])


def check_spec(name, spec):
    jsonschema.validate(spec, SCHEMA)
    found = rows(spec)
    assert found > 0, f"{name} has no rows"
    drawn = marks(spec)
    assert drawn > 0, f"the image of {name} has no marks"
    print(f"{name}: {found} rows, {drawn} marks")


def check_figures(folder):
    """Figures of the report, each in its file."""
    files = sorted(folder.rglob("*.vl.json"))
    assert len(files) >= len(REDRAWN), f"{folder} has {len(files)} figures"
    for file in files:
        check_spec(file.stem, json.loads(file.read_text(encoding="utf-8")))


def main(notebook, document, folder):
    read = nbformat.read(notebook, as_version=4)
    assert stripped(read), f"{notebook} has outputs; clear them (Edit, Clear All Outputs)"
    cells = {cell.id: cell for cell in run(read, folder).cells}
    for name in REDRAWN + FROM_TABLES:
        check_chart(name, cells[name])
    check_figures(folder.parent)
    blocks = re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2, f"{document} has {len(blocks)} blocks of Python; expected polars and pandas"
    for block in blocks:
        command = [sys.executable, "-W", "error", "-c", block]
        subprocess.run(command, cwd=folder.parent, check=True, stdout=subprocess.DEVNULL)
    print(f"{document}: {len(blocks)} blocks of Python run")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
