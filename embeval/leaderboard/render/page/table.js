/* The table: DataTables sorts, searches and pages; columns and cells are ours. Rows are places of models. */
const IN_ONE = 50; // models that stand in one page; of more, each has as many as a screen shows: all others take time
const PAGE_LENGTH = board.models.length > IN_ONE ? 20 : IN_ONE;
const LONG_TITLE = 32; // of a heading that is wrapped or shortened
const BY_NAME = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const table = { DataTable: null, shown: null, columns: [], view: "overview", order: { key: "rank", way: "asc" } };

function startTable(DataTable) {
  table.DataTable = DataTable;
  // Gaps come last whichever way a column is sorted.
  DataTable.type("gaps last", {
    detect: () => false,
    order: { asc: (one, other) => gapsLast(one, other, 1), desc: (one, other) => gapsLast(one, other, -1) },
  });
  DataTable.ext.search.push((_settings, _texts, _index, row) => passes(row.place));
  readView();
  document.getElementById("table-place").replaceWith(element("div", { id: "table-place" }));
  rebuild();
  addEventListener("beforeprint", () => table.shown.page.len(-1).draw(false));
  addEventListener("afterprint", () => table.shown.page.len(PAGE_LENGTH).draw(false));
}

function gapsLast(one, other, way) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "string") return way * BY_NAME.compare(one, other);
  return way * (one - other);
}

function startViews() {
  document.getElementById("table-place").addEventListener("click", opened);
  document.getElementById("table-place").addEventListener("mouseover", pointedAt);
  for (const box of document.querySelectorAll("[name=view]")) {
    box.checked = box.value === table.view;
    box.addEventListener("change", () => {
      table.view = box.value;
      address.set({ view: table.view === "overview" ? null : table.view });
      rebuild();
    });
  }
}

/* The table anew: for other columns, or after other ranks. */
function rebuild() {
  table.columns = columnsOf(table.view);
  const place = document.getElementById("table-place");
  const made = element("table", { id: "board", class: table.view });
  made.append(caption(), heading());
  table.shown?.destroy();
  place.replaceChildren(made);
  table.shown = new table.DataTable(made, options());
  const scrolled = place.querySelector(".dt-layout-table");
  document.getElementById("told-once").replaceChildren(...toldOnce(table.view));
  for (const [name, value] of [["tabindex", 0], ["role", "region"], ["aria-label", "Models, scrolls"]]) scrolled.setAttribute(name, value);
  // The names of groups stay in sight beside the column of models, however wide that is.
  made.tHead.style.setProperty("--names", `${made.querySelector("thead th.model").offsetWidth}px`);
  table.shown.on("order", ordered);
  shownChanged();
}

function options() {
  const sorted = sortedBy();
  return {
    data: board.models.map((_, place) => ({ place })),
    columns: table.columns.map((column, number) => ({
      data: "place",
      type: "gaps last",
      className: `${column.kind}${column.isHeated ? " heated" : ""} ${startsGroup(column, number)}`,
      orderable: column.kind !== "pick",
      orderSequence: column.better > 0 ? ["desc", "asc"] : ["asc", "desc"],
      searchable: false,
      render: (place, type) => (type === "display" ? digitsOf(column, place) : column.value(place)),
      createdCell: (cell, _value, row) => fill(cell, column, row.place),
    })),
    order: [[sorted.at, sorted.way]],
    orderMulti: true,
    orderClasses: false,
    autoWidth: false,
    deferRender: true,
    paging: board.models.length > PAGE_LENGTH,
    pageLength: PAGE_LENGTH,
    layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: board.models.length > PAGE_LENGTH ? "paging" : null },
    language: { zeroRecords: "No model fits these filters.", emptyTable: "There are no results yet." },
  };
}

/* Where the column is that the table is sorted by; that of the rank where the view has no such column. */
function sortedBy() {
  const at = table.columns.findIndex((column) => column.key === table.order.key);
  return at >= 0 ? { at, way: table.order.way } : { at: table.columns.findIndex((column) => column.key === "rank"), way: "asc" };
}

function ordered() {
  const [first] = table.shown.order();
  if (first === undefined) return;
  table.order = { key: table.columns[first[0]].key, way: first[1] || "asc" };
  const isUsual = table.order.key === "rank" && table.order.way === "asc";
  address.set({ sort: isUsual ? null : `${table.order.key}:${table.order.way}` });
  // The rows stand in their new order only once the table is drawn.
  table.shown.one("draw", shownChanged);
}

