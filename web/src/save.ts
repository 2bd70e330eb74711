// Saving: tables as CSV, figures as SVG and PNG. Nothing leaves the page but by the reader's own hand.

export function save(name: string, content: BlobPart[], type: string): void {
  const url = URL.createObjectURL(new Blob(content, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 120);
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A cell of CSV (RFC 4180); what a spreadsheet would run as a formula gets an apostrophe before it. */
export function cell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export type Rows = AsyncIterable<(string | number | null)[]> | Iterable<(string | number | null)[]>;

/** Writes rows in parts, so that millions of them do not become one text. */
export async function csv(name: string, head: string[], rows: Rows): Promise<void> {
  const parts: string[] = [];
  let part = `${head.map(cell).join(",")}\r\n`;
  for await (const row of rows) {
    part += `${row.map(cell).join(",")}\r\n`;
    if (part.length > 1 << 20) {
      parts.push(part);
      part = "";
    }
  }
  parts.push(part);
  save(name, parts, "text/csv");
}

/** Drawings below each other in one. */
export function stacked(all: string[]): string {
  if (all.length === 1) return all[0]!;
  const size = (svg: string, name: string): number => Number(new RegExp(` ${name}="([\\d.]+)"`).exec(svg)?.[1] ?? 0);
  const width = Math.max(...all.map((svg) => size(svg, "width")));
  let height = 0;
  const parts = all.map((svg) => {
    const part = svg.trimEnd().replace("<svg ", `<svg x="0" y="${height}" `);
    height += size(svg, "height");
    return part;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join("")}</svg>\n`;
}

/** A drawing as an image, at twice the screen's resolution. */
async function raster(svg: string): Promise<Blob | null> {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const scale = 2 * Math.max(1, devicePixelRatio || 1);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.round(image.naturalWidth * scale), Math.round(image.naturalHeight * scale)];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

export async function png(name: string, svg: string): Promise<void> {
  const blob = await raster(svg);
  if (blob) save(name, [blob], "image/png");
}

export async function copy(svg: string): Promise<void> {
  const blob = await raster(svg);
  if (blob) await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
}
