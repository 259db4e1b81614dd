/* One model in detail, in a dialog: opened from its row, from a picture or by the address. */
function openDetail(place) {
  const dialog = document.getElementById("detail");
  const model = board.models[place];
  dialog.setAttribute("aria-labelledby", "detail-heading");
  dialog.replaceChildren(detailHead(place, model), element("div", { class: "detail-body", tabindex: -1 }, ...detailParts(place, model)));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  dialog.querySelector(".detail-body").scrollTop = 0;
  address.set({ detail: model.label });
}

/* Called once the table stands. A dialog that is closed gives the focus back to where it came from by itself. */
function startDetail() {
  const dialog = document.getElementById("detail");
  dialog.addEventListener("close", () => address.set({ detail: null }));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  const named = board.models.findIndex((model) => model.label === address.get("detail"));
  if (named >= 0) openDetail(named);
}

function detailHead(place, model) {
  const at = page.visible.indexOf(place);
  const step = (name, to) => element(
    "button",
    { type: "button", "aria-label": `${name} model`, disabled: to === undefined, onclick: () => {
      openDetail(to);
      document.querySelector(`#detail button[aria-label="${name} model"]:enabled, #detail .close`).focus();
    } },
    name === "Previous" ? "‹" : "›",
  );
  const isPicked = page.picked.includes(place);
  const picking = element("button", { type: "button", "aria-pressed": String(isPicked), onclick: (event) => {
    const isNow = event.target.getAttribute("aria-pressed") !== "true";
    pick(place, isNow);
    event.target.setAttribute("aria-pressed", String(isNow));
    event.target.textContent = pickWords(isNow);
  } }, pickWords(isPicked));
  return element(
    "header",
    { class: "detail-head" },
    element("div", {}, element("p", { class: "eyebrow" }, rankSentence(place)), element("h2", { id: "detail-heading", tabindex: -1, autofocus: true }, dataText(model.label)),
      element("p", { class: "origin" }, dataText(model.spec.name), model.spec.revision ? [" · ", element("code", {}, dataText(model.spec.revision))] : null)),
    element("div", { class: "actions" }, step("Previous", at > 0 ? page.visible[at - 1] : undefined),
      step("Next", at >= 0 ? page.visible[at + 1] : undefined), picking,
      element("button", { type: "button", class: "close", onclick: () => document.getElementById("detail").close() }, "Close")),
  );
}

function pickWords(isPicked) {
  return isPicked ? "Picked for comparison" : "Pick to compare";
}

function rankSentence(place) {
  const { rank, rank_low: low, rank_high: high, letters } = page.standings[place];
  const part = page.chosen.length < board.columns.length ? ` on ${page.chosen.length} of ${plural(board.columns.length, "task")}` : "";
  if (!isKnown(rank)) return `Not ranked${part}`;
  const open = isKnown(low) ? `, ${low === high ? "and no other" : `between ${low} and ${high}`} by the data; letters ${letters}` : ", without an interval";
  return `Rank ${rank}${open}${part}`;
}

function detailParts(place, model) {
  return [
    isReference(place) ? element("p", { class: "muted" }, "This is the reference that the others are held against.") : null,
    gatePart(model),
    element("div", { class: "fact-columns" }, standingPart(place), takesPart(model), isPart(model)),
    ...promptsPart(model),
    ...importedPart(model),
    tasksPart(place, model),
    ...itemsPart(model),
    ...historyPart(model),
  ].filter(Boolean);
}

/* A list of names and values; what isn't known is left out. */
function factList(heading, pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== GAP);
  const value = (each) => (each instanceof Node ? each : dataText(each));
  return element("section", {}, element("h3", {}, heading), known.length
    ? element("dl", {}, known.flatMap(([name, each]) => [element("dt", {}, name), element("dd", {}, value(each))]))
    : element("p", { class: "muted" }, "Not known."));
}

