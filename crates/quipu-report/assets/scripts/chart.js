// Drawing with Vega. The specification stays as it came; data, width and colours are added here.

/** Nothing is ever loaded: all data are in the page. */
const noLoader = {
  load: () => Promise.reject(new Error("a report loads nothing")),
  sanitize: () => Promise.reject(new Error("a report links to nothing")),
};

/** Passes what Vega says on to the console, where tests look. */
const chartLog = {
  level: () => chartLog,
  error: (...said) => (console.error(...said), chartLog),
  // A plot with a step for each row fits its width alone, which is what is wanted.
  warn: (...said) => (String(said[0]).startsWith('Dropping "fit-') || console.warn(...said), chartLog),
  info: () => chartLog,
  debug: () => chartLog,
};

const tooltip = element("div", { class: "tooltip", "aria-hidden": "true", hidden: true });

/** Shows what a mark says beside the pointer; hides it where there is no mark. */
function showTooltip(_handler, event, _item, value) {
  if (value === null || value === undefined || value === "") {
    tooltip.hidden = true;
    return;
  }
  if (typeof value === "object") {
    const rows = Object.entries(value).filter(([name]) => !name.startsWith("__"));
    tooltip.replaceChildren(
      element(
        "dl",
        {},
        ...rows.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text: shortNumber(String(text)) })]),
      ),
    );
  } else {
    tooltip.textContent = String(value);
  }
  if (!tooltip.isConnected) document.body.append(tooltip);
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const left = event.clientX + 14 + width > innerWidth ? event.clientX - width - 14 : event.clientX + 14;
  const top = event.clientY + 14 + height > innerHeight ? event.clientY - height - 14 : event.clientY + 14;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, top)}px`;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") tooltip.hidden = true;
});
document.addEventListener("scroll", () => (tooltip.hidden = true), { passive: true });

/** Narrower figures have no numbers beside their bars, which would cover each other's rows and names. */
const LEAST_FOR_DURATIONS = 520;

/** The specification without the numbers beside its bars. */
function withoutDurations(spec) {
  if (!spec.layer) return spec;
  const layer = spec.layer.filter(({ mark }) => mark?.style !== "duration").map(withoutDurations);
  return { ...spec, layer };
}

/**
 * The complete Vega-Lite specification: data inline, `width` pixels wide, in the colours of `scheme`. On the page
 * `groups` have buttons in place of legends, `domain` is what is shown of the horizontal axis if not all, and `labels`
 * are the pixels of whole names along the vertical one.
 */
function completeSpec(spec, rows, width, scheme, { groups, domain, labels } = {}) {
  const values = (field) => {
    const found = new Set();
    for (const list of Object.values(rows)) {
      for (const row of list) if (row[field] !== undefined && row[field] !== null) found.add(row[field]);
    }
    return found;
  };
  const config = chartConfig(scheme, width, getComputedStyle(document.body).fontFamily);
  if (labels !== undefined) config.axis.labelLimit = labels;
  const fitting = width < LEAST_FOR_DURATIONS ? withoutDurations(spec) : spec;
  const judged = withLegends(withZoom(withMarks(fitting, rows), domain), PALETTES[scheme].meaning, values);
  const fitted = groups ? withButtons(judged, groups) : judged;
  const columns = legendColumns(fitted, width, values);
  if (columns !== undefined) config.legend.columns = columns;
  return {
    ...withWidth(fitted, width),
    config,
    // Copies, as Vega writes into its rows.
    datasets: Object.fromEntries(Object.entries(rows).map(([name, list]) => [name, list.map((row) => ({ ...row }))])),
  };
}

/** A Vega view of a specification; `container` may be left out for one that is only exported. */
function makeView(spec, container) {
  const compiled = vegaLite.compile(spec, { logger: chartLog }).spec;
  wrapTitles(compiled, spec.width);
  return new vega.View(vega.parse(compiled), {
    renderer: container ? "svg" : "none",
    container,
    hover: Boolean(container),
    loader: noLoader,
    logger: chartLog,
    tooltip: showTooltip,
  });
}

/**
 * Draws into `container`, `width` pixels wide, in place of what is there. What is drawn when this returns is
 * complete: all data are there, so nothing waits. Gives the plot, of which `finalize()` frees what it holds.
 */
function draw(container, spec, rows, width, scheme, options) {
  // The container says in words what is seen; Vega would write its own words there.
  const canvas = element("div", { "aria-hidden": "true" });
  container.replaceChildren(canvas);
  const view = makeView(completeSpec(spec, rows, width, scheme, options), canvas);
  view.run();
  return new Plot(view, canvas);
}

/** What is drawn, and where on the page its numbers and rows are. */
class Plot {
  #canvas;

  constructor(view, canvas) {
    this.view = view;
    this.#canvas = canvas;
  }

  /** The plot without axes, in pixels of the window. */
  get frame() {
    const outer = this.#canvas.querySelector("svg").getBoundingClientRect();
    const [x, y] = this.view.origin();
    const { left, top } = this.view.padding();
    return { left: outer.left + left + x, top: outer.top + top + y, width: this.view.width(), height: this.view.height() };
  }

  /** The number along the horizontal axis at so many pixels right of its beginning. */
  valueAt(pixels) {
    return this.view.scale("x").invert(pixels);
  }

  /** Labels of rows, from above. */
  get labels() {
    return this.view.scale("y").domain();
  }

  /** The label of the row at this height of the window; nothing if there is none. */
  labelAt(clientY) {
    const { labels, step } = this;
    const top = this.view.scale("y")(labels[0]) ?? 0;
    return labels[Math.floor((clientY - this.frame.top - top) / step)];
  }

  /** Pixels from a row to the next. */
  get step() {
    const scale = this.view.scale("y");
    const [first, second] = scale.domain();
    return second === undefined ? scale.bandwidth() : scale(second) - scale(first);
  }

  /** Where a row is, in pixels of the window; nothing if it is not drawn. */
  rowFrame(label) {
    const top = this.view.scale("y")(label);
    return top === undefined ? null : { top: this.frame.top + top, height: this.step };
  }

  finalize() {
    this.view.finalize();
  }
}
