/* Starts the page: the table first; pictures follow once somebody comes to them. */
startTheme();
startPicking();
tableLibrary().then((DataTable) => {
  startChoosingAndFilters();
  startTable(DataTable);
  startComparison();
  startCharts();
  startDetail();
  document.documentElement.dataset.ready = "true";
});

function startChoosingAndFilters() {
  startFilters();
  startChoosing();
  document.getElementById("controls").hidden = false;
}
