/** What is a requester's own: its tasks, notifications and drafts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkPage, shootAll } from "./stage.mjs";

const MINUTES = 60_000;

/** `visit` opens a page of who has posted many tasks; `settleNext` has somebody settle one of them. */
export function accountTests({ visit, settleNext }) {
  async function signedIn() {
    const page = await visit("/account");
    await page.getByRole("button", { name: "Sign in with Ethereum" }).click();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    return page;
  }

  test("notifications tell of a settled task, are marked as read, and go on with More", { timeout: 3 * MINUTES }, async () => {
    const page = await signedIn();
    const list = page.getByRole("list", { name: "Notifications" });
    const lines = list.getByRole("listitem");
    await list.getByText(/settled/).first().waitFor();
    const heading = (name) => page.getByRole("heading", { name, exact: true });
    await page.getByRole("heading", { name: /^Notifications \(\d+ new\)$/ }).waitFor();
    assert.equal(await lines.count(), 30);
    await shootAll(page, "account-signed-in");

    await page.getByRole("button", { name: "More notifications" }).click();
    await lines.nth(30).waitFor();
    const texts = await lines.allInnerTexts();
    assert.ok(texts.length > 30 && texts.length <= 60);
    await page.getByRole("button", { name: "Mark all as read" }).click();
    await heading("Notifications").waitFor();
    assert.equal(await list.locator(".bold").count(), 0);
    assert.equal(await lines.count(), texts.length, "those that were asked for stay");
    await page.reload();
    await heading("Notifications").waitFor();

    // What happens then is new again, and told without a reload.
    const task = await settleNext();
    await page.getByRole("heading", { name: /^Notifications \([12] new\)$/ }).waitFor();
    await list.locator(".bold", { hasText: `Task ${task}: ` }).first().waitFor();
    await lines.first().getByRole("link", { name: `Task ${task}` }).click();
    await page.locator(".head .badge", { hasText: "Settled" }).first().waitFor();
    await page.context().close();
  });

  test("all tasks of a requester can be reached", { timeout: 2 * MINUTES }, async () => {
    const page = await visit("/account");
    const rows = page.locator("tbody .row-link");
    await rows.nth(19).waitFor();
    assert.equal(await rows.count(), 20);
    const more = page.getByRole("button", { name: "More tasks" });
    await more.click();
    await rows.nth(20).waitFor();
    await more.waitFor({ state: "detached" });
    const numbers = (await rows.allInnerTexts()).map((text) => Number.parseInt(text, 10));
    assert.equal(new Set(numbers).size, numbers.length);
    assert.ok(numbers.includes(1), "the first of all is there");
    await checkPage(page, "the account with all tasks");
    await page.context().close();
  });

  test("a draft is kept with the account, opened, kept again and deleted", { timeout: 3 * MINUTES }, async () => {
    const page = await signedIn();
    const drafts = page.getByRole("list", { name: "Drafts" });
    const goTo = (name) => page.getByRole("link", { name, exact: true }).first().click();
    assert.equal(await drafts.count(), 0);
    await goTo("New task");
    await page.getByRole("button", { name: /Two moons/ }).click();
    await page.getByLabel("Epochs").fill("7");
    await page.getByRole("button", { name: "Save to account" }).click();
    await page.getByRole("button", { name: "Saved to your account" }).waitFor();
    await page.getByRole("button", { name: "Start over" }).click();
    await page.getByRole("button", { name: /Two moons/ }).waitFor();

    await goTo("Account");
    const open = drafts.getByRole("listitem").filter({ hasText: "Two moons" });
    await checkPage(page, "the account with a draft");
    await open.getByRole("button", { name: "Go on with it" }).click();
    assert.equal(await page.getByLabel("Epochs").inputValue(), "7");
    await page.getByLabel("Epochs").fill("9");
    await page.getByRole("button", { name: "Save to account" }).click();
    await page.getByRole("button", { name: "Saved to your account" }).waitFor();

    // In its old place; and what is in the form is not replaced unasked.
    await goTo("Account");
    await open.getByRole("button", { name: "Go on with it" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Replace it" }).click();
    assert.equal(await page.getByLabel("Epochs").inputValue(), "9");
    await goTo("Account");
    assert.equal(await drafts.getByRole("listitem").count(), 1);
    await open.getByRole("button", { name: "Delete" }).click();
    await drafts.waitFor({ state: "detached" });
    await page.context().close();
  });

  test("where drafts cannot be loaded, that is said, and they can be asked for again", { timeout: 2 * MINUTES }, async () => {
    const page = await visit("/account");
    const error = { code: "refused", message: "not now", fix: "ask later", field: null, retry_after_s: null };
    await page.route("**/api/v1/drafts", (route) => route.fulfill({ status: 429, json: { error } }));
    await page.getByRole("button", { name: "Sign in with Ethereum" }).click();
    await page.getByText("Your drafts could not be loaded").waitFor();
    await checkPage(page, "the account without its drafts");
    await page.unroute("**/api/v1/drafts");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Your drafts could not be loaded").waitFor({ state: "detached" });
    await page.context().close();
  });
}
