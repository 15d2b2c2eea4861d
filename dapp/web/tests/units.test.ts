import { describe, expect, it } from "vitest";
import {
  exactAmount,
  formatAmount,
  formatBytes,
  formatCountdown,
  formatDuration,
  formatElapsed,
  formatMoment,
  formatPercent,
  parseAmount,
  plural,
  shortAddress,
} from "~/protocol/units";

const ETHER = 10n ** 18n;

describe("amounts", () => {
  it.each([
    [0n, "0 ETH"],
    [ETHER, "1 ETH"],
    [ETHER / 10n, "0.1 ETH"],
    [220_000_000_000_000_000n, "0.22 ETH"],
    [1234n * ETHER + ETHER / 2n, "1,234.5 ETH"],
    [1n, "<0.000001 ETH"],
    [-ETHER / 4n, "-0.25 ETH"],
    [999_999_999_999_999_999n, "1 ETH"],
  ])("shows %s wei as %s", (wei, text) => {
    expect(formatAmount(wei)).toBe(text);
  });

  it("takes decimal strings as the server gives them", () => {
    expect(formatAmount("100000000000000000", "ETH", 4)).toBe("0.1 ETH");
  });

  it.each([
    ["0.1", ETHER / 10n],
    ["1", ETHER],
    [" 2.5 ", (5n * ETHER) / 2n],
    ["0,25", ETHER / 4n],
    [".5", ETHER / 2n],
    ["0.000000000000000001", 1n],
  ])("reads %s", (text, wei) => {
    expect(parseAmount(text)).toBe(wei);
  });

  it.each(["", ".", "-1", "1e18", "0x10", "1.2.3", "0.0000000000000000001", "abc"])(
    "reads no amount in “%s”",
    (text) => {
      expect(parseAmount(text)).toBeNull();
    },
  );

  it("writes every digit of what it reads", () => {
    for (const wei of [1n, 123_456_789n, ETHER, 7n * ETHER + 5n])
      expect(parseAmount(exactAmount(wei))).toBe(wei);
  });
});

describe("times", () => {
  it.each([
    [0, "0 s"],
    [59, "59 s"],
    [90, "1 min 30 s"],
    [120, "2 min"],
    [3600, "1 h"],
    [3900, "1 h 5 min"],
    [86_400, "1 d"],
    [90_000, "1 d 1 h"],
  ])("shows %s seconds as %s", (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });

  it.each([
    [0, "0.0 s"],
    [0.004, "under 0.1 s"],
    [0.31, "0.3 s"],
    [9.94, "9.9 s"],
    [75, "1 min 15 s"],
  ])("shows that something took %s seconds as %s", (seconds, text) => {
    expect(formatElapsed(seconds)).toBe(text);
  });

  it.each([
    [5, "0:05"],
    [65, "1:05"],
    [3723, "1:02:03"],
    [-3, "0:00"],
  ])("counts %s seconds down as %s", (seconds, text) => {
    expect(formatCountdown(seconds)).toBe(text);
  });

  it("leaves the date out today, and names it on other days", () => {
    const noon = Date.UTC(2026, 10, 18, 12, 0) / 1000;
    expect(formatMoment(noon + 7500, noon, "UTC")).toBe("14:05");
    expect(formatMoment(noon + 86_400, noon, "UTC")).toBe("19 Nov 2026, 12:00");
  });
});

describe("counts", () => {
  it("has words for one and for many", () => {
    expect(plural(1, "audit")).toBe("1 audit");
    expect(plural(1200, "audit")).toBe("1,200 audits");
  });

  it("rounds no chance up to certainty", () => {
    expect(formatPercent(0.9999)).toBe("over 99.9 %");
    expect(formatPercent(1)).toBe("100 %");
    expect(formatPercent(0.19)).toBe("19 %");
  });

  it("shortens addresses and sizes", () => {
    expect(shortAddress("0x5FbDB2315678afecb367f032d93F642f64180aa3")).toBe("0x5FbD…0aa3");
    expect(formatBytes(11_490_434)).toBe("11.5 MB");
    expect(formatBytes(999)).toBe("999 bytes");
  });
});
