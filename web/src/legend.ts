// Legends above drawings, and names on coloured areas.

/** Width of a letter. */
export const LETTER = 6.6;

/** What a name takes in a legend, with its colour before it. */
export const space = (name: string): number => 14 + name.length * LETTER + 18;

/** Names in as many lines as their width needs. */
export function legendOf(names: string[], width: number): string[][] {
  const out: string[][] = [];
  let x = Infinity;
  for (const name of names) {
    if (x + space(name) > width) {
      out.push([]);
      x = 4;
    }
    out[out.length - 1]!.push(name);
    x += space(name);
  }
  return out;
}

/** Black or white, whichever is read more easily on a colour (relative luminance of WCAG 2). */
export function onTop(colour: string): string {
  const channel = (at: number): number => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
  return luminance > 0.179 ? "#000000" : "#ffffff";
}
