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

export async function png(name: string, canvas: HTMLCanvasElement): Promise<void> {
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (blob) save(name, [blob], "image/png");
}
