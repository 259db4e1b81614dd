/* Which tasks are shown and ranked by. With all of them the ranks are those that the board was built with. */
const ALL = board.columns.map((_, place) => place);

function startChoosing() {
  const form = document.getElementById("choosing");
  form.querySelector(".fields").append(...taskFields());
  form.addEventListener("change", (event) => {
    if (event.target.dataset.group !== undefined) tickGroup(form, event.target);
    choose([...form.querySelectorAll("[data-column]:checked")].map((box) => Number(box.dataset.column)));
  });
  for (const [name, places] of [["choose-all", ALL], ["choose-none", []]]) {
    document.getElementById(name).addEventListener("click", () => choose(places));
  }
  document.getElementById("reset-ranks").addEventListener("click", () => {
    choose(ALL);
    document.querySelector("#choosing summary").focus();
  });
  showChosen();
}

function readChosen() {
  const places = chosenInAddress();
  if (places.length < ALL.length) setChosen(places);
}

function taskFields() {
  const groups = [...new Set(board.columns.map((column) => column.group))];
  return groups.map((group) => element("fieldset", {},
    element("legend", {}, element("label", { class: "tick" },
      element("input", { type: "checkbox", "data-group": group }), dataText(group))),
    ALL.filter((place) => board.columns[place].group === group).map((place) =>
      element("label", { class: "tick" }, element("input", { type: "checkbox", "data-column": place }), taskLabel(board.columns[place])))));
}

function taskLabel(column) {
  return element("span", {}, dataText(column.heading), column.refused === null ? null : element("span", { class: "muted" }, " not ranked"));
}

function tickGroup(form, box) {
  for (const each of box.closest("fieldset").querySelectorAll("[data-column]")) each.checked = box.checked;
}

function choose(places) {
  setChosen(places);
  showChosen();
  address.set(chosenAsText());
  rebuild();
  announce(`${document.getElementById("ranks-note").textContent} ${shownWords()}`);
}

function setChosen(places) {
  page.chosen = places;
  page.standings = places.length === ALL.length ? board.models.map((model) => model.standing) : standingsOf(places);
}

function showChosen() {
  for (const box of document.querySelectorAll("#choosing [data-column]")) box.checked = page.chosen.includes(Number(box.dataset.column));
  for (const box of document.querySelectorAll("#choosing [data-group]")) {
    const inside = [...box.closest("fieldset").querySelectorAll("[data-column]")].map((each) => each.checked);
    box.checked = inside.every(Boolean);
    box.indeterminate = !box.checked && inside.some(Boolean);
  }
  const isPart = page.chosen.length < ALL.length;
  document.querySelector("#choosing summary .n").textContent = isPart ? `${page.chosen.length} of ${ALL.length}` : "";
  document.getElementById("ranks").hidden = !isPart;
  // It is of all tasks.
  document.getElementById("answer")?.toggleAttribute("hidden", isPart);
  document.getElementById("ranks-note").textContent = chosenWords();
}

function chosenWords() {
  if (!page.chosen.length) return "No task is chosen, so nothing is ranked.";
  const part = `${page.chosen.length} of ${plural(ALL.length, "task")}`;
  if (!chosenRanked().length) return `Shown are ${part}, none of which is ranked by.`;
  if (board.rank_by !== "borda" && !haveMean(rankedPlaces())) return `Shown are ${part}, which have different units or directions: there is no mean to rank by.`;
  return `Ranks, means and intervals are of ${part}. ${leadersWords()}`;
}

/* The shorter of what is chosen and what is left out. */
function chosenAsText() {
  const headings = (places) => places.map((place) => board.columns[place].heading);
  const left = ALL.filter((place) => !page.chosen.includes(place));
  if (!left.length) return { task: null, without: null };
  if (!page.chosen.length) return { task: "-", without: null };
  return left.length < page.chosen.length ? { task: null, without: headings(left) } : { task: headings(page.chosen), without: null };
}

function chosenInAddress() {
  const [only, without] = [address.getAll("task"), address.getAll("without")];
  if (only.length === 1 && only[0] === "-") return [];
  const named = ALL.filter((place) => only.includes(board.columns[place].heading));
  const found = named.length ? named : ALL;
  return found.filter((place) => !without.includes(board.columns[place].heading));
}
