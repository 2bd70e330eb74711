// Measures a large page: time to the first picture from the start of loading, and frames a second while zooming.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [file, shot] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
await page.goto(`file://${file}`);
await page.evaluate(() => { for (const cell of document.querySelectorAll("details.cell")) cell.open = true; });
await page.waitForFunction(() => performance.getEntriesByName("first-picture").length > 0, null, { timeout: 60_000 });
const first = await page.evaluate(() => performance.getEntriesByName("first-picture")[0].startTime);
await page.waitForFunction(() => document.documentElement.dataset.ready === "true", null, { timeout: 120_000 });
if (shot) await page.screenshot({ path: shot });
const map = page.locator("canvas.map").first();
await map.focus();

/** Frames that were drawn a second while the view is zoomed or moved once in each. */
const rate = (keys) => map.evaluate(async (canvas, keys) => {
  const frames = () => Number(canvas.dataset.frames);
  const next = () => new Promise((done) => requestAnimationFrame(done));
  const [start, from] = [performance.now(), frames()];
  for (const key of keys) {
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await next();
  }
  await next();
  return ((frames() - from) / (performance.now() - start)) * 1000;
}, keys);

const all = await rate([..."++++--------++++----".repeat(2)]);
for (let step = 0; step < 6; step++) await page.keyboard.press("+");
await page.waitForTimeout(1500);
const near = await rate(Array.from({ length: 40 }, (_, at) => (at % 2 ? "ArrowLeft" : "ArrowRight")));
console.log(`first picture after ${(first / 1000).toFixed(2)} s; ${all.toFixed(0)} frames/s zooming over all, ${near.toFixed(0)} moving among single accesses`);
await browser.close();
assert.ok(first > 0);
