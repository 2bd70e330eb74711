// Checks the page that one file is: report.html and hostile.html in a folder. Prints a line for each check.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { accessible, check, drawn, end, fits, menu, saved, silent, thorough, unreadable, walked } from "./browser.mjs";

const [dir, shots] = process.argv.slice(2);
mkdirSync(shots, { recursive: true });

/** Opens a page that must ask for nothing beyond its own file. */
async function open(file, options = {}) {
  const opened = await silent(`file://${dir}/${file}`, /^(file|data|blob):/, options);
  await drawn(opened.page);
  return opened;
}

/** Opens a page with all its cells open. */
async function openWhole(file, options = {}) {
  const opened = await open(file, options);
  await opened.page.locator("#open-all").click();
  await opened.page.waitForTimeout(300);
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
  const { page, done } = await openWhole("report.html");
  for (const kind of ["access", "pages", "presence", "uses", "age", "histogram", "swap", "attempts", "asked", "fragmentation", "bars", "processes", "time"]) {
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
  const { page, done } = await openWhole("report.html");
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
  assert.match(await figure.locator(".tip").first().textContent(), /^reference [\d,]+: .* \([\d,]+ ns\), page [\d,]+, (hit|minor fault|major fault|stall)$/);
  await figure.screenshot({ path: `${shots}/zoomed.png` });
  await page.keyboard.press("0");
  await page.waitForTimeout(300);
  assert.deepEqual(await shown(0), [100000, 0, 100000]);
  await done();
});

await check("downloads hold what the records hold", async () => {
  const { page, done } = await openWhole("report.html");
  const figure = kinds(page, "access").first();
  const text = await saved(page, () => menu(figure, /^CSV/));
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
  const svg = await saved(page, () => menu(figure, /^SVG/));
  assert.match(svg, /^<svg [^]*<image [^]*<\/svg>\n$/);
  const lineSvg = await saved(page, () => menu(kinds(page, "histogram").first(), /^SVG/));
  assert.match(lineSvg, /<polyline/);
  await done();
});

/** A saved drawing: its panels by title, each with its curves, ribbons and marks in values, as the ticks say. */
async function panels(page, figure) {
  const svg = await saved(page, () => menu(figure, /^SVG/));
  return page.evaluate((svg) => {
    const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    const units = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, "%": 0.01 };
    const number = (text) => {
      const found = /^([−-]?[\d.,]+)(?: (\S+))?$/.exec(text);
      return found ? Number(found[1].replace(/,/g, "").replace("−", "-")) * (units[found[2]] ?? 1) : NaN;
    };
    const out = [];
    const parts = root.querySelector(":scope > svg") ? [...root.querySelectorAll(":scope > svg")] : [root];
    for (const part of parts) {
      let panel = null;
      for (const node of part.children) {
        const at = (name) => Number(node.getAttribute(name));
        const points = () => (node.getAttribute("points") ?? "").split(" ").filter(Boolean).map((pair) => pair.split(",").map(Number));
        if (node.nodeName === "text" && node.getAttribute("fill") === getComputedStyle(document.documentElement).getPropertyValue("--ink").trim() && node.getAttribute("text-anchor") === "start") {
          panel = { title: node.textContent, x: [], y: [], grid: null, curves: [], ribbons: [], marks: [] };
          out.push(panel);
        } else if (!panel) continue;
        else if (node.nodeName === "polyline" && node.getAttribute("stroke-width") === "1") panel.grid = points();
        else if (node.nodeName === "text" && panel.grid && !node.hasAttribute("transform") && Number.isFinite(number(node.textContent))) {
          const [[x0, y0], [x1]] = panel.grid;
          if (x0 === x1 && node.getAttribute("text-anchor") === "middle") panel.x.push([number(node.textContent), x0]);
          else if (node.getAttribute("text-anchor") === "end" && Math.abs(at("y") - 4 - y0) < 0.1) panel.y.push([number(node.textContent), y0]);
        } else if (node.nodeName === "polyline" && node.getAttribute("stroke-width") === "1.6") panel.curves.push({ colour: node.getAttribute("stroke"), dash: node.getAttribute("stroke-dasharray") ?? "", points: points() });
        else if (node.nodeName === "polygon") panel.ribbons.push(points());
        else if (node.nodeName === "rect") panel.marks.push([at("x") + at("width") / 2, at("y") + at("height") / 2, node.getAttribute("fill")]);
      }
    }
    return out;
  }, svg);
}

