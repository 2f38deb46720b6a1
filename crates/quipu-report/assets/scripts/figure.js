// The card of one figure: its controls, its drawing, its data.

/** At most this many short options stand side by side; more are a list to choose from. */
const OPTIONS_ABREAST = 5;
const LETTERS_ABREAST = 48;

/** A choice among a control's options; `chosen` is called with the new value. */
function choiceControl(control, name, value, chosen) {
  const letters = control.options.reduce((sum, option) => sum + String(option.label).length + 3, 0);
  if (control.options.length <= OPTIONS_ABREAST && letters <= LETTERS_ABREAST) {
    return element(
      "fieldset",
      { class: "segments", "data-control": control.id },
      element("legend", { text: control.label }),
      element(
        "div",
        {},
        ...control.options.map((option) => {
          const input = element("input", { type: "radio", name, value: option.value, onchange: () => chosen(String(option.value)) });
          input.checked = String(option.value) === value;
          return element("label", {}, input, element("span", { text: option.label }));
        }),
      ),
    );
  }
  const select = element(
    "select",
    { id: name, onchange: () => chosen(select.value) },
    ...control.options.map((option) => {
      const made = element("option", { value: option.value, text: option.label });
      made.selected = String(option.value) === value;
      return made;
    }),
  );
  return element("div", { class: "choice", "data-control": control.id }, element("label", { for: name, text: control.label }), select);
}

class Figure {
  #figure;
  #datasets;
  #choice = new Map();
  #box;
  #note = element("p", { class: "figure-note", hidden: true });
  #table = element("div", { class: "figure-data", hidden: true });
  #plot = null;
  #legend;
  /** Of figures that have them, else null. */
  #zoom;
  #names;
  #drawnWidth = 0;

