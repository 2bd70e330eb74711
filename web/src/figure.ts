// A figure on the page: title, pictures, caption, the table behind it, and what can be saved of it.

import type { Placed } from "./paint";
import { copy, csv, png, save, stacked, type Rows } from "./save";

export interface Export { name: string; head: string[]; rows: () => Rows }
/** A picture as SVG, of a width in pixels; images go to `placed` where there is one. */
export interface Pictures { svg: (width?: number, placed?: Placed[]) => string }

/** Width of a figure on paper, in CSS pixels. */
const PAPER = 700;

export class Figure {
  readonly element = document.createElement("figure");
  readonly body = document.createElement("div");
  private readonly bar = document.createElement("div");
  private readonly menu = document.createElement("div");
  private shown: Pictures[] = [];
  private readonly onPaper: HTMLElement[] = [];
  private static readonly all: Figure[] = [];

  constructor(readonly kind: string, title: string, caption: string, level = "h4") {
    this.element.className = "figure";
    this.element.dataset.kind = kind;
    const head = document.createElement(level);
    head.textContent = title;
    const text = document.createElement("figcaption");
    text.textContent = caption;
    this.bar.className = "bar";
    this.menu.className = "menu";
    const saving = document.createElement("details");
    saving.className = "save";
    const summary = document.createElement("summary");
    summary.textContent = "Save";
    saving.append(summary, this.menu);
    this.bar.append(saving);
    this.body.className = "pictures";
    this.element.append(head, text, this.body, this.bar);
    Figure.all.push(this);
  }

  button(text: string, title: string, act: () => unknown, to: HTMLElement = this.bar): void {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.title = title;
    button.addEventListener("click", () => void act());
    to.append(button);
  }

  exports(all: Export[]): void {
    for (const one of all) {
      const label = all.length > 1 ? `CSV ${one.name}` : "CSV";
      this.button(label.slice(0, 60), `The data of this figure: ${one.name}`, () => csv(`${one.name}.csv`, one.head, one.rows()), this.menu);
    }
  }

  pictures(name: string, all: Pictures[]): void {
    this.shown = all;
    this.button("SVG", "Save this figure as SVG", () => save(`${name}.svg`, [this.svg()], "image/svg+xml"), this.menu);
    this.button("PNG", "Save this figure as PNG, at twice the screen's resolution", () => png(`${name}.png`, this.svg()), this.menu);
    if (typeof ClipboardItem !== "undefined" && navigator.clipboard) {
      this.button("Copy as image", "Copy this figure as an image", () => copy(this.svg()), this.menu);
    }
  }

  /** All pictures of the figure in one drawing, below each other as they are read. */
  private svg(): string {
    return stacked(this.shown.map((one) => one.svg()));
  }

  /** Puts drawings in the place of canvases: paper has no scrolling and another width. */
  static toPaper(): void {
    for (const figure of Figure.all) {
      for (const one of figure.shown) {
        const placed: Placed[] = [];
        const parsed = new DOMParser().parseFromString(one.svg(PAPER, placed), "image/svg+xml").documentElement;
        const drawing = document.importNode(parsed, true) as unknown as SVGSVGElement;
        const { width, height } = drawing.viewBox.baseVal;
        const box = document.createElement("div");
        box.className = "paper";
        box.append(drawing);
        for (const { image, x, y, w, h } of placed) {
          Object.assign(image.style, { left: `${(x / width) * 100}%`, top: `${(y / height) * 100}%`, width: `${(w / width) * 100}%`, height: `${(h / height) * 100}%` });
          box.append(image);
        }
        figure.onPaper.push(box);
      }
      if (figure.onPaper.length > 0) {
        figure.body.hidden = true;
        figure.body.after(...figure.onPaper);
      }
    }
  }

  static fromPaper(): void {
    for (const figure of Figure.all) {
      for (const one of figure.onPaper.splice(0)) one.remove();
      figure.body.hidden = false;
    }
  }

  /** The table behind the figure. */
  table(summary: string, head: string[], rows: string[][]): void {
    const details = document.createElement("details");
    const title = document.createElement("summary");
    title.textContent = summary;
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
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
