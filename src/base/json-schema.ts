import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";

/** A compiled JSON schema (draft-07). It checks a value and lists what is wrong in `errors`. */
export type SchemaCheck<Value = unknown> = ValidateFunction<Value>;

export type SchemaError = ErrorObject;

type Formats = Readonly<Record<string, (text: string) => boolean>>;

/** Compiles schemas. `fill`: a check fills in defaults and names every error. `formats`: the formats that a check knows. */
export function schemaCompiler({ fill, formats }: { fill: boolean; formats?: Formats }) {
  const ajv = new Ajv({
    // Our schemas contain annotations of platforms.
    strict: false,
    validateFormats: formats !== undefined,
    ...(formats && { formats }),
    // To check our schemas, ajv would compile the schema of draft-07: longer than the rest of the start.
    meta: false,
    validateSchema: false,
    allErrors: fill,
    verbose: fill,
    useDefaults: fill,
    // A check that fills in runs once. Optimizing its code takes longer than the check.
    code: { optimize: !fill },
  });
  return <Value = unknown>(schema: object): SchemaCheck<Value> => ajv.compile<Value>(schema);
}
