// A figure on the page: title, pictures, caption, the table behind it, and what can be saved of it.

import { csv, png, save, type Rows } from "./save";

export interface Export { name: string; head: string[]; rows: () => Rows }
export interface Pictures { svg: () => string; canvas: () => HTMLCanvasElement | null }

export class Figure {
  readonly element = document.createElement("figure");
  readonly body = document.createElement("div");
  private readonly bar = document.createElement("div");

  constructor(readonly kind: string, title: string, caption: string, level = "h4") {
    this.element.className = "figure";
    this.element.dataset.kind = kind;
    const head = document.createElement(level);
    head.textContent = title;
    const text = document.createElement("figcaption");
    text.textContent = caption;
    this.bar.className = "bar";
    this.body.className = "pictures";
    this.element.append(head, text, this.body, this.bar);
  }

  button(text: string, title: string, act: () => unknown): void {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.title = title;
    button.addEventListener("click", () => void act());
    this.bar.append(button);
  }

  exports(all: Export[]): void {
    for (const one of all) {
      const label = all.length > 1 ? `CSV ${one.name}` : "CSV";
      this.button(label.slice(0, 60), `The data of this figure: ${one.name}`, () => csv(`${one.name}.csv`, one.head, one.rows()));
    }
  }

  pictures(name: string, all: Pictures[]): void {
    all.forEach((one, at) => {
      const number = all.length > 1 ? ` ${at + 1}` : "";
      this.button(`SVG${number}`, "Save this figure as SVG", () => save(`${name}${number}.svg`, [one.svg()], "image/svg+xml"));
      this.button(`PNG${number}`, "Save this figure as PNG", () => {
        const canvas = one.canvas();
        return canvas ? png(`${name}${number}.png`, canvas) : null;
      });
    });
  }

  /** The table behind the figure. */
  table(summary: string, head: string[], rows: string[][]): void {
    const details = document.createElement("details");
    const title = document.createElement("summary");
    title.textContent = summary;
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", summary);
    const table = document.createElement("table");
    const top = table.createTHead().insertRow();
    for (const text of head) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = text;
      top.append(cell);
    }
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((text, at) => {
        const cell = document.createElement(at === 0 ? "th" : "td");
        if (at === 0) (cell as HTMLTableCellElement).scope = "row";
        else cell.className = "number";
        cell.textContent = text;
        line.append(cell);
      });
    }
    scroll.append(table);
    details.append(title, scroll);
    this.element.append(details);
  }
}
