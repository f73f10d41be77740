import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";

/** A compiled JSON schema (draft-07). It checks a value and lists what is wrong in `errors`. */
export type SchemaCheck<Value = unknown> = ValidateFunction<Value>;

export type SchemaError = ErrorObject;

type Formats = Readonly<Record<string, (text: string) => boolean>>;

/** Compiles schemas. `fill`: a check fills in defaults and names every error. `formats`: the formats that a check knows. */
export function schemaCompiler({ fill, formats }: { fill: boolean; formats?: Formats }) {
  const ajv = new Ajv({
    // Strict mode would refuse annotations for platforms in our schemas.
    strict: false,
    validateFormats: formats !== undefined,
    ...(formats && { formats }),
    // Our schemas are not checked. To check them, ajv compiles the schema of draft-07, which takes most of the start.
    meta: false,
    validateSchema: false,
    allErrors: fill,
    verbose: fill,
    useDefaults: fill,
    // A check with `fill` runs once, and to optimize its code takes longer than the check.
    code: { optimize: !fill },
  });
  return <Value = unknown>(schema: object): SchemaCheck<Value> => ajv.compile<Value>(schema);
}
