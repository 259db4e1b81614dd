/* Two models beside each other: the first picked is A, the second B. */
function startComparison() {
  page.listen(showComparison);
  showComparison();
}

function showComparison() {
  const part = document.getElementById("comparison");
  part.hidden = page.picked.length < 2;
  part.replaceChildren(...(part.hidden ? [] : comparisonParts(...page.picked)));
}

function comparisonParts(one, other) {
  const name = (place) => element("button", { type: "button", class: "plain-button", onclick: () => openDetail(place) }, dataText(labelOf(place)));
  return [
    element("h2", {}, "Comparison"),
    element("p", { class: "sides" }, element("span", { class: "side" }, "A"), " ", name(one), element("span", { class: "muted" }, " and "), element("span", { class: "side" }, "B"), " ", name(other),
      element("button", { type: "button", onclick: () => swapPicked(one, other) }, "Swap"),
      element("button", { type: "button", onclick: () => clearPicked() }, "Clear")),
    overallPart(one, other),
    comparedTasks(one, other),
    comparedCosts(one, other),
    ...comparedItems(one, other),
  ];
}

function swapPicked(one, other) {
  for (const place of [one, other]) pick(place, false);
  for (const place of [other, one]) pick(place, true);
  document.querySelector("#comparison .sides button:not(.plain-button)").focus();
}

function clearPicked() {
  for (const place of [...page.picked]) pick(place, false);
  document.getElementById("table-part").querySelector("input, button, a, [tabindex]")?.focus();
}

function overallPart(one, other) {
  const columns = rankedPlaces();
  const test = pairTest(one, other, columns);
  const apart = areApart(one, other);
  const better = test && test.gap > 0 ? one : other;
  const verdict = apart === null
    ? ["quiet", "Not tested", `${untestedOf(one, other)}, so the data says nothing on whether they differ.`]
    : apart
      ? ["waived", `${better === one ? "A" : "B"} is better`, "The board's tests tell the two apart: all pairs of its models, corrected by Holm."]
      : ["unsure", "Not told apart", "The board's tests don't tell the two apart: all pairs of its models, corrected by Holm."];
  const own = test ? ` Tested as if they were the only two, and corrected for nothing: p ${probability(test.p)}.` : "";
  return element("div", { class: `gate ${verdict[0]}` }, element("p", {}, element("strong", { class: "badge" }, verdict[1]), " ", dataText(verdict[2] + own, { dir: "ltr" })));
}

function untestedOf(one, other) {
  const without = [one, other].filter((place) => !board.tested.includes(place));
  if (!without.length) return "There is no test of these tasks";
  return without.map((place) => `${labelOf(place)}: ${page.standings[place].untested ?? "no items"}`).join("; ");
}

function comparedTasks(one, other) {
  const shown = page.chosen;
  if (!shown.length) return element("section", {}, element("h3", {}, "Quality"), element("p", { class: "muted" }, "No task is chosen."));
  const rows = shown.map((column) => comparedTask(one, other, column));
  const columns = rankedPlaces();
  if (columns.length > 1 && haveMean(columns)) rows.unshift(comparedMean(one, other, columns));
  const table = plainTable("B less A, task by task", ["Task", "A", "B", "Difference", "p", "Finding"], rows, [0, 5]);
  const isTested = shown.some((column) => pairTest(one, other, [column]) !== null);
  return element("section", {}, element("h3", {}, "Quality"), table, !isTested ? null :
    element("p", { class: "small muted" }, `p is of the t-test of this pair on this task alone, corrected for nothing: one in ${Math.round(1 / (1 - board.level))} such tests finds a difference where there is none.`));
}

function comparedMean(one, other, columns) {
  const key = board.rank_by === "mean_type" ? "mean_type" : "mean_task";
  const [before, after] = [one, other].map((place) => page.standings[place][key]);
  const test = pairTest(one, other, columns);
  const shares = sharesOfPlaces(columns, key === "mean_type");
  const name = element("strong", {}, key === "mean_type" ? "Mean over groups" : "Mean over tasks");
  return [name, valueWithInterval(before, meanInterval(one, columns, shares)), valueWithInterval(after, meanInterval(other, columns, shares)),
    ...finding(before, after, board.columns[columns[0]].higher_is_better, test)];
}

