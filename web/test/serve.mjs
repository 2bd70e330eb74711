// Checks the server over a store: browse, filter, compare, history, records; and over one with hostile names.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { accessible, browser, check, drawn, end, fits, silent, thorough, walked } from "./browser.mjs";

const [url, hostile, shots] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });

/** Opens the address with the token, which must ask nobody but this server. */
async function open(address = url, options = {}) {
  const { origin } = new URL(address);
  return silent(address, new RegExp(`^(${origin}/|data:|blob:)`), options);
}
const at = (address, path) => new URL(path, address).href;

await check("the token leaves the address and the pages forbid inline script", async () => {
  const { page, done } = await open();
  assert.equal(page.url(), at(url, "/"));
  const answer = await page.reload();
  assert.match(answer.headers()["content-security-policy"], /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.equal(answer.headers()["cache-control"], "no-store");
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "globalThis.ran = true";
    document.body.append(script);
    return globalThis.ran === true;
  });
  assert.equal(ran, false);
  await page.context().close();
  void done;
});

await check("without the token nothing is told", async () => {
  const context = await browser.newContext();
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  for (const path of ["/", "/records", "/assets/bundle.js"]) assert.equal((await page.goto(at(url, path))).status(), 403);
  await context.close();
});

await check("the first page has a card for each campaign: what it asks, what came out, on the scale of its own page", async () => {
  const { page, done } = await open(url, { viewport: { width: 1440, height: 900 } });
  const cards = page.locator("section.campaign");
  assert.equal(await cards.count(), 1);
  const card = cards.first();
  const text = (await card.textContent()).replace(/\s+/g, " ");
  for (const wanted of [/^ ?kernels done/, /6\.12\.0 against 6\.1\.0/, /smooth-sin-random, contswap \(2 cells\)/, /2026-09-21 14:13 UTC/, /24 of 24 trials/, /Not decided/, /inconclusive/]) assert.match(text, wanted);
  await page.screenshot({ path: `${shots}/home.png` });
  // Where an interval begins and ends, as a share of the width between the pads.
  const bars = (selector) => page.locator(`${selector} svg.strip`).evaluateAll((all) => all.map((svg) => {
    const { width } = svg.viewBox.baseVal;
    const places = [...svg.querySelectorAll(".end")].map((end) => (Number(/M([-\d.]+)/.exec(end.getAttribute("d"))[1]) - 22) / (width - 44));
    return [svg.getAttribute("aria-label"), ...places];
  }));
  const small = await bars(".small-forest");
  await card.getByRole("link", { name: "kernels" }).click();
  await drawn(page);
  const large = await bars("table.forest");
  assert.equal(small.length, large.length);
  assert.ok(small.length >= 3);
  small.forEach(([label, ...places], at) => {
    assert.equal(label, large[at][0]);
    assert.equal(places.length, large[at].length - 1, label);
    places.forEach((place, end) => assert.ok(Math.abs(place - large[at][end + 1]) < 1 / 176, label));
  });
  await done();
});

await check("records are filtered, and any two are compared", async () => {
  const { page, done } = await open();
  await page.getByRole("link", { name: "Records", exact: true }).click();
  assert.match(await page.locator("main").textContent(), /116 records fit/);
  await page.getByLabel("Scenario").fill("contswap");
  await page.getByRole("button", { name: "Filter" }).click();
  assert.match(await page.locator("main").textContent(), /12 records fit/);
  await page.getByLabel("State").selectOption("invalid");
  await page.getByRole("button", { name: "Filter" }).click();
  assert.match(await page.locator("main").textContent(), /2 records fit/);
  await page.goto(at(url, "/records?scenario=smooth-sin-random"));
  const row = (release) => page.locator("tr", { has: page.locator(`td:text-is("1")`) }).filter({ hasText: release });
  await row("6.1.0").getByLabel(/as A$/).first().check();
  await row("6.12.0").getByLabel(/as B$/).first().check();
  await page.screenshot({ path: `${shots}/records.png` });
  await page.getByRole("button", { name: "Compare B with A" }).first().click();
  await drawn(page);
  assert.ok((await page.locator("canvas.map").count()) >= 2);
  assert.match(await page.locator("#verdict").textContent(), /smooth-sin-random/);
  assert.match(await page.locator("h1").textContent(), /^6\.12\.0, seed 1 against 6\.1\.0, seed 1, smooth-sin-random/);
  await page.getByRole("link", { name: "Records" }).first().click();
  await page.getByLabel("A", { exact: true }).fill("6.1.0");
  await page.getByLabel("B", { exact: true }).fill("6.12.0");
  await page.getByRole("button", { name: "Compare B with A" }).last().click();
  await drawn(page);
  assert.match(await page.locator("h1").textContent(), /6.12.0 against 6.1.0/);
  await page.screenshot({ path: `${shots}/compare.png`, fullPage: true });
  await accessible(page);
  await done();
});

await check("a record is shown whole", async () => {
  const { page, done } = await open(`${url}`);
  await page.goto(at(url, "/records?scenario=smooth-sin-random"));
  await page.locator("th[scope=row] a").first().click();
  await drawn(page);
  assert.match(await page.locator("h1").textContent(), /^smooth-sin-random .*: 6\.(1|12)\.0, seed \d$/);
  await page.screenshot({ path: `${shots}/record.png`, fullPage: true });
  await done();
});

