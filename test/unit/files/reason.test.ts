import { expect, it } from "vitest";
import { codeOf, reasonOf } from "../../../src/files/reason.ts";

const systemError = (code: unknown): Error => Object.assign(new Error(`${code}: call failed`), { code });

it.each([
  ["EACCES", "permission denied"],
  ["EDQUOT", "the disk quota is used up"],
  ["EEXIST", "it is there already"],
  ["EIO", "the disk reports an error"],
  ["EISDIR", "it is a folder"],
  ["ENOENT", "there is no such file or folder"],
  ["ENOSPC", "no space left on device"],
  ["ENOTDIR", "a part of its path is no folder"],
  ["EPERM", "operation not permitted"],
  ["EROFS", "read-only file system"],
  ["EXDEV", "EXDEV"],
])("the system's %s is: %s", (code, reason) => {
  expect([codeOf(systemError(code)), reasonOf(systemError(code))]).toEqual([code, reason]);
});

it.each([
  [new Error("it is no regular file"), "it is no regular file"],
  [systemError(7), "7: call failed"],
  [new SyntaxError('Unexpected token in "s3cret"'), "unknown error"],
  ["s3cret", "unknown error"],
  [{ message: "s3cret" }, "unknown error"],
])("%s is: %s", (error, reason) => {
  expect([codeOf(error), reasonOf(error)]).toEqual([undefined, reason]);
});
