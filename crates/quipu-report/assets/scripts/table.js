// Tables that are sorted by their headings, filtered, and shown page by page.

const ROWS_PER_PAGE = 25;
/** Above this many rows a table has a box that filters. */
const ROWS_TO_FILTER = 12;
/** Longer names may be cut, and have all of their letters under the pointer. */
const LETTERS_SHOWN = 24;
/** Longer texts are sentences, which are broken into lines, or addresses, which are not: rows would be tall on a narrow
 *  screen because of a column that is outside of it. */
const LETTERS_LONG = 60;
/** The most rows that are printed. */
const ROWS_PRINTED = 1000;

/** Orders two cells: numbers by size, text by the language's order with numbers in it by size. */
const textOrder = new Intl.Collator("en", { numeric: true });
function compareCells(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : textOrder.compare(String(a), String(b));
}

/** A copy of rows, sorted by column `at`; rows without a value come last either way. */
function sortedRows(rows, at, direction) {
  const isMissing = (cell) => cell === null || cell === undefined || cell === "";
  return [...rows].sort((left, right) => {
    const [a, b] = [left[at], right[at]];
    if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
    return direction === "descending" ? compareCells(b, a) : compareCells(a, b);
  });
}

let tablesMade = 0;

/** A table with all its controls. `columns` and `rows` are as in the report's document. */
class DataTable {
  #columns;
  #rows;
  #shown;
  #texts;
  #page = 0;
  #perPage = ROWS_PER_PAGE;
  #body = element("tbody");
  #headings;
  #status = element("p", { class: "count", role: "status" });
  #turn;
  #pager;
  /** The column by which rows are sorted, and the direction; null: as given. */
  #order = null;

  constructor({ title, columns, rows }) {
    tablesMade += 1;
    this.#columns = columns;
    this.#rows = rows;
    this.#shown = rows;
    this.#headings = columns.map((column, at) => this.#heading(column, at));
    const table = element(
      "table",
      {},
      element("caption", { class: "unseen", text: title }),
      element("thead", {}, element("tr", {}, ...this.#headings)),
      this.#body,
    );
    this.#turn = [
      element("button", { type: "button", class: "quiet", text: "Previous", onclick: () => this.#turnTo(-1) }),
      element("button", { type: "button", class: "quiet", text: "Next", onclick: () => this.#turnTo(1) }),
    ];
    this.#pager = element("div", { class: "pager" }, this.#status, ...this.#turn);
    const filter = rows.length > ROWS_TO_FILTER ? this.#filterBox() : null;
    this.element = element(
      "div",
      { class: "data-table" },
      filter,
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${title}` }, table),
      this.#pager,
    );
    this.#fill();
  }

  #heading(column, at) {
    const unit = formatUnit(column.unit);
    const button = element(
      "button",
      { type: "button", onclick: () => this.#sortBy(at) },
      element("span", { text: column.title }),
      unit ? element("span", { class: "unit", text: ` ${unit}` }) : null,
      element("span", { class: "arrow", "aria-hidden": "true" }),
    );
    return element("th", { scope: "col", class: column.numeric ? "number" : undefined }, button);
  }

  #filterBox() {
    const id = `filter-${tablesMade}`;
    const box = element("input", { type: "search", id, autocomplete: "off", spellcheck: "false" });
    box.addEventListener("input", () => {
      this.#texts ??= this.#rows.map((row) =>
        row.map((cell, at) => formatCell(cell, this.#columns[at])).join("\n").toLowerCase(),
      );
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      const kept = new Set(this.#rows.filter((_, at) => words.every((word) => this.#texts[at].includes(word))));
      this.#keep(kept);
    });
    return element("div", { class: "filter" }, element("label", { for: id, text: "Filter rows" }), box);
  }

  #keep(kept) {
    this.#shown = this.#inOrder().filter((row) => kept.has(row));
    this.#page = 0;
    this.#fill();
  }

  #inOrder() {
    return this.#order ? sortedRows(this.#rows, this.#order.at, this.#order.direction) : this.#rows;
  }

  #sortBy(at) {
    const direction = this.#order?.at === at && this.#order.direction === "ascending" ? "descending" : "ascending";
    this.#order = { at, direction };
    this.#headings.forEach((heading, which) => {
      if (which === at) heading.setAttribute("aria-sort", direction);
      else heading.removeAttribute("aria-sort");
    });
    this.#keep(new Set(this.#shown));
  }

  #turnTo(step) {
    this.#page += step;
    this.#fill();
  }

  /** Shows `perPage` rows at a time, from the first. */
  paginate(perPage) {
    this.#perPage = perPage;
    this.#page = 0;
    this.#fill();
  }

  #fill() {
    const from = this.#page * this.#perPage;
    const rows = this.#shown.slice(from, from + this.#perPage);
    this.#body.replaceChildren(
      ...rows.map((row) =>
        element(
          "tr",
          {},
          ...this.#columns.map((column, at) => {
            const text = formatCell(row[at], column);
            if (column.numeric) return element("td", { class: "number", text });
            const title = text.length > LETTERS_SHOWN ? text : undefined;
            if (at === 0) return element("th", { scope: "row", text, title });
            if (text.length <= LETTERS_LONG) return element("td", { text, title });
            if (!/\s/.test(text)) return element("td", { class: "address", text, title });
            return element("td", { class: "long", title }, element("span", { text }));
          }),
        ),
      ),
    );
    const count = this.#shown.length;
    const all = this.#rows.length;
    const part = count === all ? `${formatNumber(all)}` : `${formatNumber(count)} (${formatNumber(all)} in all)`;
    this.#status.textContent =
      count === 0 ? "No row contains all of these words." : `${formatNumber(from + 1)}–${formatNumber(from + rows.length)} of ${part}`;
    this.#turn[0].disabled = this.#page === 0;
    this.#turn[1].disabled = from + this.#perPage >= count;
    for (const button of this.#turn) button.hidden = all <= this.#perPage;
    this.#pager.hidden = all <= ROWS_TO_FILTER;
  }
}

/** The card of one of the report's tables. */
function tableCard(table) {
  const name = `${table.id}-title`;
  const shown = new DataTable(table);
  addEventListener("beforeprint", () => shown.paginate(ROWS_PRINTED));
  addEventListener("afterprint", () => shown.paginate(ROWS_PER_PAGE));
  const columns = table.columns.map((column) => (column.unit ? `${column.key} [${column.unit}]` : column.key));
  const entries = [
    ["Data (CSV)", () => save(`${table.id}.csv`, "text/csv", csv(columns, table.rows))],
    ["Data (JSON)", () => save(`${table.id}.json`, "application/json", JSON.stringify(asObjects(columns, table.rows), null, 1))],
  ];
  return element(
    "section",
    { class: "card", id: table.id, "aria-labelledby": name },
    element("div", { class: "card-head" }, element("h3", { id: name, text: table.title }), downloadMenu(table.title, entries)),
    table.caption ? element("p", { class: "caption", text: table.caption }) : null,
    shown.element,
  );
}

function asObjects(columns, rows) {
  return rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at] ?? null])));
}
