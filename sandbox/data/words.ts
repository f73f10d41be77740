/** First names with the spelling that an e-mail address uses. */
export const FIRST_NAMES = [
  ["Ada", "ada"],
  ["José", "jose"],
  ["Zoë", "zoe"],
  ["Søren", "soren"],
  ["Łukasz", "lukasz"],
  ["美咲", "misaki"],
  ["Nguyễn", "nguyen"],
  ["Priya", "priya"],
  ["Mehmet", "mehmet"],
  ["Åsa", "asa"],
  ["Chloé", "chloe"],
  ["Иван", "ivan"],
  ["Fatima", "fatima"],
  ["小明", "xiaoming"],
  ["Björn", "bjorn"],
  ["Grace", "grace"],
  ["Jean-Luc", "jean-luc"],
  ["Ngozi", "ngozi"],
  ["María José", "mariajose"],
  ["Tomáš", "tomas"],
  ["Ελένη", "eleni"],
  ["Liam", "liam"],
  ["지훈", "jihun"],
] as const;

export const LAST_NAMES = [
  ["Lovelace", "lovelace"],
  ["García Márquez", "garciamarquez"],
  ["O'Neill", "oneill"],
  ["Müller", "muller"],
  ["田中", "tanaka"],
  ["Okafor", "okafor"],
  ["Sørensen", "sorensen"],
  ["Kowalski", "kowalski"],
  ["van der Berg", "vanderberg"],
  ["Yılmaz", "yilmaz"],
  ["Петров", "petrov"],
  ["Smith, Jr.", "smith"],
  ["Nakamura", "nakamura"],
  ["D'Angelo", "dangelo"],
  ["Čapek", "capek"],
  ["Iyer", "iyer"],
  ["김", "kim"],
  ["Hernández", "hernandez"],
  ["Øverland", "overland"],
] as const;

/** Job titles with what is derived from them: seniority, department, job function. */
export const TITLES = [
  ["Head of Sales, EMEA", "head", "Sales", "Sales Management"],
  ["Software Engineer", "individual", "Engineering", "Software Development"],
  ["Développeuse principale", "senior", "Engineering", "Software Development"],
  ["営業部長", "director", "Sales", "Sales Management"],
  ["VP, Customer Success", "vp", "Support", "Customer Success"],
  ["Chief Revenue Officer", "c_level", "Sales", "Revenue"],
  ['"Fractional" CFO', "c_level", "Finance", "Finance"],
  ["Growth 🚀 Lead", "lead", "Marketing", "Growth"],
  ["Data Analyst", "individual", "Data", "Analytics"],
  ["Geschäftsführer", "owner", "Management", "General Management"],
  ["R&D / QA \\ Test Manager", "manager", "Engineering", "Quality"],
  ["IT", null, "IT", null],
  ["Consultant", null, null, null],
  [null, null, null, null],
] as const;

/** Titles that carry line separators which are legal inside JSON strings and break naive line splitters. */
export const RARE_TITLES = [
  ["Account\u2028Executive", "individual", "Sales", "Sales"],
  ["Office\u0085Manager", "manager", "Operations", "Administration"],
  ["Events\u2029Lead 👩‍🚀", "lead", "Marketing", "Events"],
] as const;

/** Locations with their country. */
export const LOCATIONS = [
  ["Berlin, Germany", "Germany"],
  ["São Paulo, Brazil", "Brazil"],
  ["東京都, 日本", "Japan"],
  ["Kraków, Poland", "Poland"],
  ["Austin, Texas, United States", "United States"],
  ["Zürich", "Switzerland"],
  ["Remote", null],
  ["Lagos, Nigeria", "Nigeria"],
  ["Bengaluru", "India"],
  [null, "France"],
  [null, null],
] as const;

export const ADJECTIVES = "bright north silver amber clear swift quiet grand first blue open".split(" ");

export const NOUNS =
  "harbor field forge river summit bridge lantern meadow anchor orchard signal atlas canyon".split(" ");

export const COMPANY_FORMS = ["GmbH", "Inc.", "S.A.", "& Söhne", "株式会社", "Ltd"] as const;

export const INDUSTRIES = [
  "Software Development, IT Services",
  "Retail",
  "Financial Services, Insurance, Banking",
  "Hospitals and Health Care",
  "Manufacturing, Machinery",
  "Education",
] as const;

export const TECHNOLOGIES = "postgres kubernetes react sap excel snowflake php".split(" ");
