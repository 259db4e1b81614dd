/* The columns that the table can show, in sets. A column has
   key: its name in the address; title: its heading; note: what it means, in a sentence; group: the heading above;
   value(place): what it sorts by, null for a gap; show(place): its text or node; better: 1 where more is better, -1 where
   less is, 0 where neither; kind: its class; isHeated: whether its values are shaded by size. */
const VIEWS = { overview: "Overview", tasks: "Tasks", costs: "Costs", about: "About" };
const TRAINED = "†";
const PUBLISHED = "‡"; // elsewhere, and only read here
const ELSEWHERE = "°"; // measured on another machine than most

function number(key, title, note, get, show, options = {}) {
  return {
    key, title, note, group: "", better: 1, kind: "number", isHeated: false, value: (place) => get(place) ?? null,
    show: (place) => show(get(place)), ...options,
  };
}

function text(key, title, note, get, options = {}) {
  return {
    key, title, note, group: "", better: 0, kind: "text", isHeated: false, value: (place) => get(place) || null,
    show: (place) => (get(place) ? dataText(get(place)) : element("span", { class: "muted" }, GAP)), ...options,
  };
}

/* The columns of a set that say anything. */
function columnsOf(view) {
  const made = { overview, tasks, costs, about }[view]();
  const told = made.filter((column) => column.isAlways || saysAnything(column));
  return [pickColumn(), rankColumn(), modelColumn(), ...told.filter((column) => sharedBy(column) === null).map(asWideAsNeeded)];
}

/* Texts that are all short need no room for a line of several words. */
const SHORT = 28;
function asWideAsNeeded(column) {
  const isShort = column.kind === "text wide" && board.models.every((_, place) => (column.value(place) ?? "").length <= SHORT);
  return isShort ? { ...column, kind: "text" } : column;
}

/* What a column says of all models alike, where that is better told once. */
function sharedBy(column) {
  if (!column.isToldOnce || board.models.length < 2) return null;
  const values = new Set(board.models.map((_, place) => column.value(place)).filter((value) => value !== null));
  return values.size === 1 ? [...values][0] : null;
}

/* What there is to say of the columns of a set, below the table. */
function toldOnce(view) {
  const made = { overview, tasks, costs, about }[view]();
  const shared = made.filter((column) => sharedBy(column) !== null).map((column) => `${column.title}: ${visibleText(sharedBy(column))}.`);
  const shading = made.some((column) => column.isHeated) ? ["Shading runs from the worst to the best of a column."] : [];
  const elsewhere = made.some((column) => column.key === "speed") && board.models.some((model) => model.measures.elsewhere)
    ? [`${ELSEWHERE} marks times of another machine than most: they say little beside the others.`] : [];
  const picking = board.models.length > 1 ? element("span", { class: "of-screen" }, "Tick two models to compare them.") : "";
  return [[...shading, ...elsewhere, ...shared].join(" "), " ", picking];
}

function saysAnything(column) {
  return board.models.some((_, place) => column.value(place) !== null);
}

function pickColumn() {
  return {
    key: "pick", title: "Compare", note: "Pick two models to compare them", group: "", better: 0, kind: "pick",
    value: () => null, show: (place) => pickBox(place),
  };
}

function rankColumn() {
  return {
    ...number("rank", "Rank", "Rank, and the ranks that the data leaves open", (place) => page.standings[place].rank, digits),
    better: -1, kind: "rank", show: rankCell, isAlways: true,
  };
}

function rankCell(place) {
  const standing = page.standings[place];
  if (standing.rank === null) return element("span", { class: "muted", title: whyUnranked(standing) }, element("b", {}, GAP), " ", rankInterval(standing));
  return element("span", {}, element("b", {}, String(standing.rank)), " ", rankInterval(standing));
}

function rankInterval({ rank_low: low, rank_high: high, untested }) {
  if (low === null) return element("span", { class: "interval-text", title: untested && `No interval: ${untested}` }, "");
  const words = low === high ? `the data leaves only rank ${low} open` : `the data leaves ranks ${low} to ${high} open`;
  return element("span", { class: "interval-text", title: words }, `${low}–${high}`);
}

function whyUnranked({ gaps }) {
  return gaps ? `Not ranked: ${plural(gaps, "task")} without a value` : "Not ranked";
}

function modelColumn() {
  return {
    ...text("model", "Model", "Its name; opens all that is known of it", (place) => board.models[place].label),
    kind: "model", show: modelCell, isAlways: true,
  };
}