  constructor(figure, datasets) {
    this.#figure = figure;
    this.#datasets = datasets;
    for (const control of figure.controls ?? []) {
      this.#choice.set(control.id, String(control.default ?? control.options[0]?.value));
    }
    const name = `${figure.id}-title`;
    const redraw = () => {
      this.redraw();
      this.#fillTable();
    };
    this.#legend = new Legend(figure.spec, figure.title, redraw);
    this.#zoom = isZoomable(figure.spec) ? new Zoom(figure.title, () => this.redraw()) : null;
    this.#names = figure.spec.usermeta?.names ? new RowNames(figure.spec, figure.title, () => this.redraw()) : null;
    this.#box = element("div", { class: "chart", role: "img" });
    this.#reserve();
    this.#describe();
    this.#listen();
    this.element = element(
      "figure",
      { class: "card", id: figure.id, "aria-labelledby": name, "data-state": "waiting" },
      element("div", { class: "card-head" }, element("h3", { id: name, text: figure.title }), this.#actions()),
      this.#controls(),
      // Right below the button that opens it, however high the drawing is.
      this.#table,
      this.#tools(),
      this.#legend.element,
      this.#note,
      this.#box,
      figure.caption ? element("figcaption", { text: figure.caption }) : null,
    );
  }

  /** Zoom and whole names, and the row that is read. */
  #tools() {
    if (!this.#zoom && !this.#names) return null;
    const buttons = element("div", { class: "tools" }, this.#zoom?.element, this.#names?.button);
    return element("div", {}, buttons, this.#names?.note);
  }

  /** Has keys and pointers act on the drawing, of figures where they do. */
  #listen() {
    if (!this.#zoom && !this.#names) return;
    this.#box.setAttribute("tabindex", "0");
    this.#box.addEventListener("keydown", (event) => {
      if (!this.#plot) return;
      if (this.#zoom?.key(event) || this.#names?.key(event, this.#box, this.#plot)) event.preventDefault();
    });
    this.#zoom?.follow(this.#box, () => this.#plot);
    this.#names?.follow(this.#box, () => this.#plot);
  }

  /** Keeps about the room that the drawing will take, so that the page does not move under the reader. */
  #reserve() {
    const { height } = this.#figure.spec;
    this.#box.style.minHeight = `${typeof height === "number" ? height + 70 : 300}px`;
  }

  #describe() {
    const shown = (this.#figure.controls ?? []).map((control) => {
      const option = control.options.find((one) => String(one.value) === this.#choice.get(control.id));
      return `${control.label}: ${option?.label ?? this.#choice.get(control.id)}`;
    });
    const alt = this.#figure.alt || this.#figure.title;
    this.#box.setAttribute("aria-label", shown.length ? `${alt} Shown: ${shown.join(", ")}.` : alt);
  }

  #controls() {
    const controls = this.#figure.controls ?? [];
    if (controls.length === 0) return null;
    return element(
      "div",
      { class: "controls" },
      ...controls.map((control) =>
        choiceControl(control, `${this.#figure.id}-${control.id}`, this.#choice.get(control.id), (value) => {
          this.#choice.set(control.id, value);
          this.#describe();
          this.redraw();
          this.#fillTable();
        }),
      ),
    );
  }

  #actions() {
    const figure = this.#figure;
    const { spec } = figure;
    const several = figure.datasets.length > 1;
    const entries = [
      ["Picture (SVG)", () => saveSvg(figure, spec, this.#rows())],
      ["Picture (PNG)", () => savePng(figure, spec, this.#rows())],
      ...figure.datasets.map((name) => [
        several ? `Data: ${name} (CSV)` : "Data (CSV)",
        () => save(several ? `${figure.id}-${name}.csv` : `${figure.id}.csv`, "text/csv", csv(this.#datasets.columns(name), this.#cells(name))),
      ]),
      ["Data (JSON)", () => save(`${figure.id}.json`, "application/json", JSON.stringify(several ? this.#rows() : this.#rows()[figure.datasets[0]], null, 1))],
      ["Vega-Lite with data", () => saveSpec(figure, spec, this.#rows())],
    ];
    const toggle = element("button", { type: "button", class: "quiet", "aria-expanded": "false" }, icon("M2 3.5h12v9H2zM2 6.5h12M6 6.5v6"), element("span", { text: "Table" }));
    toggle.setAttribute("aria-label", `Show as table: ${figure.title}`);
    toggle.addEventListener("click", () => {
      this.#table.hidden = !this.#table.hidden;
      toggle.setAttribute("aria-expanded", String(!this.#table.hidden));
      this.#fillTable();
    });
    return element("div", { class: "actions" }, toggle, downloadMenu(figure.title, entries));
  }

  /** The rows of the selection, by dataset. */
  #chosen() {
    return Object.fromEntries(this.#figure.datasets.map((name) => [name, this.#datasets.chosen(name, this.#choice)]));
  }

  /** The rows that are shown, by dataset: without hidden series. */
  #rows() {
    const shown = Object.entries(this.#chosen()).map(([name, rows]) => [name, rows.filter((row) => this.#legend.isShown(row))]);
    return Object.fromEntries(shown);
  }

  #cells(name) {
    const columns = this.#datasets.columns(name);
    return this.#rows()[name].map((row) => columns.map((column) => row[column]));
  }

  #fillTable() {
    if (this.#table.hidden) return;
    this.#table.replaceChildren(
      ...this.#figure.datasets.map((name) => {
        const rows = this.#cells(name);
        const columns = this.#datasets.columns(name).map((column, at) => ({
          key: column,
          title: column.replaceAll("_", " "),
          numeric: rows.some((row) => typeof row[at] === "number"),
        }));
        return new DataTable({ title: `${this.#figure.title}: ${name.replaceAll("_", " ")}`, columns, rows }).element;
      }),
    );
  }

  /** Draws if nothing is drawn yet. */
  draw() {
    if (this.element.dataset.state === "waiting") this.redraw();
  }

  /** Draws again if the room has changed. */
  fit() {
    if (this.element.dataset.state !== "waiting" && Math.abs(this.#box.clientWidth - this.#drawnWidth) > 3) this.redraw();
  }

  /** Draws again if there is a drawing. */
  refresh(scheme) {
    if (this.element.dataset.state !== "waiting") this.redraw(scheme);
  }

  redraw(scheme = currentScheme()) {
    this.#plot?.finalize();
    this.#plot = null;
    this.#note.hidden = true;
    const width = this.#box.clientWidth;
    this.#drawnWidth = width;
    try {
      this.#legend.fill(this.#chosen());
      const rows = this.#rows();
      this.#box.replaceChildren();
      if (Object.values(rows).every((list) => list.length === 0)) {
        this.#say(this.#legend.isNarrowed ? "All series are hidden." : "There is nothing to draw for this choice: no runs, or the same value in all of them.");
        this.element.dataset.state = "empty";
        return;
      }
      this.#drawRows(rows, width, scheme);
      this.#box.style.minHeight = "";
      this.element.dataset.state = "drawn";
    } catch (error) {
      console.error(`figure ${this.#figure.id}:`, error);
      this.#box.replaceChildren();
      this.#say(`This figure could not be drawn: ${error.message}. Its data can be downloaded.`);
      this.element.dataset.state = "failed";
    }
  }

  #drawRows(rows, width, scheme) {
    const { spec } = this.#figure;
    this.#zoom?.over(extentOf(spec, rows));
    const named = this.#names?.named(rows) ?? rows;
    const wide = this.#names?.widthOf(width) ?? width;
    const labels = this.#names?.isWhole ? this.#names.labels : undefined;
    this.#box.classList.toggle("scroll", wide > width);
    this.#plot = draw(this.#box, spec, named, wide, scheme, { groups: this.#legend.groups, domain: this.#zoom?.shown, labels });
    this.#legend.paint(this.#plot.view, scheme);
    this.#names?.mark(this.#box, this.#plot);
  }

  #say(text) {
    this.#box.style.minHeight = "";
    this.#note.textContent = text;
    this.#note.hidden = false;
  }
}
