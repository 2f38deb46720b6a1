// The report's document: what the page draws. All of it is data of others, so text is only ever set as
// text, never as markup.

/** The document embedded in the page. Throws an error with one readable line if it is damaged. */
function readDocument() {
  const text = document.getElementById("report-data").textContent;
  let report;
  try {
    report = JSON.parse(text);
  } catch (error) {
    throw new Error(`the data of this report are damaged: ${error.message}`);
  }
  if (report === null || typeof report !== "object" || !Array.isArray(report.sections)) {
    throw new Error("the data of this report are damaged: there are no sections");
  }
  return report;
}

/** Rows of datasets as objects, made when first asked for. */
class Datasets {
  #tables;
  #made = new Map();

  constructor(tables) {
    this.#tables = tables ?? {};
  }

  /** Names of the columns of a dataset. */
  columns(name) {
    return this.#table(name).columns;
  }

  /** All rows of a dataset. */
  rows(name) {
    if (!this.#made.has(name)) {
      const { columns, levels, rows } = this.#table(name);
      // Cells of a column with levels are positions in the list of its texts.
      const texts = columns.map((column) => levels?.[column]);
      const cell = (value, at) => (texts[at] ? texts[at][value] : value) ?? null;
      this.#made.set(
        name,
        rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, cell(row[at], at)]))),
      );
    }
    return this.#made.get(name);
  }

  /**
   * The rows whose columns have the values chosen; `choice` maps a column to a value. A column that a
   * dataset does not have chooses nothing there.
   */
  chosen(name, choice) {
    const columns = new Set(this.columns(name));
    const wanted = [...choice].filter(([column]) => columns.has(column));
    return this.rows(name).filter((row) => wanted.every(([column, value]) => String(row[column]) === value));
  }

  #table(name) {
    const table = this.#tables[name];
    if (!table || !Array.isArray(table.columns) || !Array.isArray(table.rows)) {
      throw new Error(`there is no dataset called ${name}`);
    }
    return table;
  }
}

/** A field of CSV (RFC 4180). */
function csvField(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows, given as arrays, as CSV with a line of names. */
function csv(columns, rows) {
  return [columns, ...rows].map((row) => row.map(csvField).join(",") + "\n").join("");
}