await thorough("a metric is followed, and two kernels are too few to say where it changed", async () => {
  const { page, done } = await open();
  await page.getByRole("link", { name: "History" }).click();
  await page.getByLabel("Metric").fill("swap-in");
  await page.getByLabel("Scenario").fill("contswap");
  await page.getByRole("button", { name: "Show" }).click();
  assert.equal(await page.locator("svg.history circle").count(), 10, "a point for each valid record");
  assert.equal(await page.locator("svg.history .change").count(), 0, "no change is drawn between so few");
  assert.match(await page.locator("main").textContent(), /2 kernels or runs are too few to find a change among/);
  await page.screenshot({ path: `${shots}/history.png`, fullPage: true });
  await accessible(page);
  await done();
});

await thorough("a change over many kernels is named by its kernel, estimates have intervals, and points lead to records", async () => {
  const { page, done } = await open();
  await page.goto(at(url, "/history?metric=access-time&scenario=linear"));
  const picture = page.locator("svg.history").first();
  assert.equal(await picture.locator("circle").count(), 56);
  assert.equal(await picture.locator(".group").count(), 14, "one estimate for each kernel");
  assert.deepEqual(await picture.locator(".changed").allTextContents(), ["6.8.0 −20.0 %"]);
  assert.equal(await page.locator("h1").textContent(), "History of access-time");
  assert.match(await page.locator("main li").first().textContent(), /^−20\.0 % from 6\.8\.0 on, p = 0\.\d+$/);
  const places = await picture.evaluate((svg) => {
    const number = (node, name) => Number(node.getAttribute(name));
    const text = (node) => node.querySelector("title").textContent;
    return {
      points: [...svg.querySelectorAll("circle")].map((c) => [text(c), number(c, "cx"), number(c, "cy"), c.closest("a").getAttribute("href")]),
      groups: [...svg.querySelectorAll(".group")].map((g) => [text(g), ...(/M[\d.]+ ([\d.]+)H/.exec(g.querySelector(".estimate").getAttribute("d")) ?? []).slice(1).map(Number)]),
      ticks: [...svg.querySelectorAll("text[text-anchor=end]")].filter((t) => t.getAttribute("dy")).map((t) => [t.textContent, number(t, "y")]),
      change: Number(/M([\d.]+)/.exec(svg.querySelector(".change").getAttribute("d"))[1]),
    };
  });
  const value = (text) => Number(/^(?:[^:]*: )?([\d.,]+) (m?s)/.exec(text)?.[1]) * (/^(?:[^:]*: )?[\d.,]+ ms/.test(text) ? 1 : 1000);
  const [[low, bottom], , [high, top]] = places.ticks.map(([text, y]) => [value(text), y]);
  const down = (v) => bottom + ((v - low) / (high - low)) * (top - bottom);
  for (const [title, , cy, href] of places.points) {
    assert.ok(Math.abs(cy - down(value(title))) <= 1, `${title} at ${cy}`);
    assert.match(href, /^\/record\/[0-9a-f]+$/);
  }
  for (const [title, y] of places.groups) assert.ok(Math.abs(y - down(value(title))) <= 1, `${title} at ${y}`);
  // The change lies between the last value of the kernel before and the first of its own.
  const of = (release) => places.points.filter(([title]) => title.includes(`, ${release},`) || title.includes(` ${release},`)).map(([, cx]) => cx);
  assert.ok(Math.max(...of("6.7.0")) < places.change && places.change < Math.min(...of("6.8.0")));
  await page.screenshot({ path: `${shots}/change.png`, fullPage: true });
  await accessible(page);
  await page.goto(at(url, places.points[0][3]));
  await drawn(page);
  assert.match(await page.locator("h1").textContent(), /^linear .*: base, seed \d$/);
  await done();
});

for (const [name, options] of [["light", {}], ["dark", { colorScheme: "dark" }], ["400px", { viewport: { width: 400, height: 800 } }]]) {
  await thorough(`${name}: every page fits, and axe finds nothing`, async () => {
    const { page, done } = await open(url, options);
    for (const path of ["/", "/records", "/history?metric=swap-in&scenario=contswap", "/compare?a=6.1.0&b=6.12.0"]) {
      await page.goto(at(url, path));
      if (path.startsWith("/compare")) await drawn(page);
      await fits(page);
      await accessible(page);
      await page.screenshot({ path: `${shots}/${name}-${path.slice(1, 6) || "home"}.png` });
    }
    if (name === "dark") assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(20, 24, 29)");
    await done();
  });
}

await thorough("the keyboard reaches every control", async () => {
  const { page, done } = await open();
  await page.goto(at(url, "/records?scenario=contswap&variant=6.1.0&state=invalid"));
  await walked(page);
  await done();
});

await check("hostile names are text on every page", async () => {
  const { page, done } = await open(hostile);
  await page.goto(at(hostile, "/records"));
  assert.match(await page.locator("td", { hasText: "<img src=x" }).first().textContent(), /^<img src=x onerror=/);
  const record = await page.locator("th[scope=row] a").first().getAttribute("href");
  for (const path of ["/", record, "/compare?a=6.1.0&b=6.12.0", "/history?metric=%3Cimg", "/records?scenario=%22%3E%3Cb%3E", "/record/%3Cb%3E", "/compare?a=%3Cb%3E&b=%3Cb%3E"]) {
    const known = path === record || path.startsWith("/compare?a=6") || path.startsWith("/records") || path === "/" || path.startsWith("/history");
    const answer = await page.goto(at(hostile, path));
    if (!known) assert.equal(answer.status(), 404, path);
    assert.notEqual(await page.title(), "owned");
    assert.equal(await page.locator("main img, main b, main i, svg[onload]").count(), 0, path);
  }
  const { page: list } = { page };
  await list.goto(at(hostile, "/records"));
  await list.screenshot({ path: `${shots}/hostile.png` });
  await page.context().close();
  void done;
});

await end();
