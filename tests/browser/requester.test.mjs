/** What a requester does with the page, against a real market with real agents. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { flowersCsv } from "./flowers.mjs";
import { formTests } from "./forms.mjs";
import {
  ask,
  checkPage,
  checkSteady,
  connect,
  DESKTOP,
  hasFocus,
  openPage,
  PHONE,
  reloadSame,
  shoot,
  shootAll,
  startBrowser,
  startYard,
  tabTo,
} from "./stage.mjs";
import { addWallet } from "./wallet.mjs";

const MINUTES = 60_000;
// What the page promises of its charts, and of how many steps at least half have to keep it.
const SOON_S = 2;
const ENOUGH = 5;
// Some seconds of training, so that the charts are drawn while it goes on.
const EPOCHS = "300";
const LOOKS = 3;
const WATCHED = { Loss: "loss", Accuracy: "accuracy" };
const MODEL = fileURLToPath(new URL("./fixtures/flowers.json", import.meta.url));
const folder = mkdtempSync(`${tmpdir()}/trainyard-browser-`);
const TABLE = `${folder}/flowers.csv`;
writeFileSync(TABLE, flowersCsv());

let yard;
let browser;

before(async () => {
  yard = await startYard();
  browser = await startBrowser();
}, { timeout: 5 * MINUTES });

after(async () => {
  await browser?.close();
  await yard?.stop();
  rmSync(folder, { recursive: true });
});

async function visitor(options = {}) {
  const context = await browser.newContext({ viewport: DESKTOP, acceptDownloads: true, ...options.context });
  if (options.wallet !== false) await addWallet(context, yard, options.wallet);
  return context;
}

async function waitForState(page, wanted, timeout) {
  await page.locator(".head .badge", { hasText: wanted }).first().waitFor({ timeout });
}

async function chooseExample(page) {
  await page.getByRole("button", { name: /Two moons/ }).click();
  await page.getByTestId("cost-sentence").waitFor();
}

async function checkAll(page) {
  await page.getByRole("button", { name: "Check everything" }).click();
  await page.getByRole("button", { name: /^Post task for/ }).waitFor({ timeout: 3 * MINUTES });
}

async function post(page) {
  await page.getByRole("button", { name: /^Post task for/ }).click();
  await page.waitForURL(/\/tasks\/\d+$/, { timeout: MINUTES });
  return Number(/\d+$/.exec(page.url())[0]);
}

/** In the page: notes when each of these charts first goes up to a step; gives back how many charts are there. */
function noteSteps(titles) {
  window.shownSteps = Object.fromEntries(titles.map((title) => [title, []]));
  new MutationObserver(() => {
    for (const [title, shown] of Object.entries(window.shownSteps)) {
      const label = document.querySelector(`.chart-plot[aria-label^="${title} over "]`)?.ariaLabel ?? "";
      const step = Number(/up to step (\d+)$/.exec(label)?.[1] ?? 0);
      if (step > (shown.at(-1)?.step ?? 0)) shown.push({ step, at: Date.now() / 1000 });
    }
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["aria-label"] });
  return document.querySelectorAll(".chart-plot").length;
}

/** How many seconds after it was made each step of a metric was in its chart, the soonest first. */
function lagsOf({ steps, times }, shown) {
  return steps
    .map((step, index) => ({ step, lag: (shown.find((one) => one.step >= step)?.at ?? Infinity) - times[index] }))
    .sort((one, other) => one.lag - other.lag);
}

test("the market can be looked at without a wallet, by keyboard alone", { timeout: 2 * MINUTES }, async () => {
  const context = await visitor({ wallet: false });
  const page = await openPage(context, yard);
  await page.getByRole("heading", { name: "Market" }).waitFor();
  await page.getByText("Nobody has posted a task yet").waitFor();
  await checkPage(page, "the empty market");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to content");
  await tabTo(page, page.getByRole("link", { name: "Workers", exact: true }));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Leaderboard" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
  await context.close();
});