/** From values to places, by two ticks of an axis. */
function axis(ticks, log) {
  const map = log ? Math.log10 : (value) => value;
  const [[a, from], [b, to]] = [ticks[0], ticks[ticks.length - 1]];
  return (value) => from + ((map(value) - map(a)) / (map(b) - map(a))) * (to - from);
}

const csvRows = (text) => text.trimEnd().split("\r\n").slice(1).map((line) => line.split(",").map(Number));

// One page for the checks that change nothing of it.
const whole = await openWhole("report.html");

await thorough("shares up to a time are drawn where the histogram has them, their difference is theirs, and the pointer tells both", async () => {
  const { page } = whole;
  const figure = kinds(page, "histogram").first();
  await figure.scrollIntoViewIfNeeded();
  const texts = [];
  for (const release of ["6.1.0", "6.12.0"]) texts.push(await saved(page, () => menu(figure, new RegExp(`^CSV .*-${release.replaceAll(".", "\\.")}$`))));
  const [a, b] = texts.map(csvRows);
  const upTo = (rows, x) => {
    const all = rows.reduce((sum, [, , n]) => sum + n, 0);
    return rows.reduce((sum, [low, high, n]) => sum + (x >= high ? n : x <= low ? 0 : (n * (x - low)) / (high - low)), 0) / all;
  };
  const [shares, apart, tail] = await panels(page, figure);
  assert.deepEqual([shares.title, apart.title, tail.title], ["share up to", "difference of shares", "share that is larger"]);
  assert.equal(shares.curves.length, 2);
  assert.notEqual(shares.curves[0].colour, shares.curves[1].colour);
  assert.deepEqual([shares, apart, tail].map(({ curves }) => curves.map(({ dash }) => dash)), [["", "7 3"], ["7 3"], ["", "7 3"]], "strokes tell variants apart in grey");
  const [x, y, dy] = [axis(shares.x, true), axis(shares.y, false), axis(apart.y, false)];
  [a, b].forEach((rows, side) => {
    const { points } = shares.curves[side];
    let before = 0;
    const all = rows.reduce((sum, [, , n]) => sum + n, 0);
    assert.equal(points.length, rows.length * 2);
    rows.forEach(([low, high, n], at) => {
      const wanted = [[x(Math.max(1, low)), y(before / all)], [x(Math.max(1, high)), y((before += n) / all)]];
      wanted.forEach(([px, py], end) => {
        const [gotX, gotY] = points[at * 2 + end];
        assert.ok(Math.abs(px - gotX) <= 1 && Math.abs(py - gotY) <= 1, `${low}: ${gotX},${gotY} and not ${px},${py}`);
      });
    });
  });
  // Percentiles lie on the curves, at their shares.
  for (const share of [0.5, 0.9, 0.99]) assert.equal(shares.marks.filter(([, at]) => Math.abs(at - y(share)) <= 1).length >= 2, true, `${share} is marked for both`);
  let far = 0;
  const back = (px) => 10 ** (Math.log10(shares.x[0][0]) + ((px - shares.x[0][1]) / (shares.x.at(-1)[1] - shares.x[0][1])) * Math.log10(shares.x.at(-1)[0] / shares.x[0][0]));
  // Where buckets end alone: in between a pixel is more than the histogram knows.
  for (const [low, high] of [...a, ...b]) {
    const [px, wanted] = [x(high), upTo(b, high) - upTo(a, high)];
    const near = apart.curves[0].points.filter(([at]) => Math.abs(at - px) <= 0.5);
    assert.ok(near.some(([, at]) => Math.abs(at - dy(wanted)) <= 1), `difference up to ${high} (${low}): ${wanted}`);
    far = Math.max(far, Math.abs(wanted));
  }
  assert.ok(far > 0.01, "the variants differ");
  // The pointer tells what the histogram has there, for both variants, in both drawings.
  const canvas = figure.locator("canvas.sheet").first();
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const scale = box.width / Number(/width="([\d.]+)"/.exec(await saved(page, () => menu(figure, /^SVG/)))[1]);
  await canvas.scrollIntoViewIfNeeded();
  const now = await canvas.boundingBox();
  const px = shares.x[0][1] + (shares.x.at(-1)[1] - shares.x[0][1]) * 0.61;
  await page.mouse.move(now.x + px * scale, now.y + 100);
  await page.waitForTimeout(100);
  const tips = await figure.locator(".tip").allTextContents();
  const told = /share up to: 6\.1\.0 ([\d.]+) %, 6\.12\.0 ([\d.]+) %/.exec(tips[0]);
  assert.ok(told, tips[0]);
  [a, b].forEach((rows, side) => assert.ok(Math.abs(Number(told[side + 1]) / 100 - upTo(rows, back(px))) < 0.002, `${tips[0]}: ${upTo(rows, back(px))}`));
  assert.match(tips[1], /share that is larger: 6\.1\.0 .* %, 6\.12\.0 .* %/, "the other drawing follows");
  await figure.screenshot({ path: `${shots}/shares.png` });
});

