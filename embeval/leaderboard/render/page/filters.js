/* Search and filters: which models are shown. Ranks stay those among all models of the board. */
const LISTS = {
  licence: (model) => (model.facts.license ? [model.facts.license] : []),
  language: (model) => model.facts.languages,
  backend: (model) => [model.spec.backend],
  precision: (model) => [model.spec.dtype],
};
const filters = { text: "", from: null, to: null, items: false, own: false, licence: "", language: "", backend: "", precision: "" };

function passes(place) {
  const model = board.models[place];
  if (filters.items && page.standings[place].letters === null) return false;
  if (filters.own && model.imported !== null) return false;
  if (!fitsSize(model.facts.parameters)) return false;
  for (const name in LISTS) {
    if (filters[name] && !LISTS[name](model).includes(filters[name])) return false;
  }
  return filters.text === "" || filters.text.toLowerCase().split(/\s+/).every((word) => searched(place).includes(word));
}

/* A model of unknown size is in no range. */
function fitsSize(parameters) {
  if (filters.from === null && filters.to === null) return true;
  if (parameters === null) return false;
  return parameters >= (filters.from ?? 0) * 1e6 && parameters <= (filters.to ?? Infinity) * 1e6;
}

const searchedTexts = new Map();

function searched(place) {
  if (!searchedTexts.has(place)) {
    const { label, spec, facts, digest } = board.models[place];
    const parts = [label, spec.name, spec.backend, spec.dtype, spec.revision, facts.license, digest, ...facts.languages];
    searchedTexts.set(place, parts.join(" ").toLowerCase());
  }
  return searchedTexts.get(place);
}

function nFilters() {
  return [filters.items, filters.own, filters.from !== null, filters.to !== null, ...Object.keys(LISTS).map((name) => filters[name] !== "")]
    .filter(Boolean).length;
}

function startFilters() {
  const form = document.getElementById("filters");
  form.querySelector(".fields").append(...filterFields());
  form.addEventListener("input", () => {
    takeFilters(form);
    filtersChanged();
  });
  document.getElementById("search").addEventListener("input", (event) => {
    filters.text = event.target.value;
    filtersChanged();
  });
  document.getElementById("clear-filters").addEventListener("click", clearFilters);
  showFilters();
}

function filterFields() {
  const made = [];
  if (board.models.some((model) => isKnown(model.facts.parameters))) {
    const size = (name, words) => element("input", {
      type: "number", name, min: 0, step: "any", inputmode: "decimal", placeholder: words, "aria-label": `Million parameters, ${words}`,
    });
    made.push(element("div", { class: "field", role: "group", "aria-label": "Million parameters" },
      element("span", { class: "label" }, "Million parameters"),
      element("span", { class: "range" }, size("from", "from"), "–", size("to", "to"))));
  }
  for (const [name, values] of Object.entries(LISTS)) {
    const found = [...new Set(board.models.flatMap(values))].sort();
    if (found.length > 1) made.push(choice(name, found));
  }
  if (board.models.some((model) => model.standing.letters === null)) made.push(tick("items", "Only with a rank interval"));
  if (board.models.some((model) => model.imported !== null)) made.push(tick("own", "Only measured here"));
  return made;
}

function choice(name, values) {
  return element("label", { class: "field" },
    element("span", { class: "label" }, name[0].toUpperCase() + name.slice(1)),
    element("select", { name }, element("option", { value: "" }, "any"),
      values.map((value) => element("option", { value }, visibleText(value)))));
}

function tick(name, words) {
  return element("label", { class: "tick" }, element("input", { type: "checkbox", name }), words);
}

function takeFilters(form) {
  for (const field of form.querySelectorAll("[name]")) {
    if (field.type === "checkbox") filters[field.name] = field.checked;
    else if (field.type === "number") filters[field.name] = sizeFrom(field.value);
    else filters[field.name] = field.value;
  }
}

/* A field that somebody types in is left alone: of "1." it says that it holds 1. */
function showFilters() {
  document.getElementById("search").value = filters.text;
  for (const field of document.querySelectorAll("#filters [name]:not(input[type=number]:focus)")) {
    if (field.type === "checkbox") field.checked = filters[field.name];
    else field.value = filters[field.name] ?? "";
  }
  const n = nFilters();
  document.querySelector("#filters summary .n").textContent = n ? String(n) : "";
  document.getElementById("clear-filters").hidden = n === 0;
}

function clearFilters() {
  Object.assign(filters, { from: null, to: null, items: false, own: false, licence: "", language: "", backend: "", precision: "" });
  filtersChanged();
  document.querySelector("#filters summary").focus();
}

function filtersChanged() {
  showFilters();
  address.set({
    q: filters.text, from: asText(filters.from), to: asText(filters.to), items: filters.items ? "1" : "", own: filters.own ? "1" : "",
    ...Object.fromEntries(Object.keys(LISTS).map((name) => [name, filters[name]])),
  });
  redraw();
}

/* What somebody gave as a size; null where it is none. */
function sizeFrom(text) {
  const size = text.trim() === "" ? NaN : Number(text);
  return size >= 0 && Number.isFinite(size) ? size : null;
}

function asText(value) {
  return value === null ? "" : String(value);
}

/* What the address says, as far as there is such a thing. */
function readFilters() {
  filters.text = address.get("q") ?? "";
  for (const name of ["from", "to"]) {
    filters[name] = sizeFrom(address.get(name) ?? "");
  }
  filters.items = address.get("items") === "1";
  filters.own = address.get("own") === "1";
  for (const [name, values] of Object.entries(LISTS)) {
    const given = address.get(name);
    filters[name] = given !== null && board.models.some((model) => values(model).includes(given)) ? given : "";
  }
}