function comparedTask(one, other, column) {
  const { heading, metric, higher_is_better: higher } = board.columns[column];
  const [before, after] = [one, other].map((place) => board.models[place].cells[column]);
  const name = element("span", {}, dataText(heading), element("span", { class: "below" }, dataText(metric)));
  return [name, valueWithInterval(before?.value, before), valueWithInterval(after?.value, after), ...finding(before?.value, after?.value, higher, pairTest(one, other, [column]))];
}

function valueWithInterval(value, there) {
  return element("span", {}, score(value), element("span", { class: "below" }, interval(there?.low, there?.high)));
}

function finding(before, after, higher, test) {
  if (!isKnown(before) || !isKnown(after)) return [GAP, GAP, "a gap"];
  const isSure = test && test.p <= 1 - board.level;
  const isBetter = higher ? after > before : after < before;
  const words = !test ? "not tested" : after === before && test.p === 1 ? "the same" : !isSure ? "not told apart" : isBetter ? "B better" : "A better";
  return [differenceMark(after - before, higher, isSure), probability(test?.p), words];
}

function comparedCosts(one, other) {
  const models = [one, other].map((place) => board.models[place]);
  const rows = TAKEN.map(({ name, value, text, higher }) => ({ name, values: models.map(value), text, higher }))
    .filter(({ values }) => values.some(isKnown))
    .map(({ name, values, text, higher }) => [name, ...values.map((value) => (isKnown(value) ? text(value) : GAP)), costRatio(values, higher)]);
  const licences = models.map((model) => model.facts.license ?? GAP);
  if (licences.some((text) => text !== GAP)) rows.push(["Licence", ...licences, ""]);
  if (!rows.length) return element("section", {}, element("h3", {}, "What they take"), element("p", { class: "muted" }, "Nothing is known of what these two take."));
  return element("section", {}, element("h3", {}, "What they take"), plainTable("What the two take", ["", "A", "B", "B is"], rows), timingNote(models));
}

/* How many times as much B takes; in words where it is the same. */
function costRatio([before, after], higher) {
  if (!isKnown(before) || !isKnown(after)) return GAP;
  if (before === after) return "the same";
  if (before === 0 || after === 0) return GAP;
  const isBetter = higher ? after > before : after < before;
  return element("span", { class: `difference ${isBetter ? "good" : "bad"}` }, times(after / before), element("span", { "aria-hidden": "true" }, isBetter ? " ▲" : " ▼"), element("span", { class: "hidden" }, isBetter ? ", better" : ", worse"));
}

function timingNote([before, after]) {
  const times = [before, after].map((model) => model.measures ?? {});
  if (!times.every(({ machine }) => machine)) return null;
  if (times[0].machine !== times[1].machine) return element("p", { class: "small muted" }, "Times were measured on different machines: ", dataText(times[0].machine), " and ", dataText(times[1].machine), ". Beside each other they say little.");
  const isSession = times[0].session && times[0].session === times[1].session;
  return element("p", { class: "small muted" }, isSession ? "Latencies were measured in turns with each other, in one session." : "Latencies were measured one after the other: a machine is now fast and now slow.");
}

/* Items are kept against the reference: where one of the two is it, they are those of this pair. */
function comparedItems(one, other) {
  const heading = element("h3", {}, "Items");
  const candidate = isReference(one) ? other : isReference(other) ? one : null;
  const model = candidate === null ? null : board.models[candidate];
  if (model && ((model.items ?? []).length || model.report)) {
    const link = model.report ? element("p", {}, element("a", { href: besidePage(model.report) }, "The whole comparison, item by item")) : null;
    return [element("section", {}, heading, link, ...(model.items ?? []).map((list) => itemsOf(list, labelOf(board.reference), model.label)))];
  }
  const quoted = (place) => `'${visibleText(labelOf(place)).replaceAll("'", "'\\''")}'`;
  return [element("section", {}, heading, element("p", {}, "Item by item: ", element("code", { class: "command" }, dataText(`embeval compare ${quoted(one)} ${quoted(other)}`))))];
}