await thorough("every stall is on top, and the crosshair tells the same reference of both variants", async () => {
  const { page } = whole;
  const figure = kinds(page, "access").first();
  await figure.scrollIntoViewIfNeeded();
  await page.waitForFunction(() => [...document.querySelectorAll("figure[data-kind=access] canvas.map")].every((map) => map.dataset.points === "100000"));
  const traces = await page.evaluate(() => JSON.parse(document.getElementById("figures-data").textContent).cells.flatMap((cell) => cell.traces));
  const rows = [];
  for (const release of ["6.1.0", "6.12.0"]) rows.push(csvRows(await saved(page, () => menu(figure, new RegExp(`^CSV .*-${release.replaceAll(".", "\\.")}$`)))));
  // What was looked at brings single accesses, and with them every stall.
  await page.waitForTimeout(500);
  const [least, most] = [Math.min(...traces.map((t) => t.min)), Math.max(...traces.map((t) => t.max))];
  for (const side of [0, 1]) {
    const stalls = rows[side].filter(([, , time]) => time >= traces[side].states.stall_from);
    assert.equal(stalls.length, traces[side].states.counts[3]);
    assert.ok(stalls.length > 20);
    const missing = await figure.locator("canvas.map").nth(side).evaluate((canvas, { stalls, n, least, most }) => {
      const scale = canvas.width / canvas.clientWidth;
      const [w, h] = [canvas.clientWidth - 64 - 12, 240 - 24 - 38];
      const [low, high] = [Math.log10(Math.max(1, least / 1.4)), Math.log10(Math.max(10, most * 1.3))];
      const hex = Number.parseInt(getComputedStyle(document.documentElement).getPropertyValue("--stall").trim().slice(1), 16);
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const is = (x, y) => {
        const at = (Math.round(y * scale) * canvas.width + Math.round(x * scale)) * 4;
        const [r, g, b] = data.subarray(at, at + 3);
        return Math.abs(r - (hex >> 16)) < 24 && Math.abs(g - ((hex >> 8) & 255)) < 24 && Math.abs(b - (hex & 255)) < 24;
      };
      // A line of quantiles may cross a stall: most of its three by three pixels are its own.
      return stalls.filter(([reference, , time]) => {
        const [x, y] = [64 + (reference / n) * w, 24 + (1 - (Math.log10(time) - low) / (high - low)) * h];
        let own = 0;
        for (const dx of [-1, 0, 1]) for (const dy of [-1, 0, 1]) if (is(x + dx, y + dy)) own++;
        return own < 6;
      }).length;
    }, { stalls, n: traces[side].n, least, most });
    assert.equal(missing, 0, `stalls that are not seen of ${stalls.length}`);
  }
  const box = await figure.locator("canvas.map").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 150);
  await page.waitForTimeout(300);
  const tips = await figure.locator(".tip").allTextContents();
  const told = tips.map((tip) => /^reference ([\d,]+): .* \(([\d,]+) ns\), page ([\d,]+)/.exec(tip)?.slice(1).map((text) => Number(text.replace(/,/g, ""))));
  assert.ok(told[0] && told[1], `${tips}`);
  assert.equal(told[0][0], told[1][0], "one reference");
  told.forEach(([reference, time, number], side) => assert.deepEqual([reference, number, time], rows[side][reference]));
  const hairs = await figure.locator(".hair:visible").evaluateAll((all) => all.map((hair) => hair.style.left));
  assert.equal(hairs.length, 2);
  assert.equal(hairs[0], hairs[1]);
});

