/* What models are worth and what they take, by the columns chosen now. */
function rankedPlaces() {
  return page.chosen.filter((place) => !board.columns[place].refused);
}

function sharesOfPlaces(columns, byGroup) {
  const weights = columns.map((place) => board.columns[place].weight ?? 1);
  return byGroup ? typeShares(weights, columns.map((place) => board.columns[place].group)) : taskShares(weights);
}

/* The interval of a weighted mean from those of its parts, of their coverage. Those of several tasks are independent of
   each other; columns of one task may hold the same items, so theirs are added up, as in ranks.js. Source: Zou, Huang &
   Zhang, Computational Statistics & Data Analysis 2009 (variance estimates recovery). */
function meanInterval(place, columns, shares) {
  let value = 0;
  const sides = new Map();
  for (const [number, column] of columns.entries()) {
    const cell = board.models[place].cells[column];
    if (!cell || !isKnown(cell.value) || !isKnown(cell.low) || !isKnown(cell.high)) return null;
    const share = shares[number];
    const [below, above] = sides.get(taskOf(column)) ?? [0, 0];
    sides.set(taskOf(column), [below + share * (cell.value - cell.low), above + share * (cell.high - cell.value)]);
    value += share * cell.value;
  }
  const far = (side) => Math.sqrt(sum([...sides.values()].map((each) => each[side] ** 2)));
  return { low: value - far(0), high: value + far(1) };
}

function haveMean(columns) {
  return areAlike(columns.map((place) => board.columns[place]));
}

/* All that can stand on an axis of quality: {key, name, higher, value(place), interval(place)}. */
function qualities() {
  const columns = rankedPlaces();
  const means = haveMean(columns) ? meanQualities(columns) : [];
  const ranks = columns.length ? [rankQuality("rank", "Rank"), rankQuality("borda", "Rank by Borda")] : [];
  const groups = [...new Set(columns.map((place) => board.columns[place].group))]
    .map((group) => [group, columns.filter((place) => board.columns[place].group === group)])
    .filter(([, inside]) => haveMean(inside))
    .map(([group, inside]) => groupQuality(group, inside));
  return [...means, ...(groups.length > 1 || !means.length ? groups : []), ...ranks, ...page.chosen.map(taskQuality)];
}

function meanQualities(columns) {
  const mean = (key, name, byGroup) => {
    const shares = sharesOfPlaces(columns, byGroup);
    return {
      key,
      name,
      higher: board.columns[columns[0]].higher_is_better,
      value: (place) => page.standings[place][key],
      interval: (place) => meanInterval(place, columns, shares),
    };
  };
  const both = [mean("mean_task", "Mean over tasks", false), mean("mean_type", "Mean over groups", true)];
  return board.rank_by === "mean_type" ? both.reverse() : both;
}

function rankQuality(key, name) {
  const interval = (place) => {
    const { rank_low: low, rank_high: high } = page.standings[place];
    return key === "rank" && isKnown(low) ? { low, high } : null;
  };
  return { key, name, higher: false, value: (place) => page.standings[place][key], interval };
}

function groupQuality(group, columns) {
  const shares = sharesOfPlaces(columns, false);
  return {
    key: `group ${group}`,
    name: `${group}, mean`,
    higher: board.columns[columns[0]].higher_is_better,
    value: (place) => page.standings[place].groups?.[group],
    interval: (place) => meanInterval(place, columns, shares),
  };
}

function taskQuality(column) {
  const { heading, metric, higher_is_better: higher } = board.columns[column];
  const cell = (place) => board.models[place].cells[column];
  return { key: `task ${column}`, name: `${heading} ${metric}`, higher, value: (place) => cell(place)?.value, interval: cell };
}

/* What models take and are chosen by, best known first; those of a kind can stand on an axis. */
const TAKEN = [
  { key: "recall", kind: null, name: `Recall at ${board.rag_k}`, text: score, higher: true, value: ({ measures }) => measures.recall },
  { key: "speed", kind: "speed", name: "Tokens per second", text: digits, higher: true, value: ({ measures }) => measures.tokens_per_s },
  { key: "latency", kind: "speed", name: "Latency of a query, p95", unit: "ms", text: (value) => `${digits(value)} ms`, higher: false, value: ({ measures }) => measures.latency_p95_ms },
  { key: "usd", kind: "speed", name: "US dollars per million tokens", text: digits, higher: false, value: ({ measures }) => measures.usd_per_million_tokens },
  { key: "parameters", kind: "size", name: "Parameters", text: count, higher: false, value: ({ facts }) => facts.parameters },
  { key: "weights", kind: "size", name: "Weights in memory", unit: "MiB", text: mebibytes, higher: false, value: ({ facts }) => inMib(facts.weight_bytes) },
  { key: "dimensions", kind: "size", name: "Dimensions of a vector", text: digits, higher: false, value: ({ facts }) => facts.dimensions },
  { key: "vector", kind: "size", name: "Bytes of a stored vector", text: digits, higher: false, value: ({ measures }) => measures.vector_bytes },
  { key: "index", kind: "size", name: "Index", unit: "MiB", text: mebibytes, higher: false, value: ({ measures }) => measures.index_mib },
  { key: "tokens", kind: null, name: "Tokens kept of a text", text: digits, higher: true, value: ({ facts }) => facts.max_tokens },
];

/* Those of a kind that any model has, named with their units. */
function costsOf(kind) {
  return TAKEN.filter((each) => each.kind === kind && board.models.some((model) => isKnown(each.value(model))))
    .map((each) => ({ ...each, name: each.unit ? `${each.name} (${each.unit})` : each.name }));
}

/* The test of two models on some columns: of this pair alone, corrected for nothing; `gap` is above 0 where the first
   is better. null: not both have items, or the columns have no mean that could be tested. */
function pairTest(first, second, columns) {
  const [one, other] = [board.tested.indexOf(first), board.tested.indexOf(second)];
  if (one < 0 || other < 0 || one === other || !columns.length || !haveMean(columns)) return null;
  const at = (Math.max(one, other) * (Math.max(one, other) - 1)) / 2 + Math.min(one, other);
  const shares = sharesOfPlaces(columns, board.rank_by === "mean_type");
  const value = (place) => columns.reduce((total, column, number) => total + shares[number] * (VALUES[column][place] ?? NaN), 0);
  const gap = (value(first) - value(second)) * (board.columns[columns[0]].higher_is_better ? 1 : -1);
  const p = pairP(gap, at, columnsByTask(columns, shares));
  return Number.isNaN(p) || Number.isNaN(gap) ? null : { gap, p };
}

/* Whether the board's tests, corrected by Holm for all pairs, tell two models apart: where they share no letter.
   null: not both were tested. */
function areApart(first, second) {
  const [one, other] = [first, second].map((place) => page.standings[place].letters?.match(/[a-z]\d*/g));
  return one && other ? !one.some((letter) => other.includes(letter)) : null;
}
