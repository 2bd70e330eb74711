// Checks pages of records that guests made: small.html (a campaign) and record.html (one trial).
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { accessible, check, drawn, end, fits, menu, saved, silent, unreadable } from "./browser.mjs";

const [dir, shots] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });

for (const file of ["small", "record"]) {
  await check(`${file}: what guests measured is drawn`, async () => {
    const { page, done } = await silent(`file://${dir}/${file}.html`, /^(file|data|blob):/);
    await drawn(page);
    await page.evaluate(() => { for (const cell of document.querySelectorAll("details.cell")) cell.open = true; });
    const maps = page.locator("figure[data-kind=access] canvas.map");
    await maps.first().scrollIntoViewIfNeeded();
    await page.waitForFunction(() => document.querySelector("figure[data-kind=access] canvas.map").dataset.points === "5000");
    assert.equal(await maps.count(), file === "small" ? 2 : 1);
    // What was observed says what its rows mean, where the pointer rests and at the end of the page.
    const rows = page.locator(".reclaim table tbody th[scope=row]");
    const titles = await rows.evaluateAll((all) => all.filter((row) => row.closest("table").parentElement.getAttribute("aria-label") === "Reclaim table").map((row) => row.title));
    if (file === "small") assert.ok(titles.length > 30, `${titles.length} rows`);
    assert.ok(titles.every((title) => title.length > 20), `${titles}`);
    assert.equal(await page.locator("#rows dt").count(), file === "small" ? titles.length : await page.locator("#rows dt").count());
    await fits(page);
    await accessible(page);
    await page.screenshot({ path: `${shots}/${file}.png`, fullPage: true });
    await done();
  });
}

await check("what memory held is drawn, and its kinds add up to the same at all times", async () => {
  const { page, done } = await silent(`file://${dir}/small.html`, /^(file|data|blob):/);
  await drawn(page);
  await page.evaluate(() => { for (const cell of document.querySelectorAll("details.cell")) cell.open = true; });
  const figure = page.locator("figure[data-kind=makeup]").first();
  await figure.scrollIntoViewIfNeeded();
  const [first, ...lines] = (await saved(page, () => menu(figure, /^CSV/))).trim().split("\n").map((line) => line.trim());
  // Names with a comma are quoted.
  const head = first.match(/"[^"]*"|[^,]+/g).map((name) => name.replaceAll('"', ""));
  const kinds = head.filter((name) => !["time", "swap used", "dirty or being written"].includes(name));
  assert.ok(lines.length > 2 && head[0] === "time" && kinds.includes("anonymous, active") && kinds.includes("free"), head.join(";"));
  const sums = lines.map((line) => line.split(",").slice(1, 1 + kinds.length).reduce((sum, value) => sum + Number(value), 0));
  assert.ok(sums.every((sum) => sum === sums[0] && sum > 0), `${sums}`);
  const svg = await saved(page, () => menu(figure, /^SVG/));
  for (const kind of kinds) assert.ok(svg.includes(`>${kind}</text>`), kind);
  await done();
});