function modelCell(place) {
  const model = board.models[place];
  const standing = page.standings[place];
  const marks = [
    place === board.reference ? "reference" : null,
    model.label === board.production ? "in use" : null,
    standing.gaps ? plural(standing.gaps, "gap") : null,
  ].filter((mark) => mark !== null);
  return [
    element("button", { type: "button", class: "model-name", "data-model": place }, dataText(model.label)),
    ...marks.flatMap((mark) => [" ", element("span", { class: "tag" }, mark)]),
  ];
}

function overview() {
  const standing = (name) => (place) => page.standings[place][name];
  return [
    lettersColumn(),
    number("mean_task", "by task", "Mean over tasks", standing("mean_task"), score, { group: "Mean", better: direction(), isHeated: true }),
    ...(groupNames().length > 1
      ? [number("mean_type", "by group", "Mean over groups of the means within them", standing("mean_type"), score, { group: "Mean", better: direction(), isHeated: true })]
      : []),
    number("borda", "Borda", "Rank by Borda's count of the ranks on each task", standing("borda"), digits, { group: "Mean", better: -1 }),
    { ...recallColumn(), group: "Mean" },
    ...[...speedColumns().slice(0, 2), ...sizeColumns().slice(0, 2)].map((column) => ({ ...column, group: "What it takes" })),
    { ...qualityKeptColumn(), title: "Quality kept", group: "" },
    gateColumn(),
    ...groupColumns(),
  ];
}

/* Of the board's means: they are only of columns of one direction. */
function direction() {
  return chosenRanked().every((column) => column.higher_is_better) ? 1 : -1;
}

function chosenRanked() {
  return page.chosen.map((place) => board.columns[place]).filter((column) => column.refused === null);
}

function groupNames() {
  return [...new Set(chosenRanked().map((column) => column.group))];
}

function groupColumns() {
  const names = groupNames();
  if (names.length < 2) return [];
  return names.map((name) => {
    const inside = chosenRanked().filter((column) => column.group === name);
    const note = `Mean over ${plural(inside.length, "task")} of ${name}`;
    return number(`group.${name}`, name, note, (place) => page.standings[place].groups[name], score, {
      group: "Mean by group", better: inside.every((column) => column.higher_is_better) ? 1 : -1, isHeated: true,
    });
  });
}

function lettersColumn() {
  const note = "Models that share a letter can't be told apart by the data";
  return text("letters", "Ties", note, (place) => page.standings[place].letters, { kind: "letters" });
}

function tasks() {
  const metrics = metricsOfGroups();
  const mean = number("mean_task", "Mean", "Mean over tasks", (place) => page.standings[place].mean_task, score, { better: direction(), isHeated: true });
  return [mean, ...inGroups(page.chosen).map((at) => taskColumn(at, metrics))];
}

/* Places of columns, those of a group side by side. */
function inGroups(places) {
  const groups = [...new Set(places.map((place) => board.columns[place].group))];
  return groups.flatMap((group) => places.filter((place) => board.columns[place].group === group));
}

/* The metric of each group, where all its columns have the same: it then stands beside the name of the group. */
function metricsOfGroups() {
  const found = new Map();
  for (const { group, metric } of board.columns) found.set(group, [...new Set([...(found.get(group) ?? []), metric])]);
  return found;
}

function taskColumn(at, metrics) {
  const column = board.columns[at];
  const isAlike = metrics.get(column.group).length === 1;
  const subset = ["all", "mean"].includes(column.subset) ? "" : ` · ${column.subset}`;
  const counted = column.refused === null ? "" : `. Not ranked: ${column.refused}`;
  const way = column.higher_is_better ? "" : ", less is better";
  const metric = column.higher_is_better ? column.metric : `${column.metric} ↓`;
  return number(`task.${column.heading}`, column.heading, `${column.heading.length > LONG_TITLE ? `${column.heading}: ` : ""}${column.metric}${way} · ${column.split}${subset}${counted}`,
    (place) => VALUES[at][place], score, {
      group: isAlike ? `${column.group} · ${metric}` : column.group, better: column.higher_is_better ? 1 : -1,
      isHeated: true, isAlways: true, below: isAlike ? null : metric, show: (place) => taskCell(board.models[place].cells[at]),
      words: (place) => cellWords(board.models[place].cells[at]),
    });
}

