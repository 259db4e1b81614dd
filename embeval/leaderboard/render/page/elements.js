/* Elements made by hand: whatever comes from data becomes text, never markup. */

/* An element; attributes null or false are left out, true ones are empty; children are texts or nodes, null is none. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

/* A text from data, kept from turning the direction of what stands beside it. */
function dataText(text, attributes = {}) {
  return element("bdi", attributes, visibleText(text));
}

/* U+FFFD for characters that steer or aren't shown, as embeval/core/characters.py has it. */
function visibleText(text) {
  return String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]/gu, "\ufffd");
}

/* For those who hear the page: told once, when it changes. */
function announce(sentence) {
  document.getElementById("announcement").textContent = sentence;
}
