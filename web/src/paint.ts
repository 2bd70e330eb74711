// One way to draw on a canvas and into SVG, so that a saved figure is the figure that is seen.

export interface Painter {
  readonly width: number;
  readonly height: number;
  rect(x: number, y: number, w: number, h: number, colour: string): void;
  line(points: [number, number][], colour: string, width?: number, dash?: number[]): void;
  /** A filled shape, see-through to `alpha`. */
  area(points: [number, number][], colour: string, alpha: number): void;
  text(text: string, x: number, y: number, colour: string, align?: "start" | "middle" | "end", turned?: boolean): void;
  image(image: HTMLCanvasElement, x: number, y: number, w: number, h: number): void;
}

export const FONT = "12px system-ui, sans-serif";

export class CanvasPainter implements Painter {
  constructor(private readonly to: CanvasRenderingContext2D, readonly width: number, readonly height: number) {}

  rect(x: number, y: number, w: number, h: number, colour: string): void {
    this.to.fillStyle = colour;
    this.to.fillRect(x, y, w, h);
  }

  line(points: [number, number][], colour: string, width = 1, dash: number[] = []): void {
    this.to.setLineDash(dash);
    this.to.strokeStyle = colour;
    this.to.lineWidth = width;
    this.to.beginPath();
    points.forEach(([x, y], at) => (at === 0 ? this.to.moveTo(x, y) : this.to.lineTo(x, y)));
    this.to.stroke();
  }

  area(points: [number, number][], colour: string, alpha: number): void {
    this.to.save();
    this.to.globalAlpha = alpha;
    this.to.fillStyle = colour;
    this.to.beginPath();
    points.forEach(([x, y], at) => (at === 0 ? this.to.moveTo(x, y) : this.to.lineTo(x, y)));
    this.to.fill();
    this.to.restore();
  }

  text(text: string, x: number, y: number, colour: string, align: "start" | "middle" | "end" = "start", turned = false): void {
    this.to.save();
    this.to.fillStyle = colour;
    this.to.font = FONT;
    this.to.textAlign = align === "middle" ? "center" : align;
    this.to.translate(x, y);
    if (turned) this.to.rotate(-Math.PI / 2);
    this.to.fillText(text, 0, 0);
    this.to.restore();
  }

  image(image: HTMLCanvasElement, x: number, y: number, w: number, h: number): void {
    this.to.drawImage(image, x, y, w, h);
  }
}

/** An image of a drawing that stays a canvas, and where it lies. */
export interface Placed { image: HTMLCanvasElement; x: number; y: number; w: number; h: number }

export class SvgPainter implements Painter {
  private parts: string[] = [];
  /** Images go to `placed` where there is one, else into the drawing. */
  constructor(readonly width: number, readonly height: number, private readonly placed?: Placed[]) {}

  private add(name: string, attributes: Record<string, string | number>, text = ""): void {
    const all = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(String(value))}"`);
    this.parts.push(`<${name}${all.join("")}>${escape(text)}</${name}>`);
  }

  rect(x: number, y: number, w: number, h: number, colour: string): void {
    this.add("rect", { x: round(x), y: round(y), width: round(w), height: round(h), fill: colour });
  }

  line(points: [number, number][], colour: string, width = 1, dash: number[] = []): void {
    const path = points.map(([x, y]) => `${round(x)},${round(y)}`).join(" ");
    const dashed: Record<string, string> = dash.length > 0 ? { "stroke-dasharray": dash.join(" ") } : {};
    this.add("polyline", { points: path, fill: "none", stroke: colour, "stroke-width": width, ...dashed });
  }

  area(points: [number, number][], colour: string, alpha: number): void {
    this.add("polygon", { points: points.map(([x, y]) => `${round(x)},${round(y)}`).join(" "), fill: colour, "fill-opacity": alpha });
  }

  text(text: string, x: number, y: number, colour: string, align: "start" | "middle" | "end" = "start", turned = false): void {
    const attributes: Record<string, string | number> = {
      x: round(x), y: round(y), fill: colour, "text-anchor": align, "font-size": 12, "font-family": "system-ui, sans-serif",
    };
    if (turned) attributes.transform = `rotate(-90 ${round(x)} ${round(y)})`;
    this.add("text", attributes, text);
  }

  image(image: HTMLCanvasElement, x: number, y: number, w: number, h: number): void {
    if (this.placed) {
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [image.width, image.height];
      copy.getContext("2d")!.drawImage(image, 0, 0);
      this.placed.push({ image: copy, x, y, w, h });
      return;
    }
    this.add("image", { x: round(x), y: round(y), width: round(w), height: round(h), href: image.toDataURL("image/png") });
  }

  toString(): string {
    const { width, height } = this;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${this.parts.join("")}</svg>\n`;
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b-\u001f]/g, "\ufffd");
}
