/* Starts the page: the table first; pictures follow once somebody comes to them. */
startTheme();
startPicking();
tableLibrary().then((DataTable) => {
  startChoosingAndFilters();
  startTable(DataTable);
  startComparison();
  startCharts();
  startDetail();
  // Whoever comes to another address of this page, by a link to a selection, gets what it says.
  addEventListener("hashchange", () => location.reload());
  document.documentElement.dataset.ready = "true";
});

function startChoosingAndFilters() {
  startFilters();
  startChoosing();
  document.getElementById("controls").hidden = false;
}