test("a burner wallet is there in one click, funded, and after a reload", { timeout: 2 * MINUTES }, async () => {
  const context = await visitor({ wallet: false });
  const page = await openPage(context, yard, "/account");
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: /Burner wallet/ }).waitFor();
  await shootAll(page, "wallet");
  await page.getByRole("dialog").getByRole("button", { name: /Burner wallet/ }).click();
  await page.getByText("Credit in the market").first().waitFor();
  await page.locator(".facts dd", { hasText: "10 ETH" }).first().waitFor();
  await page.reload();
  await page.getByRole("button", { name: /^Wallet 0x/ }).waitFor();
  await page.getByRole("heading", { name: "Account" }).waitFor();
  await checkPage(page, "the account of a burner");
  await context.close();
});

test("a wallet on another chain is told so, and switched with one click", { timeout: 2 * MINUTES }, async () => {
  const context = await visitor({ wallet: { chainId: 1, knowsChain: false } });
  const page = await openPage(context, yard);
  await connect(page);
  const notice = page.getByRole("alert").filter({ hasText: "another network" });
  await notice.waitFor();
  await checkPage(page, "the page on a wrong chain");
  await page.evaluate(() => {
    window.testWallet.declines = true;
  });
  await page.getByRole("button", { name: /^Switch to/ }).click();
  await notice.getByText("You declined the switch").waitFor();
  await page.evaluate(() => {
    window.testWallet.declines = false;
  });
  await page.getByRole("button", { name: /^Switch to/ }).click();
  await notice.waitFor({ state: "detached" });
  const added = await page.evaluate(() => window.testWallet.added);
  assert.equal(Number(added.chainId), yard.chain_id);
  assert.deepEqual(added.rpcUrls, [yard.rpc]);
  await context.close();
});