function readView() {
  if (Object.hasOwn(VIEWS, address.get("view") ?? "")) table.view = address.get("view");
  const found = /^(.*):(asc|desc)$/s.exec(address.get("sort") ?? "");
  if (found) table.order = { key: found[1], way: found[2] };
}

function caption() {
  return element("caption", { class: "hidden" }, `${VIEWS[table.view]}: ${document.querySelector("h1").textContent.trim()}`);
}

/* Two lines of headings where columns belong to groups. */
function heading() {
  const titles = element("tr", {}, table.columns.map((column, number) =>
    element("th", { scope: "col", title: column.note, "data-key": column.key, class: `${startsGroup(column, number)}${column.title.length > LONG_TITLE ? " long" : ""}` },
      column.kind === "pick" ? element("span", { class: "hidden" }, column.title) : dataText(shortened(column.title, 2 * LONG_TITLE)), column.below ? " " : null, column.below ? element("span", { class: "below" }, dataText(column.below)) : null)));
  if (table.columns.every((column) => !column.group)) return element("thead", {}, titles);
  const groups = element("tr", { class: "groups" });
  for (let start = 0, end; start < table.columns.length; start = end) {
    const { group, kind } = table.columns[start];
    // The column of names stays where it is, so its cell holds no other.
    const isAlone = (column) => column.kind === "model" || kind === "model";
    for (end = start + 1; end < table.columns.length && table.columns[end].group === group && !isAlone(table.columns[end]); ) end += 1;
    const attributes = { colspan: end - start, "data-dt-order": "disable" };
    groups.append(group
      ? element("th", { ...attributes, scope: "colgroup", class: "named", title: group.length > LONG_TITLE ? visibleText(group) : null }, dataText(shortened(group, LONG_TITLE)))
      : element("td", { ...attributes, class: kind === "model" ? "model" : startsGroup(table.columns[start], start) }));
  }
  return element("thead", {}, groups, titles);
}

/* Groups are told apart by a line. */
function startsGroup(column, number) {
  return number > 0 && column.group !== table.columns[number - 1].group ? "starts" : "";
}

/* The text of a number, which is markup of nothing; all else is filled in as nodes. */
function digitsOf(column, place) {
  const shown = column.kind === "number" ? column.show(place) : null;
  return typeof shown === "string" && /^[-−\d.,]+$/.test(shown) ? shown : "";
}

function fill(cell, column, place) {
  if (cell.firstChild === null) cell.replaceChildren(...[column.show(place)].flat());
  if (column.isHeated) {
    const share = heat(column, place);
    if (share !== null) cell.style.setProperty("--heat", share.toFixed(3));
  }
}

/* How far a value lies between the worst and the best of its column, from 0 to 1. */
function heat(column, place) {
  column.range ??= rangeOf(column);
  const value = column.value(place);
  const [low, high] = column.range;
  if (value === null || !(high > low)) return null;
  return column.better < 0 ? (high - value) / (high - low) : (value - low) / (high - low);
}

function rangeOf(column) {
  let [low, high] = [Infinity, -Infinity];
  for (let place = 0; place < board.models.length; place += 1) {
    const value = column.value(place);
    if (value !== null) [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  return [low, high];
}

/* What there is to say of a cell is put on it when somebody points at it: for thousands at once it takes too long. */
function pointedAt(event) {
  const cell = event.target.closest("td");
  const at = cell === null || cell.title ? undefined : table.shown.cell(cell).index();
  if (at === undefined) return;
  const { place } = table.shown.row(at.row).data();
  cell.title = table.columns[at.column].words?.(place) ?? "";
}

/* A click on the name of a model. */
function opened(event) {
  const button = event.target.closest("[data-model]");
  if (button !== null) openDetail(Number(button.dataset.model));
}

/* After other filters. */
function redraw() {
  table.shown.draw();
  shownChanged();
}

function shownChanged() {
  page.visible = table.shown.rows({ order: "applied", search: "applied" }).data().toArray().map((row) => row.place);
  document.getElementById("shown").textContent = shownWords();
  page.changed();
}

function shownWords() {
  const n = page.visible.length;
  const all = board.models.length;
  return n === all ? plural(all, "model") : `${rounded(n)} of ${plural(all, "model")}; ranks are among all`;
}
