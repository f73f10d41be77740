export type SourceRecord = {
  readonly slug: string;
  readonly name: string;
  readonly category: string;
  readonly website: string;
  readonly description: string | null;
  readonly addedAt: string;
};

const PRODUCTS = [
  ["Harborline CRM", "crm"],
  ["Signaldesk", "support"],
  ["Quillmetrics", "analytics"],
  ["Paylark", "payments"],
  ["Cloudmoor", "hosting"],
  ["Inkwell Sign", "documents"],
  ["Tandem Chat", "communication"],
  ["Brightform", "surveys"],
] as const;

/** The products that the service tracks. */
export function sourceRecords(count: number): SourceRecord[] {
  return Array.from({ length: count }, (_, index) => sourceRecord(index));
}

function sourceRecord(index: number): SourceRecord {
  const round = Math.floor(index / PRODUCTS.length);
  const [product, category] = PRODUCTS[index % PRODUCTS.length] ?? PRODUCTS[0];
  const name = round === 0 ? product : `${product} ${round + 1}`;
  const slug = name.toLowerCase().replaceAll(" ", "-");
  return {
    slug,
    name,
    category,
    website: `https://${slug}.example`,
    description: index % 3 === 2 ? null : `${name}, as used by teams that do ${category}`,
    addedAt: new Date(Date.UTC(2020, index % 12, 1 + (index % 28))).toISOString(),
  };
}