function standingPart(place) {
  const standing = page.standings[place];
  const groups = Object.entries(standing.groups ?? {}).map(([name, value]) => [visibleText(name), score(value)]);
  return factList("Where it stands", [
    ["Mean over tasks", score(standing.mean_task)],
    ["Mean over groups", score(standing.mean_type)],
    ["Rank by Borda", isKnown(standing.borda) ? String(standing.borda) : null],
    ...groups,
    ["Gaps", standing.gaps ? plural(standing.gaps, "task") + " without a value" : null],
    ["Interval of the rank", isKnown(standing.rank_low) ? null : standing.untested ?? "not tested"],
  ]);
}

function takesPart(model) {
  const { measures = {}, facts = {}, retention } = model;
  const known = (value, text, ...notes) => (isKnown(value) ? withNotes(text(value), notes) : null);
  const kept = (share) => (isKnown(share) ? `${percent(share)} of the reference` : null);
  const faster = isKnown(retention?.speed) ? `${times(retention.speed)} the reference` : null;
  const alone = measures.session ? "in turns with others, in one session" : "timed alone";
  const borrowed = measures.speed_of ? `measured with ${visibleText(measures.speed_of)}` : null;
  return factList("What it takes", [
    [`Recall at ${board.rag_k}`, score(measures.recall)],
    ["Quality kept", known(retention?.quality, percent, "of the reference")],
    ["Latency, p95", known(measures.latency_p95_ms, (value) => `${digits(value)} ms`, alone)],
    ["Tokens per second", known(measures.tokens_per_s, digits, faster, borrowed)],
    ["Weights in memory", known(inMib(facts.weight_bytes), mebibytes, kept(retention?.size))],
    ["Bytes of a vector", known(measures.vector_bytes, digits, kept(retention?.vectors))],
    ["Index", mebibytes(measures.index_mib)],
    ["Per million tokens", known(measures.usd_per_million_tokens, (value) => `$${digits(value)}`)],
    ["Measured on", measures.machine && withNotes(measures.machine, [measures.elsewhere ? "not where most others were: times say little beside theirs" : null])],
  ]);
}

function withNotes(text, notes) {
  return element("span", {}, dataText(text), notes.filter(Boolean).map((note) => element("span", { class: "below" }, dataText(note))));
}

function isPart({ spec, facts = {}, digest, date }) {
  const args = Object.entries(spec.args ?? {}).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  return factList("What it is", [
    ["Backend", spec.backend.replaceAll("_", " ")],
    ["Precision", spec.dtype],
    ["Vectors", spec.quantize ? spec.quantize + (spec.rescore ? `, rescored ×${spec.rescore}` : "") : null],
    ["Parameters", isKnown(facts.parameters) ? count(facts.parameters) : null],
    ["Dimensions", isKnown(facts.dimensions) ? String(facts.dimensions) + (spec.truncate_dim ? " (cut)" : "") : null],
    ["Tokens kept", isKnown(facts.max_tokens) ? facts.max_tokens.toLocaleString("en") : null],
    ["Pooling", spec.pooling],
    ["Similarity", spec.similarity],
    ["Normalised", isKnown(spec.normalize) ? (spec.normalize ? "yes" : "no") : null],
    ["Options", args],
    ["Languages", (facts.languages ?? []).join(", ")],
    ["Licence", facts.license],
    ["Evaluated", date?.slice(0, 10)],
    ["Hash of settings", element("code", {}, dataText(digest))],
  ]);
}

function promptsPart({ prompts = {}, spec }) {
  const told = Object.entries(prompts);
  const note = { none: "Prompts were left out on purpose.", swap: "Prompts of queries and documents were swapped on purpose." }[spec.prompting];
  if (!told.some(([, text]) => text) && !note) return [element("h3", {}, "Prompts"), element("p", { class: "muted" }, "None: texts go in as they are.")];
  return [element("h3", {}, "Prompts"), note ? element("p", {}, note) : null,
    element("dl", {}, told.flatMap(([role, text]) => [element("dt", {}, dataText(role)), element("dd", {}, text ? element("code", { class: "prompt" }, dataText(text)) : element("span", { class: "muted" }, "none"))]))];
}

