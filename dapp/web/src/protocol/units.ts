/** Amounts, times and names as people read them. Money is integer wei everywhere. */

const ETHER = 10n ** 18n;

export function toWei(value: string | number | bigint): bigint {
  return BigInt(value);
}

/** An amount with at most `digits` decimals and no zeros that say nothing; tiny ones are not shown as none. */
export function formatAmount(wei: bigint | string, symbol = "ETH", digits = 6): string {
  const amount = BigInt(wei);
  const sign = amount < 0n ? "-" : "";
  const positive = amount < 0n ? -amount : amount;
  const unit = ETHER / 10n ** BigInt(digits);
  if (positive > 0n && positive < unit) return `${sign}<${plain(unit, digits)} ${symbol}`;
  return `${sign}${plain(positive, digits)} ${symbol}`;
}

function plain(wei: bigint, digits: number): string {
  const unit = ETHER / 10n ** BigInt(digits);
  const rounded = (wei + unit / 2n) / unit;
  const base = 10n ** BigInt(digits);
  const whole = (rounded / base).toString().replace(/\B(?=(\d{3})+$)/g, ",");
  const rest = (rounded % base).toString().padStart(digits, "0").replace(/0+$/, "");
  return rest ? `${whole}.${rest}` : whole;
}

/** All digits of an amount, as an input field shows it. */
export function exactAmount(wei: bigint): string {
  const rest = (wei % ETHER).toString().padStart(18, "0").replace(/0+$/, "");
  return rest ? `${wei / ETHER}.${rest}` : `${wei / ETHER}`;
}

/** Wei of what somebody typed, or null if that is no amount. */
export function parseAmount(text: string): bigint | null {
  const found = /^\s*(\d{0,12})(?:[.,](\d{0,18}))?\s*$/.exec(text);
  if (!found || (!found[1] && !found[2])) return null;
  return BigInt(found[1] || "0") * ETHER + BigInt((found[2] ?? "").padEnd(18, "0"));
}

export function shortAddress(address: string): string {
  return address.length > 14 ? `${address.slice(0, 6)}…${address.slice(-4)}` : address;
}

export function shortHash(hash: string): string {
  return hash.length > 18 ? `${hash.slice(0, 10)}…${hash.slice(-4)}` : hash;
}

/** "1 h 05 min", "42 s": two units at most, so that it keeps its width. */
export function formatDuration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600)
    return s % 60 && s < 600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.round(s / 60)} min`;
  if (s < 86_400) {
    const minutes = Math.floor((s % 3600) / 60);
    return minutes ? `${Math.floor(s / 3600)} h ${minutes} min` : `${Math.floor(s / 3600)} h`;
  }
  const hours = Math.floor((s % 86_400) / 3600);
  return hours ? `${Math.floor(s / 86_400)} d ${hours} h` : `${Math.floor(s / 86_400)} d`;
}

/** How long something took: short times to a tenth, for "0 s" would say that it took none. */
export function formatElapsed(seconds: number): string {
  if (seconds >= 10) return formatDuration(seconds);
  return seconds > 0 && seconds < 0.05 ? "under 0.1 s" : `${Math.max(0, seconds).toFixed(1)} s`;
}

/** A countdown: "4:05", "1:02:03". */
export function formatCountdown(seconds: number): string {
  const s = Math.max(0, Math.ceil(seconds));
  const [h, m, rest] = [Math.floor(s / 3600), Math.floor((s % 3600) / 60), s % 60];
  const two = (n: number) => String(n).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(rest)}` : `${m}:${two(rest)}`;
}

/** The time of day, with the date where it is not today's. */
export function formatMoment(unix: number, now = Date.now() / 1000, zone?: string): string {
  const at = new Date(unix * 1000);
  const timeZone = zone ? { timeZone: zone } : {};
  const day = (date: Date) =>
    date.toLocaleDateString("en-GB", { ...timeZone, year: "numeric", month: "short", day: "numeric" });
  const time = at.toLocaleTimeString("en-GB", { ...timeZone, hour: "2-digit", minute: "2-digit" });
  return day(at) === day(new Date(now * 1000)) ? time : `${day(at)}, ${time}`;
}

export function formatAgo(unix: number, now = Date.now() / 1000): string {
  const age = now - unix;
  if (age < 5) return "just now";
  if (age < 60) return `${Math.floor(age)} s ago`;
  if (age < 3600) return `${Math.floor(age / 60)} min ago`;
  if (age < 86_400) return `${Math.floor(age / 3600)} h ago`;
  return `${Math.floor(age / 86_400)} d ago`;
}

export function formatBytes(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let [value, at] = [bytes, 0];
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

export function formatPercent(part: number, digits = 1): string {
  const percent = part * 100;
  if (percent > 99.9 && percent < 100) return "over 99.9 %";
  return `${percent.toFixed(digits).replace(/\.0+$/, "")} %`;
}
