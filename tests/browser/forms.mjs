/** What the form of a new task takes: models and data of each kind, large files in pieces, each mode. Posts nothing. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { checkPage, connect, openPage, shoot } from "./stage.mjs";

const MINUTES = 60_000;
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DATA = "an .npz, a CSV, a folder of images, or TFRecords";

/** `world` says where the market is and makes visitors of it; both are there when the tests run. */
export function formTests(world) {
  const folder = mkdtempSync(`${tmpdir()}/trainyard-forms-`);
  after(() => rmSync(folder, { recursive: true }));

  async function formOf(options) {
    const context = await world.visitor(options);
    return { context, page: await openPage(context, world.yard(), "/new") };
  }

  async function chosen(page, name, records) {
    await page.getByRole("button", { name: "Change data" }).waitFor({ timeout: MINUTES });
    await page.locator("strong", { hasText: name }).waitFor();
    await page.getByText(`${records} records to train on`, { exact: false }).waitFor();
  }

  async function forget(page) {
    await page.getByRole("button", { name: "Change data" }).click();
    await page.getByLabel(`File: ${DATA}`).waitFor({ state: "attached" });
  }

  test("a .keras file and data of each kind are taken and shown", { timeout: 5 * MINUTES }, async () => {
    execFileSync(`${ROOT}.venv/bin/python`, ["-W", "ignore", "-m", "tests.browser.make_files", folder], { cwd: ROOT });
    const { context, page } = await formOf({ wallet: false });

    await page.getByLabel("File: a .keras file or a Keras JSON").setInputFiles(`${folder}/model.keras`);
    await page.getByRole("button", { name: "Change model" }).waitFor({ timeout: MINUTES });
    await page.getByText("2 layers · 67 parameters", { exact: false }).waitFor();
    await page.getByRole("region", { name: "Layers" }).getByText("hidden").waitFor();

    // Dropped, as from a folder of the person's own.
    const dropped = await page.evaluateHandle((bytes) => {
      const transfer = new DataTransfer();
      const data = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
      transfer.items.add(new File([data], "digits.npz"));
      return transfer;
    }, readFileSync(`${folder}/digits.npz`).toString("base64"));
    await page.getByRole("group", { name: `Drop ${DATA}` }).dispatchEvent("drop", { dataTransfer: dropped });
    await chosen(page, "digits.npz", 36);
    const pictures = page.getByRole("region", { name: "First records" }).locator("img");
    await pictures.first().waitFor();
    assert.ok(await pictures.first().evaluate((image) => image.complete && image.naturalWidth > 0));
    await forget(page);

    await page.getByLabel(`Folder: ${DATA}`).setInputFiles(`${folder}/pets`);
    await chosen(page, "pets", 11);
    await page.getByText("2 classes", { exact: false }).waitFor();
    await page.getByRole("region", { name: "First records" }).getByText("cats").first().waitFor();
    await checkPage(page, "the form with pictures");
    await shoot(page, "new-task-pictures");
    await forget(page);

    // What it learns is chosen, also where that is what stands first.
    await page.getByLabel(`File: ${DATA}`).setInputFiles(`${folder}/plain.npz`);
    const learned = page.getByLabel("Predict");
    await learned.waitFor({ timeout: MINUTES });
    assert.equal(await learned.inputValue(), "");
    await page.getByText("Choose the column that the model learns.").waitFor();
    assert.equal(await page.getByTestId("cost-sentence").count(), 0);
    await checkPage(page, "the form before a target is chosen");
    await learned.selectOption("ends");
    await chosen(page, "plain.npz", 36);
    await page.getByText("2 classes", { exact: false }).waitFor();
    assert.equal(await learned.inputValue(), "ends");
    await forget(page);

    await page.getByLabel(`File: ${DATA}`).setInputFiles(`${folder}/flowers.tfrecord`);
    await chosen(page, "flowers.tfrecord", 54);
    await page.getByTestId("cost-sentence").waitFor();
    const train = await page.evaluate(() => JSON.parse(localStorage.getItem("trainyard.draft")).data.train);
    await forget(page);

    // What was stored once is named by its CID.
    const cid = /bafy\w+|bafk\w+/.exec(JSON.stringify(train))[0];
    await page.getByLabel("Or by CID").fill("https://example.org/data.npz");
    await page.getByText("This is no CID", { exact: false }).waitFor();
    await page.getByLabel("Or by CID").fill(`ipfs://${cid}`);
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByRole("button", { name: "Change data" }).waitFor({ timeout: MINUTES });
    await context.close();
  });

  test("what was uploaded is kept until it is read, through a busy server and a reload", { timeout: 3 * MINUTES }, async () => {
    const { context, page } = await formOf({ wallet: false });
    let sent = 0;
    page.on("request", (request) => {
      if (request.method() === "POST" && request.url().endsWith("/api/v1/content")) sent += 1;
    });
    const unread = (name) => page.getByText(`${name} is uploaded, and was not read yet`);
    const read = page.getByRole("button", { name: "Read it" });
    const error = { code: "unavailable", message: "the engine is busy; try again in a moment", retry_after_s: 15 };
    const busy = { status: 503, headers: { "retry-after": "15" }, json: { error: { fix: null, field: null, ...error } } };
    await page.route("**/api/v1/models", (route) => route.fulfill(busy), { times: 1 });
    await page.getByLabel("File: a .keras file or a Keras JSON").setInputFiles(`${folder}/model.keras`);
    await unread("model.keras").waitFor();
    await page.getByText("The engine is busy", { exact: false }).waitFor();
    await checkPage(page, "the form with a model that was not read yet");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("button", { name: "Change model" }).waitFor({ timeout: MINUTES });

    let ask;
    const asked = new Promise((resolve) => (ask = resolve));
    // Held until the page that asked is gone.
    await page.route("**/api/v1/data/preview", () => ask(), { times: 1 });
    await page.getByLabel(`File: ${DATA}`).setInputFiles(`${folder}/digits.npz`);
    await asked;
    await page.reload();
    await unread("digits.npz").waitFor();
    await read.click();
    await chosen(page, "digits.npz", 36);
    assert.equal(await unread("digits.npz").count(), 0);
    assert.equal(sent, 2, "nothing is sent twice");
    await context.close();
  });

  test("a large file comes in pieces, and goes on after a broken line and a reload", { timeout: 3 * MINUTES }, async () => {
    const { context, page } = await formOf({ wallet: false });
    const offsets = [];
    page.on("request", (request) => {
      if (request.method() === "PATCH") offsets.push(Number(request.headers()["upload-offset"]));
    });
    let pieces = 0;
    await page.route("**/api/v1/uploads/*", async (route) => {
      if (route.request().method() !== "PATCH") return route.continue();
      pieces += 1;
      // The second piece is lost on its way, and the third waits until the page is gone.
      if (pieces === 2) return route.abort("connectionreset");
      if (pieces === 3) return undefined;
      return route.continue();
    });
    await page.getByLabel(`File: ${DATA}`).setInputFiles(`${folder}/large.npz`);
    await page.waitForRequest((request) => request.method() === "PATCH" && pieces >= 2, { timeout: MINUTES });
    await page.reload();
    await page.getByLabel(`File: ${DATA}`).setInputFiles(`${folder}/large.npz`);
    await chosen(page, "large.npz", "1,170");

    const piece = 4 * 1024 * 1024;
    assert.equal(offsets[0], 0);
    assert.equal(offsets.filter((offset) => offset === 0).length, 1, "nothing is sent twice");
    assert.deepEqual([...new Set(offsets)].sort((a, b) => a - b), [0, piece, 2 * piece]);
    await context.close();
  });

  test("a draft is the same in two windows of a browser", { timeout: 2 * MINUTES }, async () => {
    const { context, page } = await formOf({ wallet: false });
    const other = await openPage(context, world.yard(), "/new");
    await page.getByRole("button", { name: /Two moons/ }).click();
    await other.getByLabel("Epochs").fill("7");
    const epochs = await page.getByLabel("Epochs").elementHandle();
    await page.waitForFunction((input) => input.value === "7", epochs);
    await page.getByRole("button", { name: "Start over" }).click();
    await other.getByRole("button", { name: /Two moons/ }).waitFor();
    assert.deepEqual([...page.faults, ...other.faults], []);
    await context.close();
  });

  test("rounds and asynchronous training have their own terms, and pass the check", { timeout: 4 * MINUTES }, async () => {
    const { context, page } = await formOf();
    await connect(page);
    await page.getByRole("button", { name: /Two moons/ }).click();
    const sentence = page.getByTestId("cost-sentence");
    await sentence.waitFor();
    const single = await sentence.textContent();

    await page.getByRole("radio", { name: /In rounds/ }).check();
    await page.getByLabel("Steps in a round").fill("5");
    await page.getByLabel("Workers", { exact: true }).fill("2");
    await page.waitForFunction((before) => document.querySelector("[data-testid=cost-sentence]")?.textContent !== before, single);
    await page.reload();
    assert.equal(await page.getByLabel("Steps in a round").inputValue(), "5");
    await page.getByRole("button", { name: "Check everything" }).click();
    await page.getByRole("button", { name: /^Post task for/ }).waitFor({ timeout: 2 * MINUTES });

    await page.getByRole("radio", { name: /Asynchronous/ }).check();
    await page.getByLabel("Steps in a round").waitFor({ state: "detached" });
    await page.getByLabel("Evaluators").waitFor();
    await page.getByLabel("Target score").fill("50");
    await page.getByText("their median counts", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Check everything" }).click();
    await page.getByRole("button", { name: /^Post task for/ }).waitFor({ timeout: 2 * MINUTES });
    const asked = await page.evaluate(() => window.testWallet.asked);
    assert.ok(!asked.includes("eth_sendTransaction"), "nothing is posted");
    await checkPage(page, "the form of an asynchronous task");
    await page.getByRole("button", { name: "Start over" }).click();
    await context.close();
  });
}
