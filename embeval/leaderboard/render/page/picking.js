/* Two models picked for comparison; a third takes the place of the one picked first. */
function pickBox(place) {
  const box = element("input", { type: "checkbox", "aria-label": `Compare ${visibleText(board.models[place].label)}`, "data-pick": place });
  box.checked = page.picked.includes(place);
  return box;
}

function startPicking() {
  document.getElementById("table-part").addEventListener("change", (event) => {
    const place = event.target.dataset?.pick;
    if (place !== undefined) pick(Number(place), event.target.checked);
  });
  document.getElementById("clear-picked").addEventListener("click", () => {
    setPicked([]);
    document.querySelector("[data-pick]")?.focus();
  });
  document.getElementById("go-to-comparison").addEventListener("click", () => {
    const section = document.getElementById("comparison");
    section.scrollIntoView();
    section.setAttribute("tabindex", "-1");
    section.focus({ preventScroll: true });
  });
  showPicked();
}

function readPicked() {
  const named = address.getAll("pick").map((label) => board.models.findIndex((model) => model.label === label));
  page.picked = [...new Set(named.filter((place) => place >= 0))].slice(0, 2);
}

function pick(place, isPicked) {
  const others = page.picked.filter((each) => each !== place);
  setPicked(isPicked ? [...others, place].slice(-2) : others);
}

function setPicked(places) {
  page.picked = places;
  address.set({ pick: places.map((place) => board.models[place].label) });
  showPicked();
  page.changed();
}

function showPicked() {
  for (const box of document.querySelectorAll("[data-pick]")) box.checked = page.picked.includes(Number(box.dataset.pick));
  const names = page.picked.map((place) => element("b", {}, dataText(board.models[place].label)));
  const words = names.length === 2 ? ["Picked: ", names[0], " and ", names[1]] : ["Picked: ", names[0], ". Tick another model to compare it with"];
  document.getElementById("picked").hidden = names.length === 0;
  document.getElementById("picked-words").replaceChildren(...(names.length ? words : []));
  document.getElementById("go-to-comparison").hidden = names.length < 2;
}