test("signing in with Ethereum opens notifications", { timeout: 2 * MINUTES }, async () => {
  const context = await visitor();
  const page = await openPage(context, yard, "/account");
  await connect(page);
  await page.getByRole("button", { name: "Sign in with Ethereum" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in with Ethereum" }).waitFor();
  await context.close();
});

formTests({ visitor, yard: () => yard });

test("a form is filled in and checked, and dialogs are left, by keyboard alone", { timeout: 4 * MINUTES }, async () => {
  const context = await visitor();
  const page = await openPage(context, yard, "/new");
  const keys = page.keyboard;
  const dialog = page.getByRole("dialog");
  const connecting = page.getByRole("button", { name: "Connect", exact: true });
  await tabTo(page, connecting);
  await keys.press("Enter");
  await dialog.getByRole("heading", { name: "Connect a wallet" }).waitFor();
  assert.ok(await page.evaluate(() => document.querySelector("dialog").contains(document.activeElement)));
  await keys.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.ok(await hasFocus(connecting), "the focus is where it was before the dialog");
  await keys.press("Enter");
  await tabTo(page, dialog.getByRole("button", { name: /Test Wallet/ }));
  await keys.press("Enter");
  const wallet = page.getByRole("button", { name: /^Wallet 0x/ });
  await wallet.waitFor();
  await tabTo(page, wallet);
  await keys.press("Space");
  await page.getByRole("button", { name: "Disconnect" }).waitFor();
  await keys.press("Escape");
  await page.getByRole("button", { name: "Disconnect" }).waitFor({ state: "detached" });
  assert.ok(await hasFocus(wallet), "the focus is where it was before the menu");

  await tabTo(page, page.getByRole("button", { name: /Two moons/ }));
  await keys.press("Enter");
  const sentence = page.getByTestId("cost-sentence");
  await sentence.waitFor();
  await tabTo(page, page.getByRole("radio", { name: /One worker/ }));
  await keys.press("ArrowDown");
  assert.ok(await hasFocus(page.getByRole("radio", { name: /Together/ })));
  assert.ok(await page.getByRole("radio", { name: /Together/ }).isChecked());
  await keys.press("ArrowUp");
  const epochs = page.getByLabel("Epochs");
  await tabTo(page, epochs);
  await keys.press("Control+A");
  await keys.type("2");
  await page.waitForFunction(() => JSON.parse(localStorage.getItem("trainyard.draft")).training.until.epochs === 2);
  await tabTo(page, page.getByRole("button", { name: "Check everything" }));
  await keys.press("Space");
  const posting = page.getByRole("button", { name: /^Post task for/ });
  await posting.waitFor({ timeout: 3 * MINUTES });
  assert.ok(await hasFocus(posting), "who checked is where it is posted");
  await page.evaluate(() => {
    window.testWallet.declines = true;
  });
  await keys.press("Enter");
  await page.getByText("You declined in your wallet. Nothing was sent.", { exact: false }).first().waitFor();
  await checkPage(page, "the form after the keyboard");
  await context.close();
});

test("a requester drops model and data, posts, watches and downloads a model that works", { timeout: 12 * MINUTES }, async (t) => {
  // One after the other, and none after one that failed: each goes on where the last ended.
  const step = async (name, act) => {
    t.diagnostic(name);
    await act();
  };
  const context = await visitor();
  const page = await openPage(context, yard, "/new");
  await connect(page);

  await step("what was dropped survives a reload", async () => {
    await page.getByLabel("File: a .keras file or a Keras JSON").setInputFiles(MODEL);
    await page.getByRole("button", { name: "Change model" }).waitFor({ timeout: 2 * MINUTES });
    await page.getByLabel("File: an .npz, a CSV, a folder of images, or TFRecords").setInputFiles(TABLE);
    await page.getByRole("button", { name: "Change data" }).waitFor({ timeout: 2 * MINUTES });
    await page.getByText("flowers.csv").waitFor();
    await page.getByLabel("Epochs").fill(EPOCHS);
    await page.getByLabel("Learning rate").fill("0.02");
    await page.getByTestId("cost-sentence").waitFor();
    await page.reload();
    await page.getByText("flowers.csv").waitFor();
    assert.equal(await page.getByLabel("Epochs").inputValue(), EPOCHS);
    assert.match(
      await page.getByTestId("cost-sentence").textContent(),
      /^At most [\d.]+ ETH, likely [\d.]+ ETH, refundable from .*\d\d:\d\d, or .*\d\d:\d\d once training began\.$/,
    );
    await shootAll(page, "new-task-filled");
  });

  await step("everything is checked before the wallet opens", async () => {
    await checkAll(page);
    await page.getByLabel("Checks").getByText("One batch").waitFor();
    const asked = await page.evaluate(() => window.testWallet.asked);
    assert.ok(!asked.includes("eth_sendTransaction"), "the wallet was asked before the check");
    await shootAll(page, "new-task-checked");
  });

  await step("a rejected signature loses nothing", async () => {
    await page.evaluate(() => {
      window.testWallet.declines = true;
    });
    await page.getByRole("button", { name: /^Post task for/ }).click();
    await page.getByText("You declined in your wallet. Nothing was sent.", { exact: false }).first().waitFor();
    await page.getByText("flowers.csv").waitFor();
    await page.evaluate(() => {
      window.testWallet.declines = false;
    });
  });

  await step("a reload while the wallet is open is told of", async () => {
    await page.evaluate(() => {
      window.testWallet.hold = true;
    });
    await page.getByRole("button", { name: /^Post task for/ }).click();
    await page.locator(".toast[data-stage=signing]").waitFor();
    await page.reload();
    await page.locator(".toast[data-stage=lost]").waitFor();
    await page.getByText("flowers.csv").waitFor();
    await page.getByRole("button", { name: /^Dismiss/ }).first().click();
  });

  let task;
  let watching;
  await step("a reload after sending finds the transaction, and then the task", async () => {
    await checkAll(page);
    await page.getByRole("button", { name: /^Post task for/ }).click();
    await page.locator(".toast[data-stage=sent], .toast[data-stage=mined]").first().waitFor();
    // The form comes late, this once: the transaction is in a block before it is there.
    const late = async (route) => {
      await page.locator(".toast[data-stage=mined], .toast[data-stage=final]").first().waitFor();
      await route.continue();
    };
    await page.route(/\/assets\/new_task_page-/, late, { times: 1 });
    await page.reload();
    await page.waitForURL(/\/tasks\/\d+$/, { timeout: MINUTES });
    task = Number(/\d+$/.exec(page.url())[0]);
    watching = await openPage(context, yard, `/tasks/${task}`);
    await watching.getByText("Live", { exact: true }).waitFor();
    assert.equal(await watching.evaluate(noteSteps, Object.keys(WATCHED)), 0, "no step was made before somebody watched");
    await page.locator(".toast[data-stage=final]").waitFor({ timeout: MINUTES });
    await page.goto(`${yard.url}/new`);
    await page.getByRole("button", { name: /Two moons/ }).waitFor();
  });

  await step("the run is watched live, through reloads", async () => {
    await page.goto(`${yard.url}/tasks/${task}`);
    await waitForState(page, "Training", 3 * MINUTES);
    await page.reload();
    await page.locator(".chart-plot canvas").first().waitFor({ timeout: 3 * MINUTES });
    await shootAll(page, "task-running");
    await page.locator(".stage-done", { hasText: "Training" }).waitFor({ timeout: 5 * MINUTES });
    await page.reload();
    await page.locator(".stage-done", { hasText: "Submitted" }).waitFor({ timeout: 3 * MINUTES });
    await waitForState(page, "Settled", 6 * MINUTES);
    await page.reload();
    await waitForState(page, "Settled", MINUTES);
    await checkPage(page, "a settled task");
  });

  await step("what came live came soon after it was made", async () => {
    const { series } = await (await fetch(`${yard.url}/api/v1/tasks/${task}/metrics?points=4000`)).json();
    const shown = await watching.evaluate(() => window.shownSteps);
    for (const [title, name] of Object.entries(WATCHED)) {
      const lags = lagsOf(series.find((one) => one.name === name), shown[title]);
      const [soonest, median, p90, last] = [0, 0.5, 0.9, 1].map((part) => lags[Math.floor(part * (lags.length - 1))].lag);
      t.diagnostic(
        `${title}: ${lags.length} steps in ${shown[title].length} looks, each in its chart after ${soonest.toFixed(2)} s, ` +
          `median ${median.toFixed(2)} s, p90 ${p90.toFixed(2)} s, at most ${last.toFixed(2)} s`,
      );
      assert.ok(lags.length >= ENOUGH, `${title} has only ${lags.length} steps`);
      assert.ok(shown[title].length >= LOOKS, `${title} was drawn only ${shown[title].length} times`);
      assert.ok(soonest > 0, `${title} has a step that was not made yet`);
      // A busy machine holds back some of them, and not half.
      assert.ok(median <= SOON_S, `half of the steps of ${title} were in their chart after ${median} s`);
    }
    await watching.close();
  });

  await step("all of its parts are there", async () => {
    await page.goto(`${yard.url}/tasks/${task}?tab=trace`);
    await page.getByText("Audited: agrees").first().waitFor();
    await page.getByRole("tab", { name: "Trace" }).press("ArrowRight");
    await page.locator(".events li").first().waitFor();
    assert.match(page.url(), /tab=history/);
    await page.goto(`${yard.url}/tasks/${task}?tab=logs`);
    await page.locator(".log-line").first().waitFor();
    const texts = await page.locator(".log-line > span:last-child").allInnerTexts();
    const count = (word) => texts.filter((text) => text.toLowerCase().includes(word)).length;
    // Any word that some lines have, and others not.
    const words = [...new Set(texts.flatMap((text) => text.toLowerCase().match(/[a-z]{4,}/g) ?? []))];
    const word = words.find((one) => count(one) < texts.length);
    await page.getByLabel("Search the log").fill(word);
    await page.locator(".log-line mark").first().waitFor();
    const found = await page.locator(".log-line > span:last-child").allInnerTexts();
    assert.equal(found.length, count(word));
    for (const text of found) assert.ok(text.toLowerCase().includes(word), `${text} has no ${word}`);
    const marks = await page.locator(".log-line mark").allInnerTexts();
    assert.deepEqual(marks.map((mark) => mark.toLowerCase()), found.map(() => word));
    await page.getByLabel("Search the log").fill("zzz-nothing");
    await page.getByText("No line has that").waitFor();
  });

  await step("the downloaded model is verified in the browser, and right", async () => {
    await page.goto(`${yard.url}/tasks/${task}`);
    const coming = page.waitForEvent("download", { timeout: 3 * MINUTES });
    await page.getByRole("button", { name: "Download model" }).click();
    const download = await coming;
    const path = `${folder}/task.keras`;
    await download.saveAs(path);
    await page.getByText("every block checked in this browser", { exact: false }).waitFor();
    await page.getByText("The chain was asked through your wallet.").waitFor();
    await page.getByText("make up the root that stands in the claim", { exact: false }).waitFor();
    await page.getByText("are in the .keras file, byte for byte", { exact: false }).waitFor();
    await page.getByText("which your browser cannot repeat", { exact: false }).waitFor();
    assert.ok(statSync(path).size > 1000);
    const weights = page.waitForEvent("download", { timeout: MINUTES });
    await page.getByRole("button", { name: "Weights" }).click();
    await (await weights).saveAs(`${folder}/task.safetensors`);
    await page.getByText("The weights have the last of those hashes.").waitFor();
    await checkPage(page, "a task with a download that was checked");
    await shoot(page, "task-checked");
    const python = fileURLToPath(new URL("../../.venv/bin/python", import.meta.url));
    const script = fileURLToPath(new URL("./accuracy.py", import.meta.url));
    const said = execFileSync(python, [script, path, TABLE], { stdio: ["ignore", "pipe", "ignore"] });
    const { accuracy } = JSON.parse(said.toString().trim().split("\n").at(-1));
    assert.ok(accuracy > 0.9, `the model has an accuracy of ${accuracy}`);
    const receipt = page.waitForEvent("download");
    await page.getByRole("link", { name: "Receipt" }).click();
    const file = `${folder}/receipt.json`;
    await (await receipt).saveAs(file);
    assert.equal(JSON.parse(readFileSync(file, "utf8")).task, task);
  });

  await step("it can be run again with changes", async () => {
    await page.getByRole("link", { name: "Run again" }).click();
    await page.getByText(`Begun from task ${task}`, { exact: false }).waitFor();
    assert.equal(await page.getByLabel("Epochs").inputValue(), EPOCHS);
    await page.getByTestId("cost-sentence").waitFor();
  });

  await step("what was begun is replaced only by who says so", async () => {
    const dialog = page.getByRole("dialog");
    const runAgain = async () => {
      await page.goto(`${yard.url}/tasks/${task}`);
      await page.getByRole("link", { name: "Run again" }).click();
      await dialog.getByRole("heading", { name: "Replace your draft?" }).waitFor();
    };
    const epochs = page.getByLabel("Epochs");
    await epochs.fill("5");
    await runAgain();
    await checkPage(page, "the question before a draft is replaced");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.equal(await epochs.inputValue(), "5");
    await runAgain();
    await dialog.getByRole("button", { name: "Replace it" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.equal(await epochs.inputValue(), EPOCHS);
    await page.getByRole("button", { name: "Start over" }).click();
  });
  await context.close();
});

for (const wallet of ["Test Wallet", "Burner wallet"]) {
  test(`a task is cancelled, and its money withdrawn: ${wallet}`, { timeout: 6 * MINUTES }, async () => {
    await yard.order("pause");
    const context = await visitor({ wallet: wallet === "Test Wallet" ? {} : false });
    const page = await openPage(context, yard, "/new");
    await connect(page, wallet);
    await chooseExample(page);
    await checkAll(page);
    const task = await post(page);
    await waitForState(page, "Open", MINUTES);
    await page.reload();
    await waitForState(page, "Open", MINUTES);
    await page.locator(".stage-done", { hasText: "Posted" }).waitFor();
    await page.getByRole("button", { name: "Cancel task" }).click();
    await waitForState(page, "Cancelled", MINUTES);
    await page.getByText("Refunded").waitFor();
    await reloadSame(page, "a cancelled task");
    await checkPage(page, "a cancelled task");
    await page.goto(`${yard.url}/account`);
    await page.getByRole("link", { name: new RegExp(`^${task} ·`) }).waitFor();
    await page.getByRole("button", { name: /^Withdraw/ }).click();
    await page.locator(".toast[data-stage=final]", { hasText: "Withdraw" }).waitFor({ timeout: MINUTES });
    await page.getByRole("button", { name: /^Withdraw/ }).waitFor({ state: "detached" });
    await context.close();
    await yard.order("resume");
  });
}

test("a task whose workers fall silent fails, and all of it comes back", { timeout: 8 * MINUTES }, async () => {
  const context = await visitor();
  const page = await openPage(context, yard, "/new");
  await connect(page);
  await chooseExample(page);
  await checkAll(page);
  await post(page);
  await waitForState(page, "Training", 3 * MINUTES);
  await yard.order("pause");
  // The time to train is over at once.
  await ask(yard, "evm_increaseTime", [24 * 3600]);
  await ask(yard, "evm_mine");
  await page.getByRole("button", { name: "Move on" }).click({ timeout: MINUTES });
  await waitForState(page, "Failed", MINUTES);
  await page.getByText("too few workers answered alike, or in time", { exact: false }).first().waitFor();
  await page.locator(".facts > div", { hasText: "Refunded" }).getByText("0.12 ETH").waitFor();
  await reloadSame(page, "a failed task");
  await shootAll(page, "task-failed");
  await context.close();
  await yard.order("resume");
});

test("filters of the market stay in the address bar", { timeout: 2 * MINUTES }, async () => {
  const { address } = yard.people.requester;
  const wanted = `state=failed&state=cancelled&sort=oldest&search=${address}`;
  const { items } = await (await fetch(`${yard.url}/api/v1/tasks?${wanted}`)).json();
  const titles = items.map((item) => `${item.id} ·`);
  const context = await visitor({ wallet: false });
  const page = await openPage(context, yard);
  const rows = async () =>
    (await page.locator("tbody .row-link").allInnerTexts()).map((text) => /^\d+ ·/.exec(text)[0]);
  const isFiltered = async () => {
    await page.waitForFunction(
      (count) => document.querySelectorAll("tbody .row-link").length === count,
      items.length,
    );
    assert.deepEqual(await rows(), titles);
    assert.equal(new URL(page.url()).search, `?show=failed&sort=oldest&q=${address}`);
    assert.equal(await page.getByRole("button", { name: "Failed" }).getAttribute("aria-pressed"), "true");
    assert.equal(await page.getByRole("button", { name: "All" }).getAttribute("aria-pressed"), "false");
    assert.equal(await page.getByLabel("Order").inputValue(), "oldest");
    assert.equal(await page.getByLabel("Search tasks").inputValue(), address);
  };
  await page.locator("tbody .row-link").first().waitFor();
  const all = await rows();
  assert.ok(items.length > 1 && items.length < all.length, "the filters leave some and take some");

  await page.getByRole("button", { name: "Failed" }).click();
  await page.getByLabel("Order").selectOption("oldest");
  await page.getByLabel("Search tasks").fill(address);

  await isFiltered();
  await page.reload();
  await isFiltered();
  await context.close();
});

test("every page looks right in both themes on a desk and on a phone", { timeout: 6 * MINUTES }, async () => {
  const workers = await (await fetch(`${yard.url}/api/v1/workers`)).json();
  const pages = {
    market: "/",
    "market-filtered": "/?show=settled&sort=-reward",
    task: "/tasks/1",
    "task-log": "/tasks/1?tab=logs",
    "task-trace": "/tasks/1?tab=trace",
    "task-history": "/tasks/1?tab=history",
    "task-terms": "/tasks/1?tab=terms",
    "new-task": "/new",
    workers: "/workers",
    worker: `/workers/${workers.items[0].address}`,
    account: "/account",
    missing: "/nowhere",
  };
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
      const context = await visitor({ context: { colorScheme, viewport } });
      const page = await openPage(context, yard);
      await connect(page);
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(yard.url + path);
        await page.locator("h1").first().waitFor();
        await page.waitForFunction(() => !document.querySelector(".skeleton"));
        if (name === "task") await page.locator(".chart-plot canvas").first().waitFor();
        await checkPage(page, `${name} (${size}, ${colorScheme})`);
        await shoot(page, `${name}-${size}-${colorScheme}`);
      }
      await context.close();
    }
  }
});

test("nothing jumps while a page loads", { timeout: 2 * MINUTES }, async () => {
  for (const [viewport, path] of [DESKTOP, PHONE].flatMap((size) => ["/", "/tasks/1", "/workers"].map((path) => [size, path]))) {
    const context = await visitor({ wallet: false, context: { viewport } });
    await checkSteady(await openPage(context, yard, path), `${path} in a window of ${viewport.width} pixels`);
    await context.close();
  }
});