function importedPart({ imported }) {
  if (!imported) return [];
  const settings = Object.entries(imported.settings ?? {}).map(([name, value]) => [visibleText(name), typeof value === "string" ? value : JSON.stringify(value)]);
  return [element("h3", {}, "Published, not measured here"), element("p", {}, "There are no items behind these values, so nothing about them can be tested."),
    element("dl", {}, [["File", imported.source], ["mteb", imported.mteb_version ?? "version not told"], ["Data set revision", imported.dataset_revision],
      ["Seconds taken", isKnown(imported.evaluation_time) ? digits(imported.evaluation_time) : null], ...settings]
      .filter(([, value]) => value).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, dataText(value))]))];
}

function gatePart({ gate }) {
  if (!gate) return null;
  const rules = gate.rules ?? [];
  return element("div", { class: `gate ${gateTone(gate)}` },
    element("p", {}, element("strong", { class: "badge" }, dataText(gate.outcome.replace("_", " "))), " ", dataText(gate.sentence)),
    rules.length ? element("ul", {}, rules.map((rule) => element("li", {}, dataText(rule)))) : null);
}

function tasksPart(place, model) {
  const reference = isReference(place) ? null : board.reference ?? null;
  const drawing = intervalScale(place, reference);
  const headings = ["Task", "Value", "Interval", ...(isKnown(reference) ? ["To the reference", "p"] : []), "Items", "Result"];
  const rows = board.columns.map((column, number) => taskRow(place, number, reference, drawing));
  const notes = [];
  if (isKnown(reference)) notes.push("The upright line is the reference’s value. p is of this pair on this task alone, corrected for nothing.");
  if (model.cells.some((cell) => cell?.rough)) notes.push("≈ marks intervals of too few items to be trusted to the digit.");
  if (model.cells.some((cell) => cell?.trained_on === "declared")) notes.push(`${TRAINED} marks data that the model’s makers say it was trained on.`);
  return element("section", {}, element("h3", {}, "Every task"), plainTable(`${model.label} on ${plural(rows.length, "task")}`, headings, rows, [0, 2]),
    notes.length ? element("p", { class: "small muted" }, notes.join(" ")) : null);
}

function taskRow(place, column, reference, drawing) {
  const { heading, metric, group, split, subset, n_items: inAll, refused } = board.columns[column];
  const cell = board.models[place].cells[column];
  const kind = [group, metric, split === "test" ? null : split, subset === "all" ? null : subset].filter(Boolean).join(" · ");
  const name = element("span", {}, dataText(heading), element("span", { class: "below" }, dataText(kind)), refused ? element("span", { class: "below" }, "not ranked: ", dataText(refused)) : null);
  const value = element("span", { class: "strong" }, score(cell?.value), cell?.trained_on === "declared" ? TRAINED : "");
  const there = element("span", { class: "drawn-interval" }, ...(cell && isKnown(cell.value)
    ? [drawing(column), element("span", { class: "below" }, (cell.rough ? "≈" : "") + (interval(cell.low, cell.high) || "no interval"))]
    : [element("span", { class: "muted" }, dataText(cell ? cell.reason ?? "undefined" : "a gap: not evaluated"))]));
  const beside = isKnown(reference) ? besideReference(place, reference, column) : [];
  const items = cell?.imported ? "published" : cell?.n_items ? cell.n_items.toLocaleString("en") + (inAll && inAll !== cell.n_items ? ` of ${inAll.toLocaleString("en")}` : "") : GAP;
  return [name, value, there, ...beside, items, cell?.result ? element("code", {}, dataText(cell.result)) : GAP];
}

function besideReference(place, reference, column) {
  const [value, base] = [place, reference].map((each) => board.models[each].cells[column]?.value);
  if (!isKnown(value) || !isKnown(base)) return [GAP, GAP];
  const test = pairTest(place, reference, [column]);
  return [differenceMark(value - base, board.columns[column].higher_is_better, test && test.p <= 1 - board.level), probability(test?.p)];
}

/* A difference: in colour, and with an arrow, where a test tells it from none. */
function differenceMark(difference, higher, isSure) {
  const isBetter = higher ? difference > 0 : difference < 0;
  const kind = isSure && difference !== 0 ? (isBetter ? "good" : "bad") : "quiet";
  const arrow = { good: " ▲", bad: " ▼", quiet: "" }[kind];
  const words = { good: ", better", bad: ", worse", quiet: "" }[kind];
  return element("span", { class: `difference ${kind}` }, signed(difference), element("span", { "aria-hidden": "true" }, arrow), words ? element("span", { class: "hidden" }, words) : null);
}

