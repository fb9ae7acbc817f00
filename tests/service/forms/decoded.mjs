// What examples/decode.mjs makes of each body of a list: its tensors as dtype, shape and bits.
import { readFileSync } from "node:fs";
import { decode } from "../../../examples/decode.mjs";

const NAMES = { Float32Array: "float32", Float64Array: "float64" };

function bits({ shape, data }) {
  const { buffer, byteOffset, byteLength } = data;
  return [NAMES[data.constructor.name], shape, Buffer.from(buffer, byteOffset, byteLength).toString("hex")];
}

const found = JSON.parse(readFileSync(process.argv[2], "utf8")).map(({ path, media }) => {
  const { buffer, byteOffset, byteLength } = readFileSync(path);
  const named = decode(buffer.slice(byteOffset, byteOffset + byteLength), media);
  return Object.fromEntries(Object.entries(named).map(([name, tensor]) => [name, bits(tensor)]));
});
process.stdout.write(JSON.stringify(found));
