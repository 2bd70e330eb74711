// A drawing as tall as its width wants that is redrawn when its width or the colours change: bars and stacks.

import { CanvasPainter, SvgPainter, type Painter } from "./paint";
import type { Redraw } from "./cell";

export class Sheet implements Redraw {
  readonly canvas = document.createElement("canvas");

  constructor(label: string, private readonly tall: (width: number) => number, private readonly paint: (painter: Painter) => void) {
    this.canvas.className = "sheet";
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${label}. The table below holds the same.`);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  draw(): void {
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    const scale = Math.min(2, devicePixelRatio || 1);
    const height = this.tall(width);
    this.canvas.style.height = `${height}px`;
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    const to = this.canvas.getContext("2d")!;
    to.setTransform(scale, 0, 0, scale, 0, 0);
    this.paint(new CanvasPainter(to, width, height));
  }

  svg(width = this.canvas.clientWidth || 900): string {
    const painter = new SvgPainter(width, this.tall(width));
    this.paint(painter);
    return painter.toString();
  }
}
