/* Starts the page: the table as soon as its data are read, then all that can be done with it. Details and the library of
   the charts come last in the page and are a large part of it. */
start();

async function start() {
  startTheme();
  const DataTable = await tableLibrary();
  // An address may ask for what takes details to show.
  if (location.hash.length > 1) await wholePage();
  readFilters();
  readChosen();
  readPicked();
  document.getElementById("controls").hidden = false;
  startTable(DataTable);
  performance.mark("the table stands");
  await wholePage();
  startViews();
  startFilters();
  startChoosing();
  startPicking();
  startComparison();
  startCharts();
  startDetail();
  // Whoever comes to another address of this page, by a link to a selection, gets what it says.
  addEventListener("hashchange", () => location.reload());
  document.documentElement.dataset.ready = "true";
}

/* Once all of the page is read and what there is of it was seen. */
async function wholePage() {
  if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done, { once: true }));
  await new Promise((done) => setTimeout(done));
}
