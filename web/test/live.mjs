// Watches a campaign that runs, stops it, goes on with it and stops it again, as a person would.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { accessible, check, end, silent } from "./browser.mjs";

const [url, shots] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });

await check("a running campaign shows how far it is, stops, and goes on", async () => {
  const { origin } = new URL(url);
  const { page, done } = await silent(url, new RegExp(`^${origin}/`));
  await page.getByRole("link", { name: "Campaigns" }).click();
  const state = page.locator(".badge");
  const says = (text) => page.waitForFunction((text) => document.querySelector(".badge")?.textContent === text, text, { timeout: 240_000 });
  await says("running");
  // The page follows by itself: no reload, and the trial moves.
  await page.waitForFunction(() => /seed 1: runs/.test(document.querySelector(".trials")?.textContent ?? ""), null, { timeout: 240_000 });
  const before = await page.locator(".trials li").first().textContent();
  await page.waitForFunction((before) => {
    const now = document.querySelector(".trials li")?.textContent ?? before;
    return now !== before && /runs, \d.* on its own clock/.test(now);
  }, before, { timeout: 240_000 });
  assert.match(await page.locator("#live").textContent(), /0 of 1 trials, left: \S+/);
  await page.screenshot({ path: `${shots}/running.png` });
  await accessible(page);
  await page.getByRole("button", { name: "Stop long" }).click();
  await says("stopped");
  await page.screenshot({ path: `${shots}/stopped.png` });
  await accessible(page);
  assert.match(await page.locator("#live").textContent(), /Runs pagetide run random/);
  await page.getByRole("button", { name: "Resume long" }).click();
  await says("running");
  assert.equal(await state.count(), 1);
  await page.waitForFunction(() => /seed 1: runs/.test(document.querySelector(".trials")?.textContent ?? ""), null, { timeout: 240_000 });
  await page.getByRole("button", { name: "Stop long" }).click();
  await says("stopped");
  await done();
});

await end();
