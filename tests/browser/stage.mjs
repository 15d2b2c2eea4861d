/** What all tests share: the market as a child process, Debian's Chromium, and pages that must not break. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

const require = createRequire(new URL("../../dapp/web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const SCREENSHOTS = `${ROOT}build/screenshots`;
const START_MS = 180_000;
export const DESKTOP = { width: 1360, height: 860 };
export const PHONE = { width: 360, height: 740 };

/** Start the market; `stop` ends it with all that it started. */
export async function startYard(...args) {
  return startYardOf("tests.browser.yard", ...args);
}

export async function startYardOf(module, ...args) {
  const child = spawn(`${ROOT}.venv/bin/python`, ["-W", "ignore", "-m", module, ...args], {
    cwd: ROOT,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const said = lines[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await withTime(said.next(), START_MS, "the market");
    assert.ok(!done, "the market ended before it was told to");
    return JSON.parse(value);
  };
  const place = await next();
  return {
    ...place,
    async order(text) {
      child.stdin.write(`${text}\n`);
      return next();
    },
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin.end();
      await withTime(ended, 60_000, "the end of the market").catch(() => child.kill("SIGKILL"));
    },
  };
}

function withTime(promise, milliseconds, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} is not there after ${milliseconds / 1000} s`)), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export async function startBrowser() {
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
  assert.ok(executablePath, "Chromium is missing: run 'make chromium'");
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A page that fails the test for errors in its console, requests to strangers, and broken policies. */
export async function openPage(context, place, path = "/") {
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    // A refusal of the server is told in the page; the browser notes each in its console as well.
    if (message.type() === "error" && !/Failed to load resource/.test(text)) faults.push(`console: ${text}`);
  });
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol.startsWith("http") && origin !== place.url) faults.push(`a request to ${origin}`);
  });
  page.faults = faults;
  await page.goto(place.url + path);
  return page;
}

/** Ask the chain's node itself, past the page. */
export async function ask(place, method, params = []) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(place.rpc, { method: "POST", headers: { "content-type": "application/json" }, body });
  return (await answer.json()).result;
}

/** Go on with the Tab key until something has the focus, as who has no mouse does. */
export async function tabTo(page, wanted) {
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press("Tab");
    if (await hasFocus(wanted)) return;
  }
  assert.fail(`the Tab key does not come to ${wanted}`);
}

export function hasFocus(wanted) {
  return wanted.evaluate((element) => element === document.activeElement);
}

/** Accessibility (WCAG 2.1 A and AA), no scrolling sideways, and nothing in the console. */
export async function checkPage(page, what) {
  const found = await page.evaluate(async (source) => {
    if (!window.axe) new Function(source)();
    const { violations } = await window.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  }, AXE);
  assert.deepEqual(found, [], `${what} is not accessible`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${what} scrolls sideways by ${wide} pixels`);
  assert.deepEqual(page.faults, [], `${what} has faults`);
}

/** How much of a page that was just opened moved under the eyes of who reads it. */
export async function checkSteady(page, what) {
  await page.locator("h1").first().waitFor();
  await page.waitForFunction(() => !document.querySelector(".skeleton"));
  const shift = await page.evaluate(
    () =>
      new Promise((resolve) => {
        let sum = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) sum += entry.value;
        }).observe({ type: "layout-shift", buffered: true });
        setTimeout(() => resolve(sum), 500);
      }),
  );
  assert.ok(shift < 0.1, `${what} shifts by ${shift}`);
}

export async function shoot(page, name) {
  mkdirSync(SCREENSHOTS, { recursive: true });
  // What sticks to the top of the window is at the top of the picture.
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true, animations: "disabled" });
}

/** A page as it is, in both themes on a desk and on a phone; after that it is as it was. */
export async function shootAll(page, name) {
  const before = page.viewportSize();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const [size, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
      await page.setViewportSize(viewport);
      await checkPage(page, `${name} (${size}, ${colorScheme})`);
      await shoot(page, `${name}-${size}-${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  await page.setViewportSize(before);
}

/** What stands on each card of a page, but for what time alone changes. A result moves up when it is there at once. */
function cards(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("main .head, main .card")]
      .map((card) => {
        const copy = card.cloneNode(true);
        for (const clock of copy.querySelectorAll("[role=timer]")) clock.remove();
        return copy.textContent.replace(/just now|\d+ (s|min|h|d) ago/g, "a while ago");
      })
      .sort(),
  );
}

/** Load a page again, and see that it says the same. */
export async function reloadSame(page, what) {
  const before = await cards(page);
  assert.ok(before.length > 1, `${what} has cards`);
  await page.reload();
  let after = [];
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    await page.waitForFunction(() => document.querySelector("main .card") && !document.querySelector(".skeleton"));
    after = await cards(page);
    if (isDeepStrictEqual(after, before)) return;
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  assert.deepEqual(after, before, `${what} is another after a reload`);
}

export async function connect(page, wallet = "Test Wallet") {
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: new RegExp(wallet) }).click();
  await page.getByRole("button", { name: /^Wallet 0x/ }).waitFor();
}
