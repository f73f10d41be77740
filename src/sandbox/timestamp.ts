import { DAY_MS } from "./clock.ts";

const TWO = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, "0"));
const THREE = Array.from({ length: 1000 }, (_, value) => String(value).padStart(3, "0"));

/** A formatter of epoch ms as `YYYY-MM-DDTHH:MM:SS.mmmZ`, cheap when neighbouring calls share a day. */
export function timestampWriter(): (ms: number) => string {
  let day = Number.NaN;
  let prefix = "";
  return (ms) => {
    const current = Math.floor(ms / DAY_MS);
    if (current !== day) {
      day = current;
      prefix = new Date(ms).toISOString().slice(0, 11);
    }
    const rest = ms - current * DAY_MS;
    const seconds = Math.floor(rest / 1000);
    const minutes = Math.floor(seconds / 60);
    return `${prefix}${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}.${THREE[rest % 1000]}Z`;
  };
}