await check("where faults were lost is drawn, and its CSV adds up to what its table says", async () => {
  const { page, done } = await silent(`file://${dir}/small.html`, /^(file|data|blob):/);
  await drawn(page);
  await page.evaluate(() => { for (const cell of document.querySelectorAll("details.cell")) cell.open = true; });
  const figure = page.locator("figure[data-kind=headroom]").first();
  await figure.scrollIntoViewIfNeeded();
  const rows = await figure.locator("table tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent.replace(/,/g, ""))));
  assert.equal(rows.length, 2);
  const csv = (await saved(page, () => menu(figure, /^CSV/))).trim().split("\n").map((line) => line.split(","));
  const [head, ...lines] = csv;
  const sum = (name) => lines.reduce((all, line) => all + Number(line[head.indexOf(name)]), 0);
  assert.deepEqual([String(lines.length), ...["faults", "opt", "lru"].map((name) => String(sum(name)))], rows[0].slice(1));
  assert.ok(sum("faults") > 0 && sum("opt") <= Math.min(sum("faults"), sum("lru")), "nothing beats OPT");
  // A curve for each variant, OPT and LRU; beyond OPT none for OPT itself. The last point is the sum.
  const svg = await saved(page, () => menu(figure, /^SVG/));
  const curves = [...svg.matchAll(/<polyline [^>]*points="([^"]*)"[^>]*stroke-width="1.6"|<polyline [^>]*stroke-width="1.6"[^>]*points="([^"]*)"/g)];
  assert.equal(curves.length, 4 + 3, svg.slice(0, 1500));
  await done();
});

for (const [name, options] of [["1280 px", { viewport: { width: 1280, height: 900 } }], ["500 px", { viewport: { width: 500, height: 900 } }]]) await check(`${name}: the flame graph is searched and zoomed, and its stacks add up to the elapsed times`, async () => {
  const { page, done } = await silent(`file://${dir}/small.html`, /^(file|data|blob):/, options);
  await drawn(page);
  await page.evaluate(() => { for (const cell of document.querySelectorAll("details.cell")) cell.open = true; });
  const figure = page.locator("figure[data-kind=flame]").first();
  await figure.scrollIntoViewIfNeeded();
  const frames = figure.locator(".frame");
  const named = (name) => frames.filter({ hasText: new RegExp(`^${name}$`) }).first();
  const width = async (frame) => (await frame.boundingBox()).width;
  const [whole, fault] = [await width(named("all")), await width(named("exc_page_fault"))];
  assert.ok(fault > whole * 0.1 && fault < whole, `${fault} of ${whole}`);
  assert.equal(await named("waits").count() + await named("workload").count() >= 1, true);
  // What is searched for is counted once, also where it calls itself.
  await figure.getByRole("searchbox").fill("exc_page_fault");
  const found = await figure.locator(".flame-head span").textContent();
  assert.match(found, /^found: .* \([\d.]+ %\)$/);
  const share = Number(/\(([\d.]+) %/.exec(found)[1]);
  assert.ok(share > 10 && share < 100, found);
  await named("exc_page_fault").click();
  assert.ok(Math.abs(await width(named("exc_page_fault")) - whole) < 2, "it takes the whole width");
  await figure.getByRole("button", { name: "All", exact: true }).click();
  assert.ok(Math.abs(await width(named("exc_page_fault")) - fault) < 2, "all is shown again");
  // The difference is the first picture. The plain ones have other colours and widths.
  const colour = () => named("workload").evaluate((one) => getComputedStyle(one).backgroundColor);
  const before = await colour();
  await figure.getByRole("button", { name: /less/ }).waitFor();
  await figure.getByRole("button", { name: "lru_gen/enabled=0", exact: true }).click();
  assert.notEqual(await colour(), before);
  const [head, ...lines] = (await saved(page, () => menu(figure, /^CSV/))).trim().split("\n").map((line) => line.trim().split(","));
  assert.equal(head.length, 3);
  const told = await figure.locator(".told").textContent();
  for (const side of [1, 2]) {
    const sum = lines.reduce((all, line) => all + Number(line[side]), 0);
    const shown = [...told.matchAll(/([\d.,]+) (ms|s) \(100 %\)/g)][side - 1];
    const nanos = Number(shown[1].replaceAll(",", "")) * (shown[2] === "s" ? 1e9 : 1e6);
    assert.ok(Math.abs(sum / nanos - 1) < 0.01, `${sum} of ${told}`);
  }
  await fits(page);
  await figure.screenshot({ path: `${shots}/flame-${name.replace(" ", "")}.png` });
  await done();
});

for (const [name, options] of [["1280 px", { viewport: { width: 1280, height: 900 } }], ["500 px", { viewport: { width: 500, height: 900 } }]]) await check(`${name}: the map of recorded references has all references and pages, and zooms`, async () => {
  const { page, done } = await silent(`file://${dir}/small.html`, /^(file|data|blob):/, options);
  await drawn(page);
  await page.evaluate(() => { for (const cell of document.querySelectorAll("details.cell")) cell.open = true; });
  const figure = page.locator("figure[data-kind=heat]").first();
  await figure.scrollIntoViewIfNeeded();
  const map = figure.locator("canvas.map").first();
  await page.waitForFunction(() => Number(document.querySelector("figure[data-kind=heat] canvas.map").dataset.points) > 0);
  const points = () => map.evaluate((canvas) => Number(canvas.dataset.points));
  const rows = (await figure.locator("table tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent.replace(/,/g, "")))))
    .filter(([variant]) => variant === "lru_gen/enabled=0");
  const all = await points();
  assert.equal(rows.reduce((sum, row) => sum + Number(row[8]), 0), all, "the ranges have all references");
  const used = rows.reduce((sum, row) => sum + Number(row[7]), 0);
  assert.equal(Number(rows.at(-1)[2]), used, "the ranges fill the map");
  const csv = (await saved(page, () => menu(figure, /^CSV/))).trim().split("\n").slice(1).map((line) => line.trim().split(","));
  const sizes = new Map(csv.map(([, address, size]) => [address, Number(size)]));
  assert.equal([...sizes.values()].reduce((a, b) => a + b, 0), used, "every page is in a row that was used");
  assert.ok(csv.every(([, , size, pages]) => Number(pages) > 0 && Number(pages) <= Number(size)));
  await figure.getByRole("button", { name: "Zoom in" }).click();
  await page.waitForTimeout(300);
  const half = await points();
  assert.ok(half > 0 && half < all, `${half} of ${all}`);
  const box = await map.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForTimeout(200);
  assert.match(await figure.locator(".tip").first().textContent(), /references to [\d,]+ pages within/);
  await fits(page);
  await figure.screenshot({ path: `${shots}/heat-${name.replace(" ", "")}.png` });
  await done();
});

for (const [name, options] of [["1200 px", {}], ["400 px", { viewport: { width: 400, height: 800 } }]]) await check(`${name}: the figures of an observed campaign have no name that is cut or lies over another`, async () => {
  const { page, done } = await silent(`file://${dir}/small.html`, /^(file|data|blob):/, options);
  await drawn(page);
  await page.evaluate(() => { for (const cell of document.querySelectorAll("details.cell")) cell.open = true; });
  await page.waitForTimeout(300);
  let seen = 0;
  for (const figure of await page.locator("figure[data-kind]").all()) {
    if ((await figure.getByRole("button", { name: /^SVG/, includeHidden: true }).count()) === 0) continue;
    await figure.scrollIntoViewIfNeeded();
    await page.waitForTimeout(200);
    const svg = await saved(page, () => menu(figure, /^SVG/));
    assert.deepEqual(await unreadable(page, svg), [], await figure.getAttribute("data-kind"));
    // Each variant's own time went somewhere: its bars are named in full.
    if (svg.includes("main process")) {
      for (const variant of [0, 7]) assert.ok(svg.includes(`lru_gen/enabled=${variant}: main process`) || svg.includes(`>lru_gen/enabled=${variant}<`), svg.slice(0, 2000));
    }
    seen++;
  }
  assert.ok(seen >= 5, `${seen} figures`);
  await done();
});

await end();
