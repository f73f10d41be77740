import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";

/** A compiled JSON schema (draft-07): says whether a value obeys it, and in `errors` what is wrong. */
export type SchemaCheck<Value = unknown> = ValidateFunction<Value>;

export type SchemaError = ErrorObject;

/** Compiles schemas. `fill`: names every error and fills in defaults; otherwise only the first error. `formats`: known formats. */
export function schemaCompiler({
  fill,
  formats,
}: {
  fill: boolean;
  formats?: Readonly<Record<string, (text: string) => boolean>>;
}): <Value = unknown>(schema: object) => SchemaCheck<Value> {
  const ajv = new Ajv({
    // Our schemas carry annotations of platforms.
    strict: false,
    validateFormats: formats !== undefined,
    ...(formats && { formats }),
    // Compiling draft-07's own schema, to check ours by, takes longer than all the rest of a start.
    meta: false,
    validateSchema: false,
    allErrors: fill,
    verbose: fill,
    useDefaults: fill,
    // Such a check runs once: making its code shorter takes longer than that.
    code: { optimize: !fill },
  });
  return <Value>(schema: object) => ajv.compile<Value>(schema);
}
