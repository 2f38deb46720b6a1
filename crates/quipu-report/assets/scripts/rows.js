// Rows of a figure that are objects with long names: whole names on the axis, and each row in words.

/** Pixels that a drawing has beside its labels at least. */
const BESIDE_LABELS = 420;
/** Letters are a little wider in some drawings than when they are measured. */
const LABEL_SPARE = 1.03;
const ruler = document.createElement("canvas").getContext("2d");

const ROWS_HINT = "Point at a row, tap it, or press ↑ and ↓ in the drawing to read its whole name and its times.";
const KEYS_HINT = " Drag, or press + and −, to zoom; ← and → move; 0 shows the whole time.";

/**
 * A specification says with `usermeta.names` that a column has short names of rows, which begin with a number, and
 * another column of its own dataset their whole names.
 */
class RowNames {
  #column;
  #whole;
  #main;
  #fields;
  #isWhole = false;
  /** The row that is read: its short name. */
  #current = null;
  #note = element("p", { class: "row-note", role: "status" });
  #mark = element("div", { class: "row-mark", hidden: true });
  #rows = new Map();
  #toggle;

  constructor(spec, title, changed) {
    const { column, whole } = spec.usermeta.names;
    [this.#column, this.#whole, this.#main] = [column, whole, spec.data.name];
    const tooltips = [...views(spec)].map(({ encoding }) => encoding.tooltip).filter(Array.isArray);
    this.#fields = tooltips.find((fields) => fields.some(({ field }) => field === whole)) ?? [];
    this.#toggle = element("button", { type: "button", class: "quiet", "aria-pressed": "false", "aria-label": `Whole names: ${title}`, text: "Whole names" });
    this.#toggle.addEventListener("click", () => {
      this.#isWhole = !this.#isWhole;
      this.#toggle.setAttribute("aria-pressed", String(this.#isWhole));
      changed();
    });
    this.#note.textContent = ROWS_HINT + (isZoomable(spec) ? KEYS_HINT : "");
  }

  get button() {
    return this.#toggle;
  }

  get note() {
    return this.#note;
  }

  /** Whether names are drawn whole. */
  get isWhole() {
    return this.#isWhole;
  }

  /** Takes the rows that are drawn, and gives them with the names to draw; they are lists by dataset. */
  named(rows) {
    this.#rows = new Map((rows[this.#main] ?? []).map((row) => [row[this.#column], row]));
    if (!this.#rows.has(this.#current)) this.#current = null;
    if (!this.#isWhole) return rows;
    const named = (row) => ({ ...row, [this.#column]: this.#wholeOf(row[this.#column]) });
    return Object.fromEntries(Object.entries(rows).map(([name, list]) => [name, list.map((row) => (this.#column in row ? named(row) : row))]));
  }

  #wholeOf(short) {
    const row = this.#rows.get(short);
    return row ? `${short.split(" ")[0]} ${row[this.#whole]}` : short;
  }

  /** How wide the labels are if nothing cuts them. */
  get labels() {
    ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const widths = [...this.#rows.keys()].map((short) => ruler.measureText(this.#wholeOf(short)).width);
    return Math.ceil(LABEL_SPARE * Math.max(0, ...widths));
  }

  /** How wide a drawing of `width` pixels is, so that whole names fit. */
  widthOf(width) {
    return this.#isWhole ? Math.max(width, this.labels + BESIDE_LABELS) : width;
  }

  /** Reads rows by pointer in `box`; `drawn` gives the plot that is drawn there, or null. */
  follow(box, drawn) {
    const read = (event) => {
      const label = drawn()?.labelAt(event.clientY);
      if (label !== undefined) this.#read(label, box, drawn());
    };
    box.addEventListener("pointermove", read);
    box.addEventListener("click", read);
  }

  /** Acts on a key pressed in the drawing; whether it was one of ours. */
  key(event, box, plot) {
    const { labels } = plot;
    const at = labels.indexOf(this.#isWhole ? this.#wholeOf(this.#current ?? "") : this.#current);
    const to = { ArrowDown: Math.min(at + 1, labels.length - 1), ArrowUp: Math.max(at - 1, 0), Home: 0, End: labels.length - 1 }[event.key];
    if (to === undefined || labels.length === 0) return false;
    this.#read(labels[to], box, plot);
    this.#mark.scrollIntoView({ block: "nearest" });
    return true;
  }

  /** Says the row labelled so in words, and marks it. */
  #read(label, box, plot) {
    const rank = label.split(" ")[0];
    const short = this.#rows.has(label) ? label : [...this.#rows.keys()].find((name) => name.split(" ")[0] === rank);
    if (short === undefined) return;
    this.#current = short;
    this.mark(box, plot);
    const row = this.#rows.get(short);
    const parts = this.#fields.filter(({ field }) => row[field] !== null && row[field] !== undefined && row[field] !== "");
    const said = parts.map(({ field, title }) => {
      if (field === this.#whole) return `${rank} ${row[field]}`;
      return `${title}: ${typeof row[field] === "number" ? formatNumber(row[field]) : row[field]}`;
    });
    const text = said.join(" · ");
    if (this.#note.textContent !== text) this.#note.textContent = text;
  }

  /** Marks in a new drawing the row that is read. */
  mark(box, plot) {
    const frame = this.#current === null ? null : plot.rowFrame(this.#isWhole ? this.#wholeOf(this.#current) : this.#current);
    this.#mark.hidden = !frame;
    if (!frame) return;
    const outer = box.getBoundingClientRect();
    Object.assign(this.#mark.style, { top: `${frame.top - outer.top}px`, height: `${frame.height}px` });
    box.append(this.#mark);
  }
}
