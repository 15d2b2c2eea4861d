import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Line, type LiveEvent, listen } from "~/api/live";

/** The browser's, as the test's hand: what it was told, and what it says. */
class Source extends EventTarget {
  static readonly CLOSED = 2;
  static made: Source[] = [];
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  readyState = 0;

  constructor(readonly address: string) {
    super();
    Source.made.push(this);
  }

  opens(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  /** The browser tries again by itself, unless the line was refused. */
  breaks(isRefused = false): void {
    this.readyState = isRefused ? Source.CLOSED : 0;
    this.onerror?.();
  }

  says(name: string, data: unknown): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }

  close(): void {
    this.readyState = Source.CLOSED;
  }
}

describe("a live line", () => {
  let events: LiveEvent[];
  let lines: Line[];
  let stop: () => void;
  const names = () => events.map((event) => event.name);
  const source = () => Source.made.at(-1) as Source;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("EventSource", Source);
    Source.made = [];
    events = [];
    lines = [];
    stop = listen("/api/v1/events?topic=market", {
      onLine: (line) => lines.push(line),
      onEvent: (event) => events.push(event),
    });
  });

  afterEach(() => {
    stop();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it("has what was loaded before it was open loaded again, once", () => {
    expect(names()).toEqual([]);
    source().opens();
    source().says("head", { block: 5, time: 9 });
    expect(names()).toEqual(["reset", "head"]);
    expect(events[1]).toEqual({ name: "head", data: { block: 5, time: 9 } });
    expect(lines).toEqual(["open"]);
  });

  it("that breaks before anything was heard tells of the gap when the browser opens it again", () => {
    source().opens();
    source().breaks();
    expect(names()).toEqual(["reset"]);
    source().opens();
    expect(names()).toEqual(["reset", "reset"]);
    expect(lines).toEqual(["open", "broken", "open"]);
    expect(Source.made).toHaveLength(1);
  });

  it("that was refused is opened anew after a while", () => {
    source().breaks(true);
    expect(Source.made).toHaveLength(1);
    vi.advanceTimersByTime(3_000);
    expect(Source.made).toHaveLength(2);
    source().opens();
    expect(names()).toEqual(["reset"]);
  });

  it("that is left is closed, and not opened again", () => {
    source().breaks(true);
    stop();
    vi.advanceTimersByTime(60_000);
    expect(Source.made).toHaveLength(1);
    expect(source().readyState).toBe(Source.CLOSED);
  });
});
