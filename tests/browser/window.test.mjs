/** The window in which anyone may challenge, in a market in which no agent acts. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, checkPage, connect, DESKTOP, openPage, shoot, startBrowser, startYardOf } from "./stage.mjs";
import { addWallet } from "./wallet.mjs";

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

async function visit(path) {
  const context = await browser.newContext({ viewport: DESKTOP });
  await addWallet(context, yard);
  const page = await openPage(context, yard, path);
  await connect(page);
  return page;
}

function stateOf(page, wanted) {
  return page.locator(".head .badge", { hasText: wanted }).first();
}

test("who has no credit challenges with two transactions", { timeout: 3 * MINUTES }, async () => {
  // Money in the purse and none in the market, as a requester who comes for the first time.
  const page = await visit(`/tasks/${yard.tasks[0]}?tab=trace`);
  await stateOf(page, "Window").waitFor();
  await page.getByRole("button", { name: "Challenge a segment" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("radio", { name: /Data is not served/ }).check();
  await dialog.getByRole("textbox", { name: "Segment" }).fill("1");
  await dialog.getByText("You sign two transactions").waitFor();
  await checkPage(page, "the dialog of a challenge");
  await shoot(page, "challenge");

  await dialog.getByRole("button", { name: "Challenge segment 1" }).click();

  await stateOf(page, "Disputed").waitFor({ timeout: MINUTES });
  await dialog.waitFor({ state: "detached" });
  await page.getByText("Challenged", { exact: true }).first().waitFor();
  const asked = await page.evaluate(() => window.testWallet.asked);
  assert.equal(asked.filter((one) => one === "eth_sendTransaction").length, 2);
  await page.context().close();
});

test("anyone settles once the window is over", { timeout: 3 * MINUTES }, async () => {
  const task = yard.tasks[1];
  const page = await visit(`/tasks/${task}`);
  await stateOf(page, "Window").waitFor();
  await page.getByText(/^From .*: anyone can pay everyone/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Settle and pay everyone" }).count(), 0);
  const view = await (await fetch(`${yard.url}/api/v1/tasks/${task}`)).json();
  await ask(yard, "evm_setNextBlockTimestamp", [view.task.deadline + 1]);
  await ask(yard, "evm_mine");

  await page.getByRole("button", { name: "Settle and pay everyone" }).click({ timeout: MINUTES });

  await stateOf(page, "Settled").waitFor({ timeout: MINUTES });
  await page.locator(".toast[data-stage=final]", { hasText: `task ${task}` }).waitFor({ timeout: MINUTES });
  await page.locator(".facts > div", { hasText: "Spent" }).getByText(/[1-9]/).waitFor();
  await checkPage(page, "a task that a stranger settled");
  await page.context().close();
});
