// Zooming along the horizontal axis, of figures whose specification has a selection bound to its scales.

/** How much one step of zooming shows of what was shown, and one step of moving moves by. */
const ZOOM_STEP = 0.5;
const MOVE_STEP = 0.25;
/** The most that is zoomed. */
const ZOOM_MOST = 10_000;
/** Pixels that a drag has at least. */
const DRAG_LEAST = 6;

/** Whether a parameter zooms by the horizontal axis. */
function isZoom(param) {
  return param.bind === "scales" && param.select?.encodings?.includes("x");
}

function isZoomable(spec) {
  return (spec.params ?? []).some(isZoom) || (spec.layer ?? []).some(isZoomable);
}

/** The specification without selections that zoom, with `domain` as its horizontal axis if there is one. */
function withZoom(spec, domain) {
  const made = { ...spec };
  if (made.params) {
    made.params = made.params.filter((param) => !isZoom(param));
    if (made.params.length === 0) delete made.params;
  }
  if (domain && made.encoding?.x && made.encoding.x.type !== "nominal") {
    const { zero: _zero, ...scale } = made.encoding.x.scale ?? {};
    made.encoding = { ...made.encoding, x: { ...made.encoding.x, scale: { ...scale, domain, nice: false } } };
  }
  if (domain && made.mark) made.mark = { ...(typeof made.mark === "string" ? { type: made.mark } : made.mark), clip: true };
  if (made.layer) made.layer = made.layer.map((layer) => withZoom(layer, domain));
  return made;
}

