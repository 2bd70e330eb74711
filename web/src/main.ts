// Begins here: colours, then the figures of every cell.

import { page } from "./data";
import { CellFigures, type Redraw } from "./cell";

const drawn: Redraw[] = [];

function themes(): void {
  const button = document.getElementById("theme");
  if (!button) return;
  button.hidden = false;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = (): boolean => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const changed = (): void => {
    button.textContent = isDark() ? "Light" : "Dark";
    for (const one of drawn) one.draw();
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    changed();
  });
  system.addEventListener("change", changed);
  changed();
}

async function figures(): Promise<void> {
  const data = page();
  const section = document.getElementById("figures");
  const state = document.getElementById("figures-state");
  if (!data || !section || !state) return;
  const some = data.cells.filter((cell) => cell.traces.length + cell.tables.length + cell.histograms.length + cell.bars.length + cell.wholes.length > 0);
  if (some.length === 0) {
    state.textContent = "The records hold nothing that could be drawn.";
    return;
  }
  state.textContent = "In a figure, arrow keys move, plus and minus zoom, 0 shows all.";
  for (const cell of some) {
    const to = document.createElement("section");
    const head = document.createElement("h3");
    head.textContent = cell.label;
    to.append(head);
    section.append(to);
    const all = new CellFigures(data, cell, to);
    await all.draw();
    drawn.push(...all.all);
  }
  document.documentElement.dataset.ready = "true";
  performance.mark("figures");
}

themes();
figures().catch((error: unknown) => {
  const state = document.getElementById("figures-state");
  if (state) state.textContent = `The figures could not be drawn (${String(error)}): use a browser of 2023 or later.`;
});
