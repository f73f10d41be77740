/** The one of some names that is spelt most like another; undefined: none comes near. */
export function nearestName(name: string, names: Iterable<string>): string | undefined {
  const wanted = plain(name);
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const near = [...names].map((candidate) => ({ candidate, distance: distanceOf(wanted, plain(candidate)) }));
  const [first] = near.filter(({ distance }) => distance <= most).sort((a, b) => a.distance - b.distance);
  return first?.candidate;
}

/** `startDate`, `start-date` and `START_DATE` differ only in how they are written. */
export const plain = (name: string): string =>
  name
    .slice(0, 100)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "");

/** How many letters must be added, removed, changed or swapped with the next. */
export function distanceOf(a: string, b: string): number {
  let [before, above]: number[][] = [[], Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (above?.[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? (before?.[j - 2] ?? 0) + 1 : changed;
      row.push(Math.min((above?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, changed, swapped));
    }
    [before, above] = [above, row];
  }
  return above?.at(-1) ?? 0;
}
