// Checks the page that one file is: report.html and hostile.html in a folder. Prints a line for each check.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { accessible, check, drawn, end, fits, silent, walked } from "./browser.mjs";

const [dir, shots] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });

/** Opens a page that must ask for nothing beyond its own file. */
async function open(file, options = {}) {
  const opened = await silent(`file://${dir}/${file}`, /^(file|data|blob):/, options);
  await drawn(opened.page);
  return opened;
}

const kinds = (page, kind) => page.locator(`figure[data-kind="${kind}"]`);
const colours = (canvas) => canvas.evaluate((c) => {
  const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
  const seen = new Set();
  for (let at = 0; at < data.length; at += 4) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
  return seen.size;
});

await check("every canvas is drawn, and nothing is asked of the network", async () => {
  const { page, done } = await open("report.html");
  for (const kind of ["access", "pages", "uses", "age", "histogram", "swap", "attempts", "asked", "fragmentation", "bars", "processes", "time"]) {
    const figure = kinds(page, kind).first();
    await figure.scrollIntoViewIfNeeded();
    await page.waitForTimeout(400);
    const all = await figure.locator("canvas").all();
    assert.ok(all.length > 0, `${kind} has a canvas`);
    for (const canvas of all) assert.ok((await colours(canvas)) > 8, `${kind} is not blank`);
  }
  await page.screenshot({ path: `${shots}/light.png`, fullPage: true });
  await done();
});

await check("zooming shows the right number of accesses, in both linked maps", async () => {
  const { page, done } = await open("report.html");
  const figure = kinds(page, "access").first();
  const maps = figure.locator("canvas.map");
  const shown = async (at) => maps.nth(at).evaluate((c) => [c.dataset.points, c.dataset.from, c.dataset.to].map(Number));
  await figure.scrollIntoViewIfNeeded();
  await page.waitForFunction(() => [...document.querySelectorAll("figure[data-kind=access] canvas.map")].every((map) => map.dataset.points === "100000"));
  assert.deepEqual(await shown(0), [100000, 0, 100000]);
  await maps.first().focus();
  for (let step = 0; step < 9; step++) await page.keyboard.press("+");
  await page.waitForTimeout(400);
  const [points, from, to] = await shown(0);
  assert.ok(Math.abs(to - from - 100000 / 512) < 1e-6, `${from} to ${to}`);
  assert.equal(points, Math.floor(to) - Math.ceil(from));
  assert.deepEqual(await shown(1), [points, from, to], "the other variant follows");
  const linked = await kinds(page, "pages").first().locator("canvas.map").first().evaluate((c) => [c.dataset.from, c.dataset.to].map(Number));
  assert.deepEqual(linked, [from, to], "the pages follow");
  const box = await maps.first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height - 60);
  await page.waitForTimeout(200);
  assert.match(await figure.locator(".tip").first().textContent(), /^reference [\d,]+: .* \([\d,]+ ns\), page [\d,]+$/);
  await figure.screenshot({ path: `${shots}/zoomed.png` });
  await page.keyboard.press("0");
  await page.waitForTimeout(300);
  assert.deepEqual(await shown(0), [100000, 0, 100000]);
  await done();
});

async function saved(page, act) {
  const [download] = await Promise.all([page.waitForEvent("download"), act()]);
  return readFileSync(await download.path(), "utf8");
}

await check("downloads hold what the records hold", async () => {
  const { page, done } = await open("report.html");
  const figure = kinds(page, "access").first();
  const text = await saved(page, () => figure.getByRole("button", { name: /^CSV/ }).first().click());
  const lines = text.trimEnd().split("\r\n");
  assert.equal(lines.shift(), "reference,page,time_ns");
  const wanted = new Map(readFileSync(`${dir}/accesses.txt`, "utf8").trimEnd().split("\n").map((line) => line.split("=")));
  assert.equal(lines.length, 100000);
  let [pages, times] = [0, 0];
  for (const line of lines) {
    const [, page, time] = line.split(",").map(Number);
    pages += page;
    times += time;
  }
  assert.equal(String(pages), wanted.get("pages"));
  assert.equal(String(times), wanted.get("times"));
  assert.equal(lines[0], wanted.get("first"));
  assert.equal(lines.at(-1), wanted.get("last"));
  const svg = await saved(page, () => figure.getByRole("button", { name: /^SVG/ }).first().click());
  assert.match(svg, /^<svg [^]*<image [^]*<\/svg>\n$/);
  const lineSvg = await saved(page, () => kinds(page, "histogram").first().getByRole("button", { name: /^SVG/ }).first().click());
  assert.match(lineSvg, /<polyline/);
  await done();
});

await check("the keyboard reaches every control", async () => {
  const { page, done } = await open("report.html");
  await walked(page);
  await done();
});

for (const [name, file, options] of [
  ["light", "report.html", {}],
  ["dark", "report.html", { colorScheme: "dark" }],
  ["400 px", "report.html", { viewport: { width: 400, height: 800 } }],
]) {
  await check(`${name}: axe finds nothing serious, nothing is wider than the page`, async () => {
    const { page, done } = await open(file, options);
    await page.screenshot({ path: `${shots}/${name.replace(" ", "")}.png`, fullPage: true });
    await fits(page);
    if (name === "dark") {
      const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(paper, "rgb(20, 24, 29)");
    }
    await accessible(page);
    await done();
  });
}

await check("hostile names and a megabyte of text are text", async () => {
  const { page, done } = await open("hostile.html");
  // The driver waits for a whole page; nothing in it has run or become an element.
  assert.notEqual(await page.title(), "owned");
  assert.equal(await page.locator("main img, main h3 svg, main b, main i, svg[onload]").count(), 0);
  assert.match(await page.locator("th", { hasText: "<img src=x" }).first().textContent(), /^<img src=x onerror=/);
  assert.ok((await page.content()).length < 3_000_000);
  await page.screenshot({ path: `${shots}/hostile.png`, fullPage: true });
  await done();
});

await check("the policy of the page forbids other scripts", async () => {
  const { page } = await open("report.html");
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "globalThis.ran = true";
    document.body.append(script);
    return globalThis.ran === true;
  });
  assert.equal(ran, false);
});

await end();