/* Draws the interval of a column, all on one scale: around the reference's value, or without one where it lies. */
function intervalScale(place, reference) {
  const from = (column, value) => {
    const base = isKnown(reference) ? board.models[reference].cells[column]?.value : 0;
    return isKnown(value) && isKnown(base) && Math.abs(value) <= 1 ? value - base : null;
  };
  const ends = (column) => {
    const cell = board.models[place].cells[column];
    return [cell?.value, cell?.low, cell?.high].map((value) => from(column, value));
  };
  const numbers = board.columns.flatMap((_, column) => ends(column)).filter(isKnown);
  const most = Math.max(...numbers.map(Math.abs), 1e-9);
  const [low, high] = isKnown(reference) ? [-most, most] : numbers.length ? padded(numbers) : [0, 1];
  const x = (value) => (((value - low) / (high - low)) * 112 + 4).toFixed(1);
  const line = (kind, start, end, top, bottom) => svgElement("line", { class: kind, x1: start, x2: end, y1: top, y2: bottom });
  return (column) => {
    const [value, start, end] = ends(column);
    if (value === null) return "";
    const parts = [line("track", 0, 120, 8, 8)];
    if (isKnown(reference)) parts.push(line("tick", x(0), x(0), 1, 15));
    if (start !== null && end !== null) parts.push(line("bar", x(start), x(end), 8, 8));
    parts.push(svgElement("circle", { class: "point", cx: x(value), cy: 8, r: 2.5 }));
    return svgElement("svg", { class: "interval waived", viewBox: "0 0 120 16", "aria-hidden": "true" }, ...parts);
  };
}

/* The address of a file beside the page: never one with a scheme of its own. */
function besidePage(file) {
  return `./${encodeURI(file.toWellFormed())}`;
}

function itemsPart(model) {
  const lists = model.items ?? [];
  const report = model.report ? element("p", {}, element("a", { href: besidePage(model.report) }, "The whole comparison with the reference")) : null;
  if (!lists.length && !report) return [];
  return [element("h3", {}, "Items lost and gained against the reference"), report, ...lists.map((list) => itemsOf(list, "the reference", model.label))];
}

function itemsOf(list, baseline, candidate) {
  const { heading } = board.columns[list.column];
  const one = (title, items, n) => (n === 0 ? null : element("div", {}, element("h4", {}, `${title}: ${n.toLocaleString("en")}${items.length < n ? `, the first ${items.length}` : ""}`),
    element("ol", { class: "items" }, items.map(itemEntry))));
  return element("details", { class: "item-list" },
    element("summary", {}, dataText(heading), element("span", { class: "muted" }, ` ${list.n_lost.toLocaleString("en")} lost, ${list.n_gained.toLocaleString("en")} gained`)),
    element("p", { class: "small muted" }, "Value of ", dataText(baseline), " → value of ", dataText(candidate), "."),
    element("div", { class: "fact-columns" }, one("Lost", list.lost ?? [], list.n_lost), one("Gained", list.gained ?? [], list.n_gained)));
}

function itemEntry({ id, reference, value, text }) {
  return element("li", {}, element("span", { class: "item-text" }, text ? dataText(text) : element("code", {}, dataText(id))),
    element("span", { class: "below" }, text ? element("code", {}, dataText(id)) : null, ` ${score(reference)} → ${score(value)} (${signed(value - reference)})`));
}

function historyPart(model) {
  const own = board.history.find((point) => point.label === model.label);
  const points = own ? board.history.filter((point) => point.model === own.model) : [];
  if (points.length < 2) return [];
  return [element("h3", {}, "Revisions"), plainTable(`Revisions of ${own.model}`, ["Revision", "Evaluated", "Mean"],
    points.map((point) => [element("span", {}, element("code", {}, shortRevision(point.revision)), point.label === model.label ? " this one" : ""), point.date.slice(0, 10), score(point.mean)]), [0, 1])];
}
