// Begins here: colours, then the figures of every cell.

import { page } from "./data";
import { CellFigures, type Redraw } from "./cell";
import { Figure } from "./figure";

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

const cells = (): HTMLDetailsElement[] => [...document.querySelectorAll<HTMLDetailsElement>("details.cell")];

/** Opens what an address within the page leads to. */
function follow(): void {
  const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  if (target instanceof HTMLDetailsElement && target.classList.contains("cell")) {
    target.open = true;
    target.scrollIntoView();
  }
}

/** All cells open, and figures as drawings, while the page is on paper. */
function paper(): void {
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    opened = cells().filter((cell) => !cell.open);
    for (const cell of opened) cell.open = true;
    Figure.toPaper();
  });
  addEventListener("afterprint", () => {
    Figure.fromPaper();
    for (const cell of opened) cell.open = false;
  });
}

/** A button that opens all cells, and then closes them. */
function openAll(): void {
  const all = cells();
  const title = document.getElementById("cells-title");
  if (all.length < 2 || !title) return;
  const button = document.createElement("button");
  button.type = "button";
  button.id = "open-all";
  const named = (): void => { button.textContent = all.every((cell) => cell.open) ? "Close all" : "Open all"; };
  button.addEventListener("click", () => {
    const open = !all.every((cell) => cell.open);
    for (const cell of all) cell.open = open;
    named();
  });
  named();
  title.after(button);
}

async function figures(): Promise<void> {
  const data = page();
  const state = document.getElementById("figures-state");
  if (!data || !state) return;
  const some = data.cells.filter((cell) => cell.traces.length + cell.tables.length + cell.makeups.length + cell.histograms.length + cell.bars.length + cell.wholes.length + cell.flames.length + cell.heats.length > 0);
  state.textContent = some.length === 0
    ? "The records hold nothing that could be drawn."
    : "A cell opens to its tables, figures and what reclaim did. In a figure, arrow keys move, plus and minus zoom, 0 shows all.";
  for (const cell of some) {
    const to = document.getElementById(`figures-${cell.place}`);
    if (!to) continue;
    const all = new CellFigures(data, cell, to);
    await all.draw();
    drawn.push(...all.all);
  }
  document.documentElement.dataset.ready = "true";
  performance.mark("figures");
  // What is out of sight is loaded when all else is there, so that whoever prints has it.
  for (const one of drawn) await one.prepare?.();
  document.documentElement.dataset.prepared = "true";
}

themes();
openAll();
paper();
follow();
addEventListener("hashchange", follow);
figures().catch((error: unknown) => {
  const state = document.getElementById("figures-state");
  if (state) state.textContent = `The figures could not be drawn (${String(error)}): use a browser of 2023 or later.`;
});