await thorough("highalloc has a panel for each pass, with ribbons where the records have them, and names at the curves", async () => {
  const { page } = whole;
  const figure = kinds(page, "asked").first();
  const all = await panels(page, figure);
  assert.deepEqual(all.map(({ title }) => title), ["pass 1: succeeded so far", "pass 2: succeeded so far", "pass 1: mean latency so far", "pass 2: mean latency so far"]);
  const rows = csvRows(await saved(page, () => menu(figure, /^CSV/)));
  for (const pass of [0, 1]) {
    const { x: xs, y: ys, curves, ribbons } = all[2 + pass];
    const [x, y] = [axis(xs, false), axis(ys, false)];
    const own = rows.filter((row) => row[0] === pass);
    assert.deepEqual([curves.length, ribbons.length], [2, 2]);
    assert.equal(curves[0].points.length, own.length);
    own.forEach(([, , , asked, mean, deviation], at) => {
      const [px, py] = curves[0].points[at];
      assert.ok(Math.abs(px - x(asked)) <= 1 && Math.abs(py - y(mean)) <= 1, `pass ${pass}, attempt ${at}`);
      assert.ok(Math.abs(ribbons[0][at][1] - y(mean + deviation)) <= 1 && Math.abs(ribbons[0].at(-1 - at)[1] - y(Math.max(0, mean - deviation))) <= 1, `ribbon of attempt ${at}`);
    });
  }
  assert.deepEqual(all[2].y, all[3].y, "one scale for all passes");
  const cut = await panels(page, kinds(page, "fragmentation").first());
  assert.deepEqual(cut.map(({ title, curves }) => [title, curves.length]), [["before-rest", 0], ["before-load", 0], ["after", 0]], "no curve goes through three moments");
});

await thorough("presence by age and uses counts every page once", async () => {
  const { page } = whole;
  const figure = kinds(page, "presence").first();
  const text = await saved(page, () => menu(figure, /^CSV/));
  const rows = text.trimEnd().split("\r\n").slice(1).map((line) => line.split(","));
  const states = csvRows(await saved(page, () => menu(kinds(page, "uses").first(), /^CSV/)));
  const [byAge, byUses] = await panels(page, figure);
  for (const [by, column, { x: xs, y: ys, curves }, log] of [["age", 2, byAge, true], ["uses", 3, byUses, false]]) {
    const own = rows.filter(([variant, kind]) => variant === "6.1.0" && kind === by).map((row) => row.slice(2).map(Number));
    assert.equal(own.reduce((sum, [, , pages]) => sum + pages, 0), states.length);
    assert.equal(curves[0].points.length, own.length);
    const [x, y] = [axis(xs, log), axis(ys, false)];
    own.forEach(([from, to, pages, here], at) => {
      const inside = states.filter((row) => row[column] >= from && row[column] <= to);
      assert.equal(inside.length, pages);
      assert.equal(inside.reduce((sum, row) => sum + row[1], 0), here);
      const [px, py] = curves[0].points[at];
      assert.ok(px >= x(from) - 1 && px <= x(to) + 1 && Math.abs(py - y(here / pages)) <= 1, `${by} ${from} to ${to}`);
    });
  }
});

