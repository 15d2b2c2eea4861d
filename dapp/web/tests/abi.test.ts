import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
// @ts-expect-error: a script without types
import { TARGET, text } from "../scripts/write_abi.mjs";

it("the page's ABI is that of the compiled contracts (run 'npm run generate')", () => {
  expect(readFileSync(TARGET, "utf8")).toBe(text());
});
