/* What the page shows now. Whoever changes it calls changed(); whoever draws listens. */
const page = {
  chosen: board.columns.map((_, place) => place), // columns shown and, where they count, ranked by
  visible: board.models.map((_, place) => place), // models that the filters leave, in the order of the table
  standings: board.models.map((model) => model.standing), // by place of the model, for the chosen columns
  picked: [], // places of the models picked for comparison, two at most
  listeners: [],

  listen(listener) {
    this.listeners.push(listener);
  },

  changed() {
    for (const listener of this.listeners) listener();
  },
};