await check("a figure has one menu: one drawing with all its pictures, at twice the size as PNG, and its data", async () => {
  const { page } = whole;
  for (const kind of ["access", "histogram", "swap", "time", "bars", "asked"]) {
    const figure = kinds(page, kind).first();
    assert.equal(await figure.locator("details.save").count(), 1);
    await figure.locator("details.save").evaluate((menu) => { menu.open = true; });
    const names = await figure.locator(".menu button").allTextContents();
    const count = (pattern) => names.filter((name) => pattern.test(name)).length;
    assert.deepEqual([count(/^SVG/), count(/^PNG/)], [1, 1], `${kind}: ${names}`);
    assert.ok(count(/^CSV/) >= 1, `${kind}: ${names}`);
  }
  const figure = kinds(page, "access").first();
  const svg = await saved(page, () => menu(figure, /^SVG/));
  assert.equal(svg.match(/<image /g).length, 2, "both variants");
  const [download] = await Promise.all([page.waitForEvent("download"), menu(figure, /^PNG/)]);
  const png = readFileSync(await download.path());
  const size = (name) => Number(new RegExp(`${name}="([\\d.]+)"`).exec(svg)[1]);
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [size("width") * 2, size("height") * 2]);
});

await check("all that was silent", whole.done);

await thorough("the keyboard reaches every control", async () => {
  const { page, done } = await openWhole("report.html");
  await walked(page);
  await done();
});

await check("the first screen answers: a forest plot within five tabs, and a closed page of at most twelve screens", async () => {
  const { page, done } = await open("report.html", { viewport: { width: 1440, height: 900 } });
  const box = await page.locator("table.forest svg.strip").first().boundingBox();
  assert.ok(box && box.y + box.height < 900, `the plot begins at ${box?.y}`);
  assert.match(await page.locator("#verdict .sentence strong").first().textContent(), /^(Better|Worse|Mixed|Not decided|No difference)/);
  assert.doesNotMatch(await page.locator("#verdict").textContent(), /…/, "no name is cut");
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height <= 12 * 900, `${height} px`);
  for (let step = 0; step < 5; step++) await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.activeElement.closest("table.forest") !== null), "the plot has the focus");
  await page.screenshot({ path: `${shots}/first.png` });
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  const hash = await page.evaluate(() => location.hash.slice(1));
  assert.ok(await page.evaluate((id) => document.getElementById(id).open, hash), "its cell opens");
  await done();
});

// Names as long as those of a suite's kernels leave little room at 1024 px.
const LONG = "bookworm/6.12.117-amd64";
const page400 = { viewport: { width: 400, height: 800 } };
writeFileSync(`${dir}/long.html`, readFileSync(`${dir}/report.html`, "utf8").replaceAll("6.12.0", LONG));
for (const [name, file, options] of [["1200 px", "report.html", {}], ["400 px", "report.html", page400], ["1024 px with long names", "long.html", { viewport: { width: 1024, height: 800 } }]]) await thorough(`${name}: bars end where the numbers beside them say, and arrows point to where they go on`, async () => {
  const { page, done } = await openWhole(file, options);
  const problems = await page.evaluate(() => {
    const number = (text) => Number(text.replace("−", "-").replace(/,/g, ""));
    const wrong = [];
    let [seen, arrows] = [0, 0];
    for (const table of document.querySelectorAll("table.forest, table.verdicts")) {
      const head = table.querySelector("thead svg.axis");
      for (const strip of table.querySelectorAll("svg.strip")) {
        // A difference has an axis of its own below it.
        const own = strip.nextElementSibling?.matches("svg.axis") ? strip.nextElementSibling : null;
        const axis = own ?? head;
        if (strip.getClientRects().length > 0 && axis.getClientRects().length === 0) wrong.push(`${strip.getAttribute("aria-label")}: its axis is not shown`);
        const ticks = [...axis.querySelectorAll("text")].map((tick) => [number(tick.textContent.replace(/ .*/, "")), Number(tick.getAttribute("x"))]);
        const place = own ? (v) => v : (v) => Math.log(1 + v / 100);
        const [zero, far] = [ticks.find(([v]) => v === 0), ticks.find(([v]) => v !== 0)];
        const x = (v) => zero[1] + ((place(v) - place(0)) / (place(far[0]) - place(0))) * (far[1] - zero[1]);
        for (const [v, at] of ticks) if (Math.abs(x(v) - at) > 1) wrong.push(`tick ${v} at ${at}, not ${x(v)}`);
        const [over, under] = [axis.getBoundingClientRect(), strip.getBoundingClientRect()];
        if (under.width > 0 && (Math.abs(over.left - under.left) > 1 || Math.abs(over.width - under.width) > 1)) wrong.push(`the axis lies beside the bars: ${over.left} and ${under.left}`);
        const label = strip.getAttribute("aria-label");
        const found = /\[([^,\]]+(?:,\d{3})*), ([^\]]+)\]/.exec(label);
        if (!found) continue;
        seen++;
        const [low, high] = [number(found[1]), number(found[2])];
        const width = strip.viewBox.baseVal.width;
        const [left, right] = [22, width - 22];
        const ends = [...strip.querySelectorAll(".end")].map((end) => Number(/M([-\d.]+)/.exec(end.getAttribute("d"))[1]));
        // Printed to a tenth: as far as that goes, and a pixel.
        const slack = (v) => 1 + Math.abs(x(v + 0.05) - x(v - 0.05));
        for (const v of [low, high]) {
          if (x(v) > left + 2 && x(v) < right - 2 && !ends.some((end) => Math.abs(end - x(v)) <= slack(v))) wrong.push(`${label}: no end at ${x(v)} (${ends})`);
        }
        for (const arrow of strip.querySelectorAll(".arrow")) {
          arrows++;
          const tip = Number(/M([-\d.]+)/.exec(arrow.getAttribute("d"))[1]);
          const goes = tip < width / 2 ? low : high;
          if (tip < width / 2 ? x(low) > left : x(high) < right) wrong.push(`${label}: an arrow at ${tip}, but ${goes} is at ${x(goes)}`);
        }
      }
    }
    return { wrong, seen, arrows };
  });
  assert.deepEqual(problems.wrong, []);
  assert.ok(problems.seen >= 5, `${problems.seen} intervals`);
  await done();
});

