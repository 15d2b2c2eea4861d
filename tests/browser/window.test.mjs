/** A market in which no agent acts: what anyone may do in the window, and what stays as it is. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { accountTests } from "./account.mjs";
import {
  ask,
  checkPage,
  checkSteady,
  connect,
  DESKTOP,
  openPage,
  PHONE,
  reloadSame,
  shootAll,
  startBrowser,
  startYardOf,
} from "./stage.mjs";
import { addWallet } from "./wallet.mjs";

const require = createRequire(new URL("../../dapp/web/package.json", import.meta.url));
const { encodeFunctionData, parseAbi } = require("viem");

const MINUTES = 60_000;
let yard;
let browser;

before(async () => {
  yard = await startYardOf("tests.browser.window_yard");
  browser = await startBrowser();
}, { timeout: 3 * MINUTES });

after(async () => {
  await browser?.close();
  await yard?.stop();
});

async function visit(path, wallet = {}) {
  const context = await browser.newContext({ viewport: DESKTOP });
  await addWallet(context, yard, wallet);
  const page = await openPage(context, yard, path);
  await connect(page);
  return page;
}

function stateOf(page, wanted) {
  return page.locator(".head .badge", { hasText: wanted }).first();
}

/** Until the chain's time is past the window of a task. */
async function endWindow(task) {
  const view = await (await fetch(`${yard.url}/api/v1/tasks/${task}`)).json();
  const head = await ask(yard, "eth_getBlockByNumber", ["latest", false]);
  if (Number(head.timestamp) > view.task.deadline) return;
  await ask(yard, "evm_setNextBlockTimestamp", [view.task.deadline + 1]);
  await ask(yard, "evm_mine");
}

/** Somebody else settles, past the page. */
async function settle(task) {
  const abi = parseAbi(["function settle(uint256 id)"]);
  const data = encodeFunctionData({ abi, functionName: "settle", args: [BigInt(task)] });
  const hash = await ask(yard, "eth_sendTransaction", [{ from: yard.stranger, to: yard.market, data }]);
  let receipt = null;
  // It is mined at once, but not always before the node has answered.
  while (!receipt) receipt = await ask(yard, "eth_getTransactionReceipt", [hash]);
  assert.equal(Number(receipt.status), 1);
}

test("a task in any state is the same after a reload", { timeout: 3 * MINUTES }, async () => {
  const { failed, settled, cancelled, submitted, auditing, windows } = yard.tasks;
  const states = { submitted, auditing, window: windows[0], settled, failed, cancelled };
  const page = await visit("/");
  for (const [state, task] of Object.entries(states)) {
    await page.goto(`${yard.url}/tasks/${task}?tab=history`);
    await stateOf(page, new RegExp(state, "i")).waitFor();
    await page.locator(".events li").first().waitFor();
    await reloadSame(page, `a task that is ${state}`);
  }
  await page.context().close();
});

test("nothing jumps while a task is loaded, on a desk and on a phone", { timeout: 2 * MINUTES }, async () => {
  const { failed, settled, cancelled, windows } = yard.tasks;
  for (const viewport of [DESKTOP, PHONE]) {
    for (const task of [failed, settled, cancelled, windows[1]]) {
      const context = await browser.newContext({ viewport });
      const page = await openPage(context, yard, `/tasks/${task}`);
      await checkSteady(page, `task ${task} in a window of ${viewport.width} pixels`);
      await context.close();
    }
  }
});

test("who has no credit challenges with two transactions", { timeout: 3 * MINUTES }, async () => {
  // Money in the purse and none in the market, as a requester who comes for the first time.
  const page = await visit(`/tasks/${yard.tasks.windows[0]}?tab=trace`);
  await stateOf(page, "Window").waitFor();
  await page.getByRole("button", { name: "Challenge a segment" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("radio", { name: /Data is not served/ }).check();
  await dialog.getByRole("textbox", { name: "Segment" }).fill("1");
  await dialog.getByText("You sign two transactions").waitFor();
  await shootAll(page, "challenge");

  await dialog.getByRole("button", { name: "Challenge segment 1" }).click();

  await stateOf(page, "Disputed").waitFor({ timeout: MINUTES });
  await dialog.waitFor({ state: "detached" });
  await page.getByText("Challenged", { exact: true }).first().waitFor();
  const asked = await page.evaluate(() => window.testWallet.asked);
  assert.equal(asked.filter((one) => one === "eth_sendTransaction").length, 2);
  await reloadSame(page, "a task that is disputed");
  await shootAll(page, "task-challenged");
  await page.context().close();
});

test("anyone settles once the window is over", { timeout: 3 * MINUTES }, async () => {
  const task = yard.tasks.windows[1];
  const page = await visit(`/tasks/${task}`);
  await stateOf(page, "Window").waitFor();
  await page.getByText(/^From .*: anyone can pay everyone/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Settle and pay everyone" }).count(), 0);
  await endWindow(task);

  await page.getByRole("button", { name: "Settle and pay everyone" }).click({ timeout: MINUTES });

  await stateOf(page, "Settled").waitFor({ timeout: MINUTES });
  await page.locator(".toast[data-stage=final]", { hasText: `task ${task}` }).waitFor({ timeout: MINUTES });
  await page.locator(".facts > div", { hasText: "Spent" }).getByText(/[1-9]/).waitFor();
  await checkPage(page, "a task that a stranger settled");
  await page.context().close();
});

test("who is forestalled while the wallet is open is told why the market refused", { timeout: 3 * MINUTES }, async () => {
  const task = yard.tasks.windows[2];
  await endWindow(task);
  const page = await visit(`/tasks/${task}`);
  await page.evaluate(() => {
    window.testWallet.hold = true;
  });
  await page.getByRole("button", { name: "Settle and pay everyone" }).click({ timeout: MINUTES });
  await page.locator(".toast[data-stage=signing]").waitFor();
  await page.waitForFunction(() => window.testWallet.release);
  await settle(task);
  await page.evaluate(() => window.testWallet.release());

  const toast = page.locator(".toast[data-stage=failed]");
  await toast.getByText(`Task ${task} is settled: this cannot be done now.`).waitFor({ timeout: MINUTES });
  await stateOf(page, "Settled").waitFor();
  await checkPage(page, "a task that somebody else settled first");
  await page.reload();
  await toast.getByText(`Task ${task} is settled: this cannot be done now.`).waitFor();
  await page.context().close();
});

accountTests({
  visit: (path) => visit(path, { key: yard.people.poster.key }),
  settleNext: async () => {
    const task = yard.tasks.windows[3];
    await endWindow(task);
    await settle(task);
    return task;
  },
});