function taskCell(cell) {
  if (cell === null) return GAP;
  if (cell.value === null) return "n/a";
  const marks = cellMarks(cell);
  return marks === null ? score(cell.value) : [score(cell.value), marks];
}

/* Its interval and items, or why it has no value. */
function cellWords(cell) {
  if (cell === null) return "No result";
  if (cell.value === null) return `No value: ${(cell.reason ?? "not told why").replaceAll("_", " ")}`;
  if (cell.low === null) return null;
  return `${cell.rough ? "about " : ""}${score(cell.low)} to ${score(cell.high)}, ${plural(cell.n_items, "item")}`;
}

function cellMarks(cell) {
  if (cell.trained_on !== "declared" && !cell.imported) return null;
  return element("sup", {}, cell.trained_on === "declared" ? trainedMark() : null, cell.imported ? importedMark() : null);
}

function trainedMark() {
  return element("span", { title: "Its makers say that the model was trained on this data" }, TRAINED);
}

function importedMark() {
  return element("span", { title: "Published elsewhere, not measured here" }, PUBLISHED);
}

function measure(name) {
  return (place) => board.models[place].measures[name];
}

function fact(name) {
  return (place) => board.models[place].facts[name];
}

function recallColumn() {
  return number("recall", `Recall@${board.rag_k}`, `Mean recall of retrieval tasks at ${board.rag_k} documents`, measure("recall"), score, { isHeated: true });
}

function speedColumns() {
  return [
    timed("latency", "p95, ms", "95 % of queries take at most so long, encoding and search", "latency_p95_ms", { better: -1 }),
    timed("speed", "Tokens/s", "Tokens encoded per second", "tokens_per_s"),
    number("price", "$ per M tokens", "US dollars to encode a million tokens", measure("usd_per_million_tokens"), digits, { better: -1 }),
    text("machine", "Measured on", "What speeds were measured on", measure("machine"), { isToldOnce: true, kind: "text wide" }),
  ].map((column) => ({ ...column, group: "Speed" }));
}

/* A time or a speed, marked where it is of another machine than most. */
function timed(key, title, note, name, options = {}) {
  const isElsewhere = (place) => board.models[place].measures.elsewhere && isKnown(measure(name)(place));
  return number(key, title, note, measure(name), digits, {
    ...options,
    show: (place) => (isElsewhere(place) ? [digits(measure(name)(place)), element("sup", {}, ELSEWHERE)] : digits(measure(name)(place))),
    words: (place) => timedWords(board.models[place].measures, isElsewhere(place)),
  });
}

function timedWords({ machine, session, speed_of: speedOf }, isElsewhere) {
  return [
    machine && `Measured on ${machine}`,
    isElsewhere && "not the machine of most models here",
    session && "latency in turns with others of its session",
    speedOf && `speed of ${speedOf}, the same weights`,
  ].filter(Boolean).map(visibleText).join("; ");
}

/* A system without vectors, such as BM25, has 0 dimensions. */
const hasVectors = (place) => board.models[place].facts.dimensions !== 0;
const lengthOfVectors = (place) => (hasVectors(place) ? fact("dimensions")(place) : null);

function sizeColumns() {
  const weights = (place) => inMib(fact("weight_bytes")(place));
  return [
    number("parameters", "Params", "Parameters of the model", fact("parameters"), count, { better: -1 }),
    number("dimensions", "Dims", "Length of a vector", lengthOfVectors, digits, { better: -1 }),
    number("memory", "Weights", "Memory that its weights take", weights, mebibytes, { better: -1 }),
    number("vector", "Bytes/vector", "Bytes of a vector as it is stored", measure("vector_bytes"), digits, { better: -1 }),
    number("index", "Index", "Size of the indexes of all tasks together", measure("index_mib"), mebibytes, { better: -1 }),
  ].map((column) => ({ ...column, group: "Size" }));
}

function qualityKeptColumn() {
  const beside = board.reference === null ? "the reference" : board.models[board.reference].label;
  const note = `Quality kept: its mean over the tasks chosen, beside that of ${beside}`;
  const way = direction(); // once: it looks at every column
  return number("kept", "Quality", note, withReference((place) => keptQuality(place, way)), percent, { group: "Beside the reference" });
}

