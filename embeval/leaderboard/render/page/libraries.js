/* The two libraries that lie in the page as text. */
async function tableLibrary() {
  const text = document.getElementById("table-library").textContent;
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const library = await import(address);
  URL.revokeObjectURL(address);
  return library.default;
}

/* Run by its hash, once; it takes longer to start than all the rest of the page. */
let startedCharts = null;
function chartLibrary() {
  if (startedCharts === null) {
    const script = document.createElement("script");
    script.textContent = document.getElementById("charts-library").textContent;
    document.head.append(script);
    startedCharts = window.Plotly;
  }
  return startedCharts;
}
