import { BodyError } from "../base/errors.ts";
import type { Pass } from "./pass.ts";
import type { Batch, Page } from "./service.ts";

/** A walk continues past this number of broken pages, to deliver the rows of the others that are counted. */
const MAX_BROKEN_PAGES = 3;

/**
 * Walks over the pages of a window to the first page that shows nothing new, or to a short one once all counted rows were
 * shown. The pass must accept a page before the next one is asked for.
 * @throws BodyError at the end if a page was broken
 */
export async function* readPages(pass: Pass): AsyncGenerator<Batch> {
  const { count, latest, rules } = pass;
  const broken: BodyError[] = [];
  let size = rules.service.pageSize;
  for (let number = 1; broken.length <= MAX_BROKEN_PAGES; number++) {
    let page: Page;
    try {
      page = await rules.service.page(pass.window, number);
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      broken.push(error);
      if (count.known && number * size >= pass.counted) break;
      continue;
    }
    const { distinct } = latest;
    size = page.size;
    pass.total = Math.max(pass.total, page.total ?? 0);
    yield page.rows;
    const isShown = count.known && latest.distinct >= count.rows;
    if (latest.distinct === distinct || (isShown && page.rows.length < size)) break;
  }
  if (broken[0] !== undefined) throw broken[0];
}
