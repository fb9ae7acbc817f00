// The tensors of an answer in any of its forms: name -> { shape, dtype, data }, a typed array.
const ARRAYS = { float32: Float32Array, float64: Float64Array, int64: Float64Array };
const DTYPES = { F32: "float32", F64: "float64", I64: "int64" };
const VALUES = { "-inf": -Infinity, "+inf": Infinity, nan: NaN };

// From the ArrayBuffer of a response and its Content-Type.
export function decode(buffer, contentType) {
  const found = {}, text = (first, after) => new TextDecoder().decode(buffer.slice(first, after));
  if (contentType.includes("safetensors")) {
    const start = 8 + Number(new DataView(buffer).getBigUint64(0, true));
    const { __metadata__, ...header } = JSON.parse(text(8, start));
    for (const [name, { dtype, shape, data_offsets: [first, after] }] of Object.entries(header)) {
      const data = stored(DTYPES[dtype], buffer.slice(start + first, start + after));
      found[name] = { shape, dtype: DTYPES[dtype], data };
    }
  } else if (contentType.includes("problem")) {
    throw new Error(text());
  } else if (/^application\/json\b/.test(contentType)) {
    collect(JSON.parse(text()), "", found);
  } else {
    if (!text().endsWith("}\n")) throw new Error("The stream was cut off.");
    const lines = text().trimEnd().split("\n").map((line) => JSON.parse(line));
    if (!lines.at(-1).end) throw new Error(JSON.stringify(lines.at(-1).error ?? "cut off"));
    for (const line of lines.slice(1)) if ("data" in line) add(line, found);
  }
  return found;
}

// A line of a tensor, or of a piece of its rows.
export function add(line, found) {
  const { shape, dtype, rows: [first] = [0] } = line, name = line.stage ?? line.entry;
  found[name] ??= { shape, dtype, data: array(dtype, product(shape)) };
  found[name].data.set(numbers(line), first * shape.at(-1));
}

// Each tensor below a place of an answer: by its stage, or else by its JSON Pointer.
function collect(value, place, found) {
  if (value?.dtype && (typeof value.data === "string" || Array.isArray(value.data))) {
    const { shape, dtype } = value, [, stage] = place.match(/^\/tensors\/([^/]+)$/) ?? [];
    found[stage ?? (place || "/data")] = { shape, dtype, data: numbers(value) };
  } else if (value && typeof value === "object") {
    for (const key of Object.keys(value)) collect(value[key], `${place}/${key}`, found);
  }
}

function numbers({ dtype, shape, rows, data, nonfinite = {} }) {
  if (typeof data === "string") {
    const text = atob(data), bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    return stored(dtype, bytes.buffer);
  }
  const found = array(dtype, rows ? (rows[1] - rows[0]) * shape.at(-1) : product(shape));
  fill(found, 0, data);
  if (nonfinite !== "-inf")
    for (const [kind, runs] of Object.entries(nonfinite))
      for (const [first, length] of runs) found.fill(VALUES[kind], first, first + length);
  return found;
}

function fill(found, at, list) {
  for (const x of list) {
    if (Array.isArray(x)) at = fill(found, at, x);
    else found[at++] = x ?? -Infinity;
  }
  return at;
}

// Numbers of experts (int64) become plain numbers.
function stored(dtype, buffer) {
  if (dtype === "int64") return Float64Array.from(new BigInt64Array(buffer), Number);
  return array(dtype, buffer);
}

function array(dtype, content) {
  const Numbers = ARRAYS[dtype];
  return new Numbers(content);
}

function product(shape) {
  return shape.reduce((x, y) => x * y);
}
