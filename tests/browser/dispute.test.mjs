/** A worker that makes its states up: seen by auditors, judged by referees, told on the page. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, DESKTOP, openPage, reloadSame, shootAll, startBrowser, startYard } from "./stage.mjs";
import { addWallet } from "./wallet.mjs";

const MINUTES = 60_000;
let yard;
let browser;

before(async () => {
  yard = await startYard("lazy");
  browser = await startBrowser();
}, { timeout: 5 * MINUTES });

after(async () => {
  await browser?.close();
  await yard?.stop();
});

test("a cheat is disputed and found wrong, and the requester has its money back", { timeout: 15 * MINUTES }, async () => {
  const context = await browser.newContext({ viewport: DESKTOP });
  await addWallet(context, yard);
  const page = await openPage(context, yard, "/new");
  await connect(page);
  await page.getByRole("button", { name: /Two moons/ }).click();
  await page.getByRole("button", { name: "Check everything" }).click();
  await page.getByRole("button", { name: /^Post task for/ }).click({ timeout: 3 * MINUTES });
  await page.waitForURL(/\/tasks\/\d+$/, { timeout: MINUTES });
  await page.locator(".head .badge", { hasText: "Failed" }).first().waitFor({ timeout: 12 * MINUTES });
  await page.getByText("referees found the workers' claim wrong", { exact: false }).first().waitFor();
  await page.getByRole("tab", { name: "Trace" }).click();
  await page.getByText("Found wrong").first().waitFor();
  await page.getByText("the workers are wrong").first().waitFor();
  const refunded = await page.locator(".facts > div", { hasText: "Refunded" }).innerText();
  assert.match(refunded, /[1-9]/);
  await reloadSame(page, "a task that was disputed");
  await shootAll(page, "task-disputed");
  await context.close();
});