await thorough("what the pointer shows over time is what the records hold at that time", async () => {
  const { page, done } = await openWhole("report.html");
  const figure = kinds(page, "time").first();
  await figure.scrollIntoViewIfNeeded();
  const [download] = await Promise.all([page.waitForEvent("download"), menu(figure, /^CSV/)]);
  const [, ...rows] = readFileSync(await download.path(), "utf8").trimEnd().split("\r\n").map((line) => line.split(",").map(Number));
  const box = await figure.locator(".u-over").first().boundingBox();
  for (const share of [0.2, 0.5, 0.83]) {
    await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
    await page.waitForTimeout(150);
    const shown = await figure.locator(".u-legend .u-value").allTextContents();
    const [at, first] = shown;
    const units = { s: 1e9, ms: 1e6, "µs": 1e3, ns: 1 };
    const nanos = (text) => Number(text.split(" ")[0].replace(/,/g, "")) * units[text.split(" ")[1]];
    const number = Number(first.replace(/ at .*/, "").replace(/,/g, "").replace("−", "-"));
    // The row whose time is shown, to the digits shown.
    const near = rows.filter(([time]) => Math.abs(time - nanos(at)) <= 0.006 * time + 1);
    const column = rows[0].findIndex((_, nth) => nth > 0 && near.some((row) => Math.abs(row[nth] - number) < 1 || Math.abs(row[nth] - rows[0][nth] - number) < 1));
    assert.ok(near.length > 0 && column > 0, `${at}: ${first}`);
  }
  await done();
});