/* A mean as a share of the reference's, for the tasks chosen now; as workflows/boards/retention.py has it for all. */
function keptQuality(place, way = direction()) {
  if (board.reference === null) return null;
  const key = board.rank_by === "mean_type" ? "mean_type" : "mean_task";
  const [own, other] = [place, board.reference].map((each) => page.standings[each][key]);
  const [part, whole] = way > 0 ? [own, other] : [other, own];
  return isKnown(part) && isKnown(whole) && whole > 0 ? part / whole : null;
}

function retained(name) {
  return withReference((place) => board.models[place].retention?.[name]);
}

/* Of the reference itself 1, where anything is known of another model. */
function withReference(share) {
  const anyone = board.models.some((_, place) => place !== board.reference && isKnown(share(place)));
  return (place) => (place === board.reference ? (anyone ? 1 : null) : share(place));
}

function costs() {
  return [
    number("mean_task", "Mean", "Mean over tasks", (place) => page.standings[place].mean_task, score, { better: direction(), isHeated: true }),
    recallColumn(),
    ...speedColumns(),
    ...sizeColumns(),
    ...[
      qualityKeptColumn(),
      number("kept.size", "Weights", "Bytes of its weights, beside the reference", retained("size"), percent, { better: -1 }),
      number("kept.vectors", "Vectors", "Bytes of a vector, beside the reference", retained("vectors"), percent, { better: -1 }),
      number("kept.speed", "Speed", "Tokens per second, beside the reference", retained("speed"), times),
    ].map((column) => ({ ...column, group: "Beside the reference" })),
    gateColumn(),
  ];
}

function gateColumn() {
  const outcome = (place) => board.models[place].gate?.outcome;
  return text("gate", "Gate", "Whether it may replace the model in use", outcome, { show: gateCell });
}

function gateCell(place) {
  const gate = board.models[place].gate;
  if (gate === null) return GAP;
  if (gate.outcome === "in_use") return element("span", { class: "muted", title: gate.sentence }, "in use");
  return element("span", { class: `badge ${gateTone(gate)}`, title: gate.sentence }, dataText(gate.outcome));
}

/* Its colour, as embeval/pages/looks.py has it. */
function gateTone({ outcome }) {
  return { in_use: "waived", pass: "good", fail: "bad", inconclusive: "unsure", error: "broken" }[outcome];
}

function about() {
  const spec = (name) => (place) => board.models[place].spec[name];
  return [
    text("backend", "Backend", "What ran it", spec("backend")),
    text("precision", "Precision", "Number format inside the model", (place) => (hasVectors(place) ? spec("dtype")(place) : null)),
    number("dimensions", "Dims", "Length of a vector", lengthOfVectors, digits, { better: 0 }),
    number("tokens", "Max tokens", "Tokens kept of a text", fact("max_tokens"), digits),
    text("prompts", "Prompts", "Text put before inputs", promptWords, { kind: "text wide" }),
    text("licence", "Licence", "As its makers declare it", fact("license")),
    text("languages", "Languages", "As its makers declare them", (place) => languageWords(board.models[place].facts.languages), { kind: "text wide" }),
    text("revision", "Revision", "Commit, or hash of its files", spec("revision"), { show: revisionCell, kind: "text id" }),
    text("date", "Evaluated", "When the newest of its results was made", (place) => board.models[place].date, { show: dateCell, kind: "text date" }),
    text("trained", "Trained on", "Tasks whose data its makers say it was trained on", trainedWords, { kind: "text wide" }),
    text("untested", "No interval because", "Why the data can't tell which ranks are open", (place) => page.standings[place].untested, { kind: "text wide" }),
  ];
}

function promptWords(place) {
  const given = Object.entries(board.models[place].prompts).filter(([, prompt]) => prompt !== "");
  return given.map(([role, prompt]) => `${role}: “${prompt}”`).join(", ");
}

function languageWords(languages) {
  return languages.length > 4 ? `${languages.slice(0, 3).join(", ")} and ${languages.length - 3} more` : languages.join(", ");
}

function trainedWords(place) {
  const found = board.columns.filter((_, at) => isTrainedOn(place, at)).map((column) => column.task);
  return languageWords([...new Set(found)]);
}

function revisionCell(place) {
  const revision = board.models[place].spec.revision;
  if (!revision) return GAP;
  return dataText(revision.length > 16 ? `${revision.slice(0, 15)}…` : revision, { title: revision });
}

function dateCell(place) {
  const date = board.models[place].date;
  return date ? element("time", { datetime: date, title: date }, date.slice(0, 10)) : GAP;
}
