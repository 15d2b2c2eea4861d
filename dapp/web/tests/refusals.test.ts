import { type Abi, encodeErrorResult, stringToHex } from "viem";
import { describe, expect, it } from "vitest";
import { marketAbi } from "~/protocol/abi";
import { explainFailure, isRejection, refusalText, revertData } from "~/protocol/refusals";

function encoded(errorName: string, args: readonly unknown[]): `0x${string}` {
  return encodeErrorResult({ abi: marketAbi as Abi, errorName, args });
}

const WHO = "0x5FbDB2315678afecb367f032d93F642f64180aa3";

describe("reverts become sentences", () => {
  it.each<[string, readonly unknown[], RegExp]>([
    ["MarketUnexpectedState", [7n, 2], /^Task 7 is training: this cannot be done now\.$/],
    ["MarketNotRequester", [7n, WHO], /Only who posted task 7 may do this, and that is not 0x5FbD…0aa3/],
    ["MarketInsufficientCredit", [WHO, 0n, 10n ** 17n], /credit is 0 ETH, and this needs 0\.1 ETH/],
    ["MarketInvalidTerms", [stringToHex("auditFee", { size: 32 })], /because of “auditFee”/],
    ["MarketTooFewAuditors", [1n, 3n], /^Only 1 auditors of this class are there, and the task demands 3\.$/],
    ["MarketDrawPending", [7n, 120n], /waits for block 120/],
    ["MarketUnexpectedDispute", [7n, 3n, 4], /is ruling/],
    ["EnforcedPause", [], /takes no new tasks/],
  ])("%s", (name, args, sentence) => {
    expect(refusalText(encoded(name, args))).toMatch(sentence);
  });

  it("has a sentence of its own for every error of the market", () => {
    const errors = (marketAbi as Abi).filter(
      (entry) => entry.type === "error" && entry.name.startsWith("Market"),
    );
    expect(errors.length).toBeGreaterThan(40);
    for (const error of errors) {
      if (error.type !== "error") continue;
      const args = error.inputs.map((input) =>
        input.type === "address"
          ? WHO
          : input.type === "bytes32"
            ? `0x${"61".repeat(32)}`
            : input.type === "uint8"
              ? 1
              : 1n,
      );
      expect(refusalText(encoded(error.name, args)), error.name).not.toMatch(/refused with|undefined/);
    }
  });

  it("says so where it does not know the error", () => {
    expect(refusalText("0xdeadbeef")).toMatch(/without a reason that this page knows/);
  });
});

describe("what wallets and nodes throw", () => {
  const data = encoded("MarketNoVacancy", [3n]);

  it.each([
    [{ data }],
    [{ cause: { cause: { data } } }],
    [{ data: { data } }],
    [{ error: { data: `Reverted ${data}` } }],
    [{ data: { result: data } }],
  ])("is searched for the bytes of the revert: %j", (error) => {
    expect(revertData(error)).toBe(data);
    expect(explainFailure(error)).toBe("Task 3 has no free slot.");
  });

  it("is a person's no where it says so", () => {
    const error = {
      name: "TransactionExecutionError",
      cause: { code: 4001, message: "User rejected the request." },
    };
    expect(isRejection(error)).toBe(true);
    expect(explainFailure(error)).toBe("You declined in your wallet. Nothing was sent.");
  });

  it("is too little money where it says so", () => {
    expect(explainFailure(new Error("insufficient funds for gas * price + value"))).toMatch(/too little ETH/);
  });

  it("is told in one line otherwise", () => {
    expect(explainFailure(new Error("something odd\n\nRequest Arguments: …"))).toBe("something odd");
    expect(explainFailure(null)).toMatch(/Something went wrong/);
  });
});
