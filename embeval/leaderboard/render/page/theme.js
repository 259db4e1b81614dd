/* Light or dark: as the machine has it, unless somebody chooses. The choice is kept where the browser keeps things. */
const THEMES = ["auto", "light", "dark"];

function startTheme() {
  const button = document.getElementById("theme");
  let theme = THEMES.includes(kept("theme")) ? kept("theme") : "auto";
  const show = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" }[theme];
  };
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    keep("theme", theme);
    show();
  });
  show();
  button.hidden = false;
}

/* A browser may refuse to keep anything for a page from a file. */
function kept(name) {
  try {
    return localStorage.getItem(`embeval ${name}`);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`embeval ${name}`, value);
  } catch {
    // It then holds until the page is closed.
  }
}
