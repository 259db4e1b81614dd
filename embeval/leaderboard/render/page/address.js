/* What is chosen stands in the page's address, behind the #, so that it can be sent to somebody. What can't be
   understood there is left alone and changes nothing. */
const address = {
  text: location.hash.slice(1),

  /* The first value of a name, or null. */
  get(name) {
    return this.read().get(name);
  },

  getAll(name) {
    return this.read().getAll(name);
  },

  /* Sets names to texts, or lists of them; null and empty ones are taken out. */
  set(changes) {
    const found = this.read();
    for (const [name, value] of Object.entries(changes)) {
      found.delete(name);
      for (const each of [value ?? []].flat()) if (each !== "") found.append(name, each);
    }
    const text = found.toString();
    if (text === this.read().toString()) return;
    this.text = text;
    replaceAddress(text);
  },

  read() {
    return new URLSearchParams(this.text);
  },
};

/* Browsers refuse it to pages that change their address many times a second, as by holding down a key. */
function replaceAddress(text) {
  try {
    history.replaceState(null, "", `#${text}`);
  } catch {
    // The page shows what was chosen all the same, and the next change takes this one along.
  }
}
