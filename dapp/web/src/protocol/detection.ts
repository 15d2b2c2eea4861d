/** How likely a draw of audits meets a cheated segment. Mirrors `trainyard.protocol.incentives`. */

// Above this the draw is as good as independent, and counting it out would take too long.
const MOST_COUNTED = 5_000;

/** The chance that `audits` drawn segments, no two of them neighbours on the ring, hit a cheated one. */
export function detection(segments: number, cheated: number, audits: number): number {
  if (audits <= 0 || cheated <= 0 || segments <= 0) return 0;
  const seats = auditable(segments, audits);
  if (cheated >= segments) return 1;
  if (seats === 1 || segments > MOST_COUNTED) return 1 - (1 - cheated / segments) ** seats;
  // A cheat that spreads its segments is the hardest to meet among those of its size only by accident of
  // neighbours; a block at the end is what a worker that stops early leaves.
  const all = ringWays(segments, () => true, seats);
  const missed = ringWays(segments, (index) => index < segments - cheated, seats);
  return 1 - missed / all;
}

/** How many audits a trace bears: at most half as many as it has segments, and at least one. */
export function auditable(segments: number, audits: number): number {
  return segments === 0 ? 0 : Math.min(audits, Math.max(1, Math.floor(segments / 2)));
}

/** Ways to draw `seats` allowed segments of a ring, no two of them neighbours. */
function ringWays(segments: number, allowed: (index: number) => boolean, seats: number): number {
  let total = 0;
  for (const firstDrawn of [false, true]) {
    if (firstDrawn && !allowed(0)) continue;
    // By how many were drawn so far; apart for whether the last one was.
    let free = new Float64Array(seats + 1);
    let taken = new Float64Array(seats + 1);
    if (firstDrawn) taken[1] = 1;
    else free[0] = 1;
    for (let index = 1; index < segments; index += 1) {
      const nextFree = new Float64Array(seats + 1);
      const nextTaken = new Float64Array(seats + 1);
      const closesRing = index === segments - 1 && firstDrawn;
      for (let drawn = 0; drawn <= seats; drawn += 1) {
        nextFree[drawn] = (free[drawn] ?? 0) + (taken[drawn] ?? 0);
        if (drawn > 0 && allowed(index) && !closesRing) nextTaken[drawn] = free[drawn - 1] ?? 0;
      }
      free = nextFree;
      taken = nextTaken;
    }
    total += (free[seats] ?? 0) + (taken[seats] ?? 0);
  }
  return total;
}
