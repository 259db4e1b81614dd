/* Starts the page: the table first, charts once it stands. */
tableLibrary().then((DataTable) => {
  new DataTable("#board", {
    data: board.models.map((model) => [model.standing.rank, model.label, model.standing.mean_task]),
    columns: [
      { title: "Rank" },
      { title: "Model", render: DataTable.render.text() },
      { title: "Mean" },
    ],
  });
});
