// What all checks share: a browser that asks nobody, a line for each check, axe.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// Playwright gives each start a profile of its own.
export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
let failed = 0;

/** Opens a page that must stay silent: no word on the console, no dialog, no request beyond what `allowed` matches. */
export async function silent(url, allowed, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, acceptDownloads: true, ...options });
  // Against a browser that hangs; a busy machine may need long for a page.
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  const noise = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) noise.push(message.text()); });
  page.on("pageerror", (error) => noise.push(String(error)));
  page.on("dialog", (dialog) => { noise.push("a dialog was opened"); void dialog.dismiss(); });
  page.on("request", (request) => { if (!allowed.test(request.url())) noise.push(request.url()); });
  await page.goto(url);
  return { page, noise, done: async () => { assert.deepEqual(noise, []); await context.close(); } };
}

/** Waits until all figures are there. */
export async function drawn(page) {
  await page.waitForFunction(() => document.documentElement.dataset.ready === "true", null, { timeout: 60_000 });
  await page.waitForTimeout(300);
}

export async function check(name, work) {
  const began = Date.now();
  try {
    await work();
    console.log(`ok   ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}\n${error.stack}`);
  }
}

/** A check that takes long and is made by `make test-all` only. */
export const thorough = process.env.PAGETIDE_TEST_PAGES === "all" ? check : async () => {};

/** What axe finds. */
export async function accessible(page) {
  // By the page's own policy no script may be added; the driver's world is not bound by it.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run()).violations
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 120)} ${node.failureSummary?.split("\n")[1] ?? ""}`).join(" | ")}`));
  assert.deepEqual(found, []);
}

export async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${wide} px too wide`);
}

/** Walks through the page with the Tab key: every control is reached. */
export async function walked(page) {
  const wanted = await page.locator("a[href]:visible, button:visible, summary:visible, input:visible:not([type=radio]), select:visible, canvas.map:visible, [tabindex='0']:visible").count();
  const seen = new Set();
  for (let step = 0; step < wanted + 12; step++) {
    await page.keyboard.press("Tab");
    seen.add(await page.evaluate(() => [...document.querySelectorAll("*")].indexOf(document.activeElement)));
  }
  assert.ok(seen.size >= wanted, `${seen.size} of ${wanted}`);
}

export async function end(least = 1) {
  await browser.close();
  if (failed > 0) console.log(`${failed} failed`);
  process.exitCode = failed > 0 || least < 1 ? 1 : 0;
}

/** What is saved by a button of a figure's menu. */
export async function menu(figure, name) {
  await figure.locator("details.save").evaluate((menu) => { menu.open = true; });
  await figure.getByRole("button", { name }).first().click();
}

/** What an act downloads, as text. */
export async function saved(page, act) {
  const [download] = await Promise.all([page.waitForEvent("download"), act()]);
  return readFileSync(await download.path(), "utf8");
}

/** Texts of a drawing that are cut at its edge or lie over another, with what lies there. */
export const unreadable = (page, svg) => page.evaluate((svg) => {
  const box = document.createElement("div");
  document.body.append(box);
  box.append(document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true));
  const wrong = [];
  for (const part of box.querySelector("svg > svg") ? box.querySelectorAll("svg > svg") : box.querySelectorAll("svg")) {
    const { left, right } = part.getBoundingClientRect();
    const texts = [...part.querySelectorAll("text")].map((node) => ({ text: node.textContent, box: node.getBoundingClientRect() }));
    texts.forEach(({ text, box }, nth) => {
      if (box.left < left - 1 || box.right > right + 1) wrong.push(`${text} is cut`);
      for (const other of texts.slice(nth + 1)) {
        if (other.box.left < box.right - 1 && box.left < other.box.right - 1 && other.box.top < box.bottom - 3 && box.top < other.box.bottom - 3) wrong.push(`${text} over ${other.text}`);
      }
    });
  }
  box.remove();
  return wrong;
}, svg);