await thorough("colours by state are as many as the record counts", async () => {
  const { page, done } = await openWhole("report.html");
  const figure = kinds(page, "pages").first();
  await figure.scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.documentElement.dataset.prepared === "true");
  const traces = await page.evaluate(() => JSON.parse(document.getElementById("figures-data").textContent).cells.flatMap((cell) => cell.traces));
  const first = traces[0];
  const text = await (async () => {
    const [download] = await Promise.all([page.waitForEvent("download"), menu(kinds(page, "access").first(), /^CSV/)]);
    return readFileSync(await download.path(), "utf8");
  })();
  const times = text.trimEnd().split("\r\n").slice(1).map((line) => Number(line.split(",")[2]));
  const faults = Number(new Map(readFileSync(`${dir}/accesses.txt`, "utf8").trimEnd().split("\n").map((line) => line.split("="))).get("faults"));
  assert.equal(times.filter((time) => time >= first.states.major_from).length, faults);
  assert.equal(first.states.counts[2] + first.states.counts[3], faults);
  assert.equal(first.states.counts.reduce((a, b) => a + b), times.length);
  const canvas = figure.locator("canvas.map").first();
  const has = await canvas.evaluate((c) => {
    const style = getComputedStyle(document.documentElement);
    const { data } = c.getContext("2d").getImageData(0, 24 * (c.width / c.clientWidth), c.width, c.height - 70 * (c.width / c.clientWidth));
    return ["--major", "--stall"].map((name) => {
      const hex = Number.parseInt(style.getPropertyValue(name).trim().slice(1), 16);
      const near = (a, b) => Math.abs(a - b) < 24;
      let n = 0;
      for (let at = 0; at < data.length; at += 4) if (near(data[at], (hex >> 16) & 255) && near(data[at + 1], (hex >> 8) & 255) && near(data[at + 2], hex & 255)) n++;
      return n;
    });
  });
  assert.ok(has[0] > 100 && has[1] > 0, `${has}`);
  await done();
});

await thorough("on paper every figure is there as a drawing, whole and not stretched, without scrolling", async () => {
  const { page, done } = await open("report.html");
  await page.waitForFunction(() => document.documentElement.dataset.prepared === "true");
  const figures = await page.locator("figure").count();
  // The width of A4 within its margins, in CSS pixels.
  await page.setViewportSize({ width: 718, height: 1000 });
  await page.emulateMedia({ media: "print" });
  const problems = await page.evaluate(() => {
    dispatchEvent(new Event("beforeprint"));
    const wrong = [];
    for (const figure of document.querySelectorAll("figure")) {
      const name = figure.dataset.kind;
      const papers = [...figure.querySelectorAll(".paper")];
      // Drawings stand in the place of what is on the screen, not below it.
      for (const canvas of figure.querySelectorAll("canvas")) if (!canvas.closest(".paper") && canvas.getClientRects().length > 0) wrong.push(`${name}: its canvas is printed too`);
      if (papers.length === 0) wrong.push(`${name}: nothing`);
      for (const paper of papers) {
        const svg = paper.querySelector("svg");
        const box = svg.getBoundingClientRect();
        const { width, height } = svg.viewBox.baseVal;
        if (!(box.width > 100)) wrong.push(`${name}: ${box.width} wide`);
        if (Math.abs(box.width / box.height - width / height) > 0.01) wrong.push(`${name}: stretched`);
        if (svg.querySelectorAll("text").length < 3) wrong.push(`${name}: no texts`);
        for (const canvas of paper.querySelectorAll("canvas")) {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          if (!data.some((byte) => byte > 0)) wrong.push(`${name}: an empty map`);
        }
        // Names of marks lie over no other text.
        const texts = [...svg.querySelectorAll("text")].map((node) => ({ text: node.textContent, box: node.getBoundingClientRect() }));
        for (const { text, box } of texts.filter((one) => name === "histogram" && / %$/.test(one.text) && one.box.width > 0)) {
          const other = texts.find((one) => one.text !== text && one.box.left < box.right - 1 && box.left < one.box.right - 1 && one.box.top < box.bottom - 3 && box.top < one.box.bottom - 3);
          if (other) wrong.push(`${name}: ${text} over ${other.text}`);
        }
        if (paper.querySelectorAll("canvas").length === 0 && svg.querySelectorAll("polyline, rect").length < 4) wrong.push(`${name}: nothing drawn`);
      }
    }
    // Nothing of a table is cut, and no name stands letter below letter.
    for (const table of document.querySelectorAll("table")) {
      const box = table.getBoundingClientRect();
      const name = table.parentElement.getAttribute("aria-label") ?? table.className;
      if (box.width === 0) continue;
      if (box.right > document.documentElement.clientWidth + 1) wrong.push(`table ${name}: ${box.right} px`);
      for (const head of table.querySelectorAll("tbody th")) {
        const { width } = head.getBoundingClientRect();
        if (width > 0 && width < Math.min(60, head.textContent.length * 5)) wrong.push(`table ${name}: ${head.textContent} in ${width} px`);
      }
    }
    return wrong;
  });
  assert.deepEqual(problems, []);
  assert.ok(figures >= 12, `${figures} figures`);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await page.locator(".paper").count(), 0, "the screen has its figures back");
  await page.pdf({ path: `${shots}/print.pdf`, format: "A4" });
  await done();
});