/** From the least to the largest number along the horizontal axis; `rows` are lists by dataset. */
function extentOf(spec, rows, within = spec.data?.name, above = {}) {
  const encoding = { ...above, ...spec.encoding };
  const name = spec.data?.name ?? within;
  let [low, high] = [Infinity, -Infinity];
  const add = (value) => {
    if (typeof value !== "number") return;
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  if (spec.mark) {
    for (const { field } of [encoding.x, encoding.x2].filter((channel) => channel?.field)) {
      for (const row of rows[name] ?? []) add(row[field]);
    }
    if (encoding.x?.scale?.zero !== false) add(0);
  }
  for (const layer of spec.layer ?? []) extentOf(layer, rows, name, encoding).forEach(add);
  return [low, high];
}

/** What is shown of the horizontal axis of a figure, with its buttons, keys, wheel and drags. */
class Zoom {
  #shown = null;
  #whole = [0, 1];
  #changed;
  #buttons;
  #status = element("span", { class: "zoom-shown", role: "status" });

  constructor(title, changed) {
    this.#changed = changed;
    const button = (label, path, action) => {
      const made = element("button", { type: "button", class: "quiet", "aria-label": label, title: label }, icon(path));
      made.addEventListener("click", action);
      return made;
    };
    this.#buttons = {
      in: button("Zoom in", "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3.5 3.5M5 7h4M7 5v4", () => this.by(ZOOM_STEP)),
      out: button("Zoom out", "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3.5 3.5M5 7h4", () => this.by(1 / ZOOM_STEP)),
      earlier: button("Earlier", "M9.5 3.5 5 8l4.5 4.5", () => this.move(-MOVE_STEP)),
      later: button("Later", "M6.5 3.5 11 8l-4.5 4.5", () => this.move(MOVE_STEP)),
      reset: element("button", { type: "button", class: "quiet", text: "Reset zoom", onclick: () => this.reset() }),
    };
    this.element = element("div", { class: "zoom", role: "group", "aria-label": `Zoom of ${title}` }, ...Object.values(this.#buttons), this.#status);
    this.#show();
  }

  /** Both ends of what is shown, or null if that is all. */
  get shown() {
    return this.#shown;
  }

  /** Takes the extent of the data, which may be of another selection than before. */
  over(whole) {
    this.#whole = whole;
    if (this.#shown) this.#shown = this.#within(...this.#shown);
    this.#show();
  }

  /** Shows `factor` of what is shown, with what is at `middle` where it is. */
  by(factor, middle) {
    const [low, high] = this.#shown ?? this.#whole;
    const at = middle ?? (low + high) / 2;
    this.to(at - (at - low) * factor, at + (high - at) * factor);
  }

  /** Moves by a share of what is shown. */
  move(share) {
    const [low, high] = this.#shown ?? this.#whole;
    const by = (high - low) * share;
    this.to(low + by, high + by);
  }

  reset() {
    this.to(...this.#whole);
  }

  /** Shows from `low` to `high`, as far as there is something. */
  to(low, high) {
    const before = String(this.#shown);
    this.#shown = this.#within(low, high);
    this.#show();
    if (String(this.#shown) !== before) this.#changed();
  }

  #within(low, high) {
    const [least, most] = this.#whole;
    const length = Math.min(most - least, Math.max(high - low, (most - least) / ZOOM_MOST));
    if (length >= most - least) return null;
    const from = Math.min(Math.max(low, least), most - length);
    return [from, from + length];
  }

  #show() {
    // A disabled button would lose the focus of who presses it again and again.
    const all = this.#shown === null;
    for (const name of ["out", "earlier", "later", "reset"]) this.#buttons[name].setAttribute("aria-disabled", String(all));
    this.#status.textContent = all ? "" : this.#shown.map((value) => formatTime(value)).join(" to ");
  }

  /** Acts on a key pressed in the drawing; whether it was one of ours. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const actions = {
      "+": () => this.by(ZOOM_STEP), "=": () => this.by(ZOOM_STEP), "-": () => this.by(1 / ZOOM_STEP),
      "ArrowLeft": () => this.move(-MOVE_STEP), "ArrowRight": () => this.move(MOVE_STEP), "0": () => this.reset(),
    };
    actions[event.key]?.();
    return event.key in actions;
  }

  /** Zooms by dragging over `box`, and by its wheel with Ctrl; `drawn` gives the plot that is drawn there, or null. */
  follow(box, drawn) {
    const brush = element("div", { class: "brush", hidden: true });
    let from = null;
    const at = (event) => {
      const { left, width } = drawn().frame;
      return Math.min(Math.max(event.clientX - left, 0), width);
    };
    box.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0 || !drawn() || event.clientX < drawn().frame.left) return;
      from = at(event);
      event.preventDefault();
      box.focus({ preventScroll: true });
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = at(event);
      const frame = drawn().frame;
      const outer = box.getBoundingClientRect();
      const left = frame.left - outer.left + box.scrollLeft + Math.min(from, to);
      Object.assign(brush.style, { left: `${left}px`, width: `${Math.abs(to - from)}px`, top: `${frame.top - outer.top}px`, height: `${frame.height}px` });
      if (!brush.isConnected) box.append(brush);
      brush.hidden = Math.abs(to - from) < DRAG_LEAST;
    });
    const end = (event) => {
      const to = from === null ? null : at(event);
      brush.hidden = true;
      if (to !== null && Math.abs(to - from) >= DRAG_LEAST && event.type === "pointerup") {
        const ends = [drawn().valueAt(Math.min(from, to)), drawn().valueAt(Math.max(from, to))];
        from = null;
        this.to(...ends);
      }
      from = null;
    };
    box.addEventListener("pointerup", end);
    box.addEventListener("pointercancel", end);
    box.addEventListener(
      "wheel",
      (event) => {
        if (!(event.ctrlKey || event.metaKey) || !drawn()) return;
        event.preventDefault();
        this.by(event.deltaY < 0 ? ZOOM_STEP ** 0.5 : ZOOM_STEP ** -0.5, drawn().valueAt(at(event)));
      },
      { passive: false },
    );
  }
}

/** Milliseconds as axes have them. */
function formatTime(millis) {
  return Math.abs(millis) < 1000 ? `${formatNumber(millis)} ms` : `${formatNumber(millis / 1000)} s`;
}