for (const [name, options] of [["1200 px", {}], ["400 px", { viewport: { width: 400, height: 800 } }]]) await thorough(`${name}: no name or tick in a figure is cut or lies over another`, async () => {
  const { page, done } = await openWhole("report.html", options);
  for (const kind of ["access", "pages", "histogram", "attempts", "asked", "bars", "processes", "swap", "time"]) {
    const figure = kinds(page, kind).first();
    if ((await figure.count()) === 0) continue;
    await figure.scrollIntoViewIfNeeded();
    await page.waitForTimeout(200);
    assert.deepEqual(await unreadable(page, await saved(page, () => menu(figure, /^SVG/))), [], kind);
  }
  await done();
});

await thorough("variants and what failed are told apart without colours: by stroke, pattern and shape", async () => {
  const { page, done } = await openWhole("report.html");
  const dashes = (svg, wide) => [...svg.matchAll(new RegExp(`<polyline [^>]*stroke-width="${wide}"[^>]*>`, "g"))].map(([line]) => /dasharray="([^"]*)"/.exec(line)?.[1] ?? "");
  const lines = await saved(page, () => menu(kinds(page, "time").first(), /^SVG/));
  assert.deepEqual(dashes(lines, "1.5"), ["", "7 3"]);
  assert.deepEqual(dashes(lines, "2"), ["", "7 3"], "before its name stands a line's own stroke");
  const paper = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--paper").trim());
  const bars = await saved(page, () => menu(kinds(page, "bars").first(), /^SVG/));
  const stripes = [...bars.matchAll(/<rect [^>]*width="1\.5"[^>]*fill="([^"]*)"/g)].filter(([, fill]) => fill === paper);
  assert.ok(stripes.length > 4, `${stripes.length} stripes`);
  // The legend of attempts has a square and a cross of two strokes.
  const crosses = await saved(page, () => menu(kinds(page, "attempts").first(), /^SVG/));
  assert.ok(dashes(crosses, "2").length >= 2, "the legend has a cross for what failed");
  await done();
});

for (const [name, file, options] of [
  ["light", "report.html", {}],
  ["dark", "report.html", { colorScheme: "dark" }],
  ["400 px", "report.html", { viewport: { width: 400, height: 800 } }],
  ["720 px", "report.html", { viewport: { width: 720, height: 450 } }],
]) {
  await thorough(`${name}: axe finds nothing, nothing is wider than the page`, async () => {
    const { page, done } = await open(file, options);
    await page.screenshot({ path: `${shots}/${name.replace(" ", "")}.png`, fullPage: true });
    await fits(page);
    // At 400 px and at 200 % zoom interval and verdict stay in sight.
    const hidden = await page.locator("table.forest .interval-text, table.forest .badge, table.forest svg.strip").evaluateAll((all) => all.filter((node) => {
      const box = node.getBoundingClientRect();
      return box.width === 0 || box.left < 0 || box.right > innerWidth;
    }).map((node) => node.textContent));
    assert.deepEqual(hidden, []);
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

await check("a side that died says so first, with its reason said once", async () => {
  const { page, done } = await open("dead.html", { viewport: { width: 1440, height: 900 } });
  const verdict = page.locator("#verdict");
  assert.match(await verdict.locator(".sentence").first().textContent(), /6\.12\.0 against 6\.1\.0/);
  const reason = verdict.locator(".sentence", { hasText: "no trial of 4 is valid. 4 of them: " });
  assert.equal(await reason.count(), 1);
  const box = await reason.boundingBox();
  assert.ok(box.y + box.height < 900, "in the first screen");
  assert.equal(await page.locator("ul.invalid li").count(), 1);
  assert.match(await page.locator("ul.invalid li").textContent(), /4 trials \(seeds 1, 2, 3, 4\)/);
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
