/*
 * check.js: checks swap certificates with exact arithmetic. Nothing is trusted but this file and a JavaScript engine.
 *
 *     node check.js RUN                       every certificate of a run folder
 *     node check.js CERTIFICATE               one certificate, also that of a box (section 14) or of balls (16)
 *     node check.js --seconds S ...           gives up (refuses) after S whole seconds for one certificate; else an hour
 *     node check.js --network MODEL STATEMENT prints the canonical network of an ONNX file: its hash, then its bytes in
 *                                             hexadecimal. STATEMENT is JSON: {"inputs": ..., "words": ...}, or {}
 *                                             for a network that takes numbers
 *
 * It is written from FORMAT.md alone, as a second opinion beside check.py, check_box.py and check_ball.py; section
 * numbers below are those of FORMAT.md. check.html loads the same file in a browser. It needs no package and no network.
 *
 * All numbers that matter are integers (BigInt) over a known common denominator. Floating point results are used in
 * six places only, exact or with a bound on their error beside them: reading stored floats, what constants make of minus
 * infinity, writing numbers that are floats into the canonical network, choosing which swaps and which patterns of a
 * joint group are worth an exact look, choosing a multiplier of a plane (any is sound), and sums of products of small
 * integers, which floats hold exactly.
 */
"use strict";

// One function holds everything, so that a page can hand its source text to a worker.
function swapproofChecker() {
  // A certificate is not believed (exit code 4).
  class Refused extends Error {}
  // Missing files, or a model outside section 4 (exit code 2).
  class Unusable extends Error {}

  function refuse(reason) {
    throw new Refused(reason);
  }
  function unusable(reason) {
    throw new Unusable(reason);
  }

  const ONE = 1n << 64n; // bounds are multiples of 2^-64
  const LIMIT = {
    certificate: 2 ** 26, file: 2 ** 31, positions: 65536, integers: 1000000, options: 65536,
    elements: 2 ** 22, stored: 2 ** 28, windows: 2 ** 22, convolution: 2 ** 26, allElements: 2 ** 23,
    nodes: 100000, rank: 8, layers: 64, smoothLayers: 65536, classes: 1024, treeNodes: 5000000, treeDepth: 100000,
    enumerated: 20000000n, counting: 10000000, count: 1n << 16000n,
    outputs: 1023, inputs: 1000000, inputsAndOutputs: 1024, cases: 100000, constraints: 4096, input: 1n << 128n,
    // Not of the format, but of this program: what it does not want to find time or memory for.
    number: 1n << 20000n, ids: 2 ** 25, reached: 2 ** 25, kept: 2 ** 16, held: 2 ** 24,
  };

  // Time is looked at every few thousand steps (a step is about one multiplication), and at least once for each node of
  // the ONNX file, for each bound of an element and for each sentence.
  const clock = { end: Infinity, steps: 0 };
  function lookAtClock() {
    clock.steps = 0;
    if (Date.now() >= clock.end) refuse("this checker ran out of time; it proves nothing about the certificate");
  }
  function spend(steps) {
    clock.steps += steps;
    if (clock.steps >= 4096) lookAtClock();
  }
  // As map, in time.
  function mapped(list, f) {
    const result = new Array(list.length);
    for (let i = 0; i < result.length; i++) {
      spend(1);
      result[i] = f(list[i], i);
    }
    return result;
  }
  function lackOfMemory(what) {
    refuse(`this checker does not have the memory or time for ${what}`);
  }
  const LEAST = -LIMIT.number;
  function bounded(x) {
    if (x > LIMIT.number || x < LEAST) lackOfMemory("numbers of more than 20,000 bits");
    return x;
  }

  // ---- SHA-256 (FIPS 180-4) and the Merkle root ----

  const SHA_CONSTANTS = Int32Array.from([
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  ]);

  // tick is called once for each MiB.
  function sha256(bytes, tick = () => {}) {
    const state = Int32Array.from([0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]);
    // The last one or two blocks: what is left of the message, 0x80, zeros, and the length in bits.
    const whole = Math.floor(bytes.length / 64) * 64;
    const left = bytes.length - whole;
    const tail = new Uint8Array(left < 56 ? 64 : 128);
    tail.set(bytes.subarray(whole));
    tail[left] = 0x80;
    const length = new DataView(tail.buffer);
    length.setUint32(tail.length - 8, Math.floor(bytes.length / 0x20000000));
    length.setUint32(tail.length - 4, (bytes.length * 8) % 0x100000000);

    const w = new Int32Array(64);
    for (const [part, end] of [[bytes, whole], [tail, tail.length]]) {
      for (let start = 0; start < end; start += 64) {
        if (start % 2 ** 20 === 0) tick();
        for (let t = 0; t < 16; t++) {
          const i = start + 4 * t;
          w[t] = (part[i] << 24) | (part[i + 1] << 16) | (part[i + 2] << 8) | part[i + 3];
        }
        for (let t = 16; t < 64; t++) {
          const x = w[t - 15];
          const y = w[t - 2];
          const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
          const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
          w[t] = (w[t - 16] + s0 + w[t - 7] + s1) | 0;
        }
        let a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
        for (let t = 0; t < 64; t++) {
          const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
          const t1 = (h + s1 + ((e & f) ^ (~e & g)) + SHA_CONSTANTS[t] + w[t]) | 0;
          const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
          const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
          h = g;
          g = f;
          f = e;
          e = (d + t1) | 0;
          d = c;
          c = b;
          b = a;
          a = (t1 + t2) | 0;
        }
        state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
      }
    }
    const digest = new Uint8Array(32);
    const view = new DataView(digest.buffer);
    state.forEach((word, i) => view.setInt32(4 * i, word));
    return digest;
  }

  const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

  function ascii(text) {
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  function joined(...parts) {
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  // Section 2: leaves are the hashes of name and bytes, in the order of the names.
  const merkleLeaf = (name, bytes) => sha256(joined([0], ascii(name), [10], bytes));

  function merkleRoot(leaves) {
    if (leaves.length === 1) return leaves[0];
    let left = 1;
    while (left * 2 < leaves.length) left *= 2;
    return sha256(joined([1], merkleRoot(leaves.slice(0, left)), merkleRoot(leaves.slice(left))));
  }

  // ---- Canonical JSON (section 2), base64 and the numbers of a tree (section 5) ----

  // Objects become Maps, so that no key can reach a prototype. Integers beyond 15 digits become BigInts.
  function parseCanonical(bytes) {
    let at = 0;
    const stop = (reason) => refuse(`not canonical JSON: ${reason} at byte ${at}`);
    const peek = () => (at < bytes.length ? String.fromCharCode(bytes[at]) : "the end");
    const take = (wanted) => {
      if (peek() !== wanted) stop(`${wanted} expected`);
      at += 1;
    };

    function string() {
      take('"');
      const start = at;
      while (at < bytes.length && bytes[at] !== 34) at += 1;
      const parts = [];
      for (let i = start; i < at; i += 4096) parts.push(String.fromCharCode(...bytes.subarray(i, Math.min(at, i + 4096))));
      const text = parts.join("");
      if (!/^[A-Za-z0-9 ._+\/=-]*$/.test(text)) stop("a character that strings must not hold");
      take('"');
      return text;
    }

    function integer() {
      let text = "";
      while (at < bytes.length && text.length < 21 && /^[0-9-]$/.test(peek())) {
        text += peek();
        at += 1;
      }
      if (!/^(0|-?[1-9][0-9]{0,18})$/.test(text)) stop("not an integer of at most 19 digits");
      return text.length <= 15 ? Number(text) : BigInt(text);
    }

    function value(depth) {
      spend(1);
      const first = peek();
      if (depth > 6 && (first === "[" || first === "{")) stop("nested too deep");
      if (first === '"') return string();
      if (first === "n") {
        for (const letter of "null") take(letter);
        return null;
      }
      if (first === "[") {
        const array = [];
        take("[");
        if (peek() !== "]") {
          array.push(value(depth + 1));
          while (peek() === ",") {
            take(",");
            array.push(value(depth + 1));
          }
        }
        take("]");
        return array;
      }
      if (first === "{") {
        const object = new Map();
        let previous = null;
        take("{");
        while (peek() !== "}") {
          if (object.size > 0) take(",");
          const key = string();
          if (previous !== null && !(previous < key)) stop("keys not in ascending order");
          previous = key;
          take(":");
          object.set(key, value(depth + 1));
        }
        take("}");
        return object;
      }
      return integer();
    }

    const result = value(1);
    if (at !== bytes.length) stop("something follows the value");
    return result;
  }

  function decodeBase64(text) {
    let decoded = null;
    try {
      decoded = atob(text);
    } catch {
      refuse("the tree is not base64");
    }
    if (btoa(decoded) !== text) refuse("the tree is not canonical base64");
    return ascii(decoded);
  }

  class Reader {
    constructor(bytes) {
      this.bytes = bytes;
      this.at = 0;
    }
    byte() {
      if (this.at >= this.bytes.length) refuse("the tree ends too early");
      return this.bytes[this.at++];
    }
    // LEB128, minimal, below 2^31. Multiplication instead of <<, which breaks beyond 32 bits.
    number() {
      let value = 0;
      for (let place = 0; place < 5; place++) {
        const byte = this.byte();
        value += (byte % 128) * 128 ** place;
        if (byte < 128) {
          if (byte === 0 && place > 0) refuse("a number of the tree is not minimal");
          if (value >= 2 ** 31) break;
          return value;
        }
      }
      return refuse("a number of the tree is too large");
    }
    // z as 2 z, or below 0 as -2 z - 1.
    integer() {
      let value = 0n;
      for (let place = 0n; place < 29n; place++) {
        const byte = this.byte();
        value += BigInt(byte % 128) << (7n * place);
        if (byte >= 128) continue;
        if (byte === 0 && place > 0n) refuse("a number of the tree is not minimal");
        return value % 2n === 0n ? value / 2n : -(value + 1n) / 2n;
      }
      return refuse("a number of the tree is too large");
    }
    // The numbers of the bits that are set.
    mask(size) {
      const bits = [];
      for (let i = 0; i < size; i += 8) {
        const byte = this.byte();
        for (let bit = 0; bit < 8; bit++) {
          if (Math.floor(byte / 2 ** bit) % 2 === 0) continue;
          if (i + bit >= size) refuse("a mask has a bit beyond its end");
          bits.push(i + bit);
        }
      }
      return bits;
    }
    // The next of ascending numbers: the first as is, then each minus its predecessor.
    after(previous) {
      const number = this.number();
      if (previous === null) return number;
      if (number === 0) refuse("numbers of the tree do not ascend");
      return previous + number;
    }
  }

  // ---- Exact numbers: numerators over a common positive denominator ----

  const absolute = (x) => x < 0n ? -x : x;
  function greatestDivisor(a, b) {
    while (b !== 0n) {
      spend(1);
      [a, b] = [b, a % b];
    }
    return absolute(a);
  }
  function leastMultiple(a, b) {
    if (a === b || a % b === 0n) return a;
    if (b % a === 0n) return bounded(b);
    return bounded((a / greatestDivisor(a, b)) * b);
  }
  // Both for a positive divisor.
  function floorDivide(a, b) {
    const q = a / b;
    return a < 0n && q * b !== a ? q - 1n : q;
  }
  const ceilDivide = (a, b) => -floorDivide(-a, b);
  // At least the number of bits of |x|, at most three more (four for 0).
  const bitLength = (x) => 4 * absolute(x).toString(16).length;
  function squareRoot(x) {
    if (x < 2n) return x;
    let guess = 1n << (BigInt(x.toString(2).length + 1) / 2n);
    for (;;) {
      const next = (guess + x / guess) / 2n;
      if (next >= guess) return guess;
      guess = next;
    }
  }
  const isBit = (n) => n === 0n || n === 1n;
  const larger = (a, b) => a > b ? a : b;
  const smaller = (a, b) => a < b ? a : b;
  const product = (numbers) => numbers.reduce((a, b) => a * b, 1);
  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const byValueDescending = (a, b) => a > b ? -1 : a < b ? 1 : 0;

  // ---------------------------------------------------------------------------------------------------------------
  // Values (section 4.1): a shape, and in row-major order
  //
  //   integers   BigInts                                   numbers    numerators over den: BigInts, or floats as stored
  //   tokens     positions                                 variable   ids of elements of the network
  //
  // Minus infinity is -Infinity among numbers, also among BigInts, and NONE among ids.
  // ---------------------------------------------------------------------------------------------------------------

  const integers = (shape, data) => ({ kind: "integers", shape, data });
  const rationals = (shape, data, den) => ({ kind: "numbers", shape, data, den: bounded(den), scale: 0 });
  // Floats stay as they are until they are needed: embedding tables are large. x * scale is exact, scale a power of two.
  function floats(shape, data) {
    let scale = 1;
    for (let i = 0; i < data.length; i++) {
      const x = data[i];
      spend(1);
      if (x === -Infinity) continue;
      if (!(Math.abs(x) < 2 ** 128)) unusable("a constant is not a number below 2^128");
      while (!Number.isInteger(x * scale)) {
        scale *= 2;
        if (scale > 2 ** 200) unusable("a constant is not a multiple of 2^-200");
      }
    }
    return { kind: "numbers", shape, data, den: BigInt(scale), scale };
  }
  const numerator = ({ data, scale }, i) => scale === 0 || data[i] === -Infinity ? data[i] : BigInt(data[i] * scale);
  const numerators = (numbers) => mapped(numbers.data, (_, i) => numerator(numbers, i));
  // Over another denominator, a multiple.
  const numeratorsOver = (den, numbers) => {
    const factor = den / numbers.den;
    return mapped(numerators(numbers), (n) => n === -Infinity ? n : n * factor);
  };
  const [PADDING, NONE] = [-1, -2];
  const holdsInfinity = ({ kind, data }) => kind === "numbers" ? data.includes(-Infinity) : kind === "variable" && data.includes(NONE);
  function needFinite(...values) {
    if (values.some(holdsInfinity)) unusable("minus infinity where an operator does not take it");
    return values[0];
  }

  // ---- The ONNX file (section 4.1) ----

  // A field is [name, type] or, repeated, [name, type, true]; null is a field that is read over.
  const [NUMBER, BYTES, TEXT, FLOAT, DOUBLE] = ["number", "bytes", "text", "float", "double"];
  const WIRE = { number: 0, double: 1, bytes: 2, text: 2, float: 5 };
  const MODEL = {
    1: ["irVersion", NUMBER], 2: null, 3: null, 4: null, 5: null, 6: null,
    7: ["graph", BYTES], 8: ["opsets", BYTES, true], 14: null,
  };
  const OPSET = { 1: ["domain", TEXT], 2: ["version", NUMBER] };
  const GRAPH = {
    1: ["nodes", BYTES, true], 2: null, 5: ["initializers", BYTES, true], 10: null,
    11: ["inputs", BYTES, true], 12: ["outputs", BYTES, true], 13: null, 16: null,
  };
  const NODE = {
    1: ["inputs", TEXT, true], 2: ["outputs", TEXT, true], 3: null, 4: ["operator", TEXT],
    5: ["attributes", BYTES, true], 6: null, 7: ["domain", TEXT], 9: null,
  };
  const ATTRIBUTE = {
    1: ["name", TEXT], 2: ["float", FLOAT], 3: ["int", NUMBER], 4: ["string", TEXT], 5: ["tensor", BYTES],
    7: ["floats", FLOAT, true], 8: ["ints", NUMBER, true], 9: ["strings", TEXT, true], 13: null, 20: ["type", NUMBER],
  };
  const TENSOR = {
    1: ["dims", NUMBER, true], 2: ["type", NUMBER], 4: ["floats", FLOAT, true], 5: ["int32s", NUMBER, true],
    7: ["int64s", NUMBER, true], 8: ["name", TEXT], 9: ["raw", BYTES], 10: ["doubles", DOUBLE, true], 12: null,
    13: ["external", BYTES, true], 14: ["location", NUMBER], 16: null,
  };
  const PAIR = { 1: ["key", TEXT], 2: ["value", TEXT] };
  const VALUE_INFO = { 1: ["name", TEXT], 2: ["type", BYTES], 3: null, 4: null };
  const TYPE = { 1: ["tensor", BYTES], 6: null };
  const TENSOR_TYPE = { 1: ["element", NUMBER], 2: ["shape", BYTES] };
  const SHAPE = { 1: ["dims", BYTES, true] };
  const DIMENSION = { 1: ["value", NUMBER], 2: null, 3: null };

  function decodeText(bytes) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return unusable("the ONNX file has a string that is not UTF-8");
    }
  }

  // One protobuf message as an object; texts that are absent are empty, other absent fields undefined.
  function message(bytes, fields) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const result = Object.create(null);
    const seen = new Set();
    for (const field of Object.values(fields)) {
      if (field !== null && field[2]) result[field[0]] = [];
      else if (field !== null && field[1] === TEXT) result[field[0]] = "";
    }
    let at = 0;
    const need = (count) => {
      if (count > bytes.length - at) unusable("the ONNX file is cut short");
    };
    // A 64-bit varint, read as a signed number; it may take ten bytes.
    const varint = () => {
      let value = 0n;
      for (let place = 0n; place < 70n; place += 7n) {
        need(1);
        const byte = bytes[at++];
        value += BigInt(byte % 128) << place;
        if (byte < 128) {
          if (value >= 1n << 64n) break;
          return BigInt.asIntN(64, value);
        }
      }
      return unusable("the ONNX file has a number of more than 64 bits");
    };
    const read = (wire) => {
      spend(1);
      if (wire === 0) return varint();
      let count = wire === 1 ? 8 : 4;
      if (wire === 2) {
        const length = BigInt.asUintN(64, varint());
        if (length > BigInt(bytes.length)) unusable("the ONNX file is cut short");
        count = Number(length);
      }
      need(count);
      at += count;
      if (wire === 1) return view.getFloat64(at - 8, true);
      if (wire === 5) return view.getFloat32(at - 4, true);
      return bytes.subarray(at - count, at);
    };

    while (at < bytes.length) {
      const tag = BigInt.asUintN(64, varint());
      const wire = Number(tag % 8n);
      const number = (tag / 8n).toString();
      if (![0, 1, 2, 5].includes(wire) || number === "0") unusable("the ONNX file has a field of no known kind");
      if (!Object.hasOwn(fields, number)) unusable(`the ONNX file has a field (${number}) outside the format`);
      const field = fields[number];
      const start = at;
      const value = read(wire);
      if (field === null) continue;
      const [name, type, repeated] = field;
      if (repeated && type !== BYTES && type !== TEXT && wire === 2) {
        const end = at;
        at = start;
        varint();
        while (at < end) result[name].push(read(WIRE[type]));
        if (at !== end) unusable("the ONNX file has numbers cut short");
        seen.add(name);
        continue;
      }
      if (wire !== WIRE[type]) unusable("the ONNX file has a field of the wrong kind");
      const decoded = type === TEXT ? decodeText(value) : value;
      if (repeated) result[name].push(decoded);
      else if (seen.has(name)) unusable("the ONNX file has a field twice");
      else result[name] = decoded;
      seen.add(name);
    }
    return result;
  }

  const FILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;
  const [TYPE_FLOAT, TYPE_INT32, TYPE_INT64, TYPE_BOOL, TYPE_FLOAT16, TYPE_DOUBLE] = [1, 6, 7, 9, 10, 11];
  const ELEMENT = {
    1: { size: 4, real: true, place: "floats", read: (view, at) => view.getFloat32(at, true) },
    6: { size: 4, real: false, place: "int32s", read: (view, at) => BigInt(view.getInt32(at, true)) },
    7: { size: 8, real: false, place: "int64s", read: (view, at) => view.getBigInt64(at, true) },
    9: { size: 1, real: false, place: "int32s", read: (view, at) => BigInt(view.getUint8(at)) },
    10: { size: 2, real: true, place: "int32s", read: (view, at) => halfFloat(view.getUint16(at, true)) },
    11: { size: 8, real: true, place: "doubles", read: (view, at) => view.getFloat64(at, true) },
  };

  function halfFloat(bits) {
    const sign = bits >= 0x8000 ? -1 : 1;
    const exponent = Math.floor(bits / 1024) % 32;
    const fraction = bits % 1024;
    if (exponent === 31) return bits === 0xfc00 ? -Infinity : NaN;
    return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
  }

  // openTensor(name) gives the bytes of an external file. realTypes notes the type of every floating tensor.
  function readTensor(bytes, openTensor, realTypes) {
    const tensor = message(bytes, TENSOR);
    const type = Number(tensor.type);
    const element = ELEMENT[type];
    if (element === undefined) unusable("a tensor has a type outside the format");
    if (tensor.dims.length > LIMIT.rank) unusable("a tensor has too many dimensions");
    if (tensor.dims.some((dim) => dim < 0n || dim > 2n ** 53n - 1n)) unusable("a tensor has a dimension out of range");
    const shape = tensor.dims.map(Number);
    const size = product(shape); // too large to be exact only where it is refused
    if (size > LIMIT.stored) unusable("a tensor is too large");
    if (size === 0 && product(shape.filter((n) => n > 0)) > LIMIT.elements) unusable("a tensor without elements is too large");

    const places = ["floats", "int32s", "int64s", "doubles"].filter((place) => tensor[place].length > 0);
    if (tensor.raw !== undefined) places.push("raw");
    if (![undefined, 0n, 1n].includes(tensor.location)) unusable("a tensor is stored in an unknown place");
    if (tensor.location === 1n) places.push("external");
    else if (tensor.external.length > 0) unusable("a tensor has external data but is not stored there");
    if (places.length > 1) unusable("a tensor has data in two places");
    const [place = element.place] = places;

    let data;
    if (place === "raw" || place === "external") {
      const raw = place === "raw" ? tensor.raw : externalBytes(tensor.external, openTensor);
      if (raw.length !== size * element.size) unusable("a tensor's data does not fit its dimensions");
      const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
      data = element.real ? new Float64Array(size) : new Array(size);
      for (let i = 0; i < size; i++) {
        spend(1);
        data[i] = element.read(view, i * element.size);
      }
    } else {
      if (place !== element.place) unusable("a tensor's data is of another type");
      data = tensor[place];
      if (data.length !== size) unusable("a tensor's data does not fit its dimensions");
      if (type === TYPE_FLOAT16) {
        if (data.some((bits) => bits < 0n || bits > 65535n)) unusable("a half float has more than 16 bits");
        data = data.map((bits) => halfFloat(Number(bits)));
      }
      if (element.real) data = Float64Array.from(data);
      else if (type === TYPE_INT32 && data.some((x) => x !== BigInt.asIntN(32, x))) unusable("an INT32 is too large");
    }
    if (type === TYPE_BOOL && !data.every(isBit)) unusable("a BOOL is neither 0 nor 1");
    if (element.real) realTypes.add(type);
    return { name: tensor.name, value: element.real ? floats(shape, data) : integers(shape, data) };
  }

  function externalBytes(entries, openTensor) {
    const values = new Map();
    for (const entry of entries) {
      const { key, value } = message(entry, PAIR);
      if (!["location", "offset", "length", "checksum"].includes(key)) unusable("external data with an unknown key");
      if (values.has(key)) unusable("external data with a key twice");
      values.set(key, value);
    }
    const decimal = (key, otherwise) => {
      if (!values.has(key)) return otherwise;
      if (!/^[0-9]{1,12}$/.test(values.get(key))) unusable(`external data whose ${key} is no number of at most 12 digits`);
      return Number(values.get(key));
    };
    const [offset, given] = [decimal("offset", 0), decimal("length", null)];
    // Whatever is not bound is refused, also what could be no file name.
    if (!values.has("location")) unusable("external data without a location");
    const bytes = openTensor(values.get("location"));
    const length = given ?? bytes.length - offset;
    if (length < 0 || offset + length > bytes.length) unusable("external data beyond the end of its file");
    return bytes.subarray(offset, offset + length);
  }

  const ATTRIBUTE_TYPES = { 1: "float", 2: "int", 3: "string", 4: "tensor", 6: "floats", 7: "ints", 8: "strings" };
  const ABSENT = { float: 0, int: 0n };

  function readAttribute(bytes, openTensor, realTypes) {
    const raw = message(bytes, ATTRIBUTE);
    const type = ATTRIBUTE_TYPES[String(raw.type)];
    if (type === undefined) unusable("an attribute has a type outside the format");
    let value = raw[type] ?? ABSENT[type]; // what it holds of other types is ignored
    if (value === undefined) unusable("an attribute lacks its tensor");
    if (type === "tensor") ({ value } = readTensor(value, openTensor, realTypes));
    const isTaken = (x) => Number.isFinite(x) || (x === -Infinity && ["value_float", "value_floats"].includes(raw.name));
    if (type.startsWith("float") && ![value].flat().every(isTaken)) unusable("an attribute holds NaN or infinity");
    return { name: raw.name, type, value };
  }

  // takesNumbers: the network of a box or of balls (section 14.2), whose one input is numbers.
  function readModel(bytes, openTensor, takesNumbers) {
    const model = message(bytes, MODEL);
    if (model.graph === undefined) unusable("the ONNX file has no graph");
    const versions = new Map();
    for (const entry of model.opsets) {
      const { domain, version = 0n } = message(entry, OPSET);
      const name = domain === "ai.onnx" ? "" : domain;
      if (versions.has(name)) unusable("the ONNX file names an opset twice");
      versions.set(name, version);
    }
    const version = versions.get("");
    const oldest = takesNumbers ? 7n : 13n;
    if (version === undefined || version < oldest || version > 22n) unusable(`the opset must be from ${oldest} to 22`);

    const graph = message(model.graph, GRAPH);
    const realTypes = new Set();
    const initializers = new Map();
    for (const entry of graph.initializers) {
      const { name, value } = readTensor(entry, openTensor, realTypes);
      if (name === "" || initializers.has(name)) unusable("an initializer has no name, or a name twice");
      initializers.set(name, value);
    }
    // Of initializers among the inputs, and of the output, only the names are looked at.
    const free = graph.inputs.map(readNamed).filter((info) => !initializers.has(info.name));
    const inputs = free.map(({ name, type }) => {
      const { element, dims } = readType(type);
      if (takesNumbers) return readNumeric(name, element, dims, realTypes);
      if (![BigInt(TYPE_INT32), BigInt(TYPE_INT64)].includes(element)) unusable("an input must be INT32 or INT64");
      if (dims === null || dims.length !== 2) unusable("an input must have rank 2");
      if (dims[0] !== null && dims[0] !== 1n) unusable("an input's first dimension must be 1 or free");
      return { name, length: dims[1] };
    });
    if (graph.outputs.length !== 1) unusable("the model must have exactly one output");
    const output = readNamed(graph.outputs[0]);

    if (graph.nodes.length > LIMIT.nodes) unusable("too many nodes");
    const all = graph.nodes.map((entry) => message(entry, NODE));
    const names = new Set(initializers.keys());
    for (const name of [...inputs.map((input) => input.name), ...all.flatMap((node) => node.outputs)]) {
      if (name !== "" && names.has(name)) unusable("a name that is defined twice");
      names.add(name);
    }
    const nodes = nodesThatCount(all, output.name).map(({ operator, domain, inputs: reads, outputs, attributes }) => {
      if (!["", "ai.onnx"].includes(domain)) unusable("a node of an unknown domain");
      const byName = new Map();
      for (const part of attributes) {
        const attribute = readAttribute(part, openTensor, realTypes);
        if (byName.has(attribute.name)) unusable("an attribute twice");
        byName.set(attribute.name, attribute);
      }
      // What these make is a FLOAT tensor.
      const floating = { Constant: byName.has("value_float") || byName.has("value_floats"), ConstantOfShape: !byName.has("value") };
      if (floating[operator] === true) realTypes.add(TYPE_FLOAT);
      return { operator, inputs: reads, outputs, attributes: byName };
    });
    if (takesNumbers && inputs.length !== 1) unusable("the model must have exactly one input");
    if (realTypes.size > 1) unusable("floating tensors of two types");
    return { version, initializers, nodes, inputs, output, realType: [...realTypes][0], networks: [] };
  }

  // An input of numbers; of two dimensions or more the first may be open.
  function readNumeric(name, element, dims, realTypes) {
    if (![TYPE_FLOAT, TYPE_FLOAT16, TYPE_DOUBLE].some((type) => element === BigInt(type))) unusable("an input must be FLOAT, FLOAT16 or DOUBLE");
    if (dims === null || dims.length === 0 || dims.length > LIMIT.rank) unusable("an input must have from 1 to 8 dimensions");
    realTypes.add(Number(element));
    const shape = dims.map((dim, axis) => (dim === null && axis === 0 && dims.length > 1 ? 1n : dim));
    if (shape.some((dim) => dim === null || dim < 1n || dim > 2n ** 53n - 1n)) unusable("an input must have fixed sizes");
    return { name, shape: shape.map(Number) };
  }

  // The nodes that the output depends on.
  function nodesThatCount(nodes, output) {
    const wanted = new Set([output]);
    const found = nodes.slice().reverse().filter(({ inputs, outputs }) => {
      const counts = outputs.some((name) => name !== "" && wanted.has(name));
      if (counts) inputs.forEach((name) => wanted.add(name));
      return counts;
    });
    return found.reverse();
  }

  function readNamed(bytes) {
    const info = message(bytes, VALUE_INFO);
    if (info.name === "") unusable("an input or output without a name");
    return info;
  }
  function readType(type) {
    const tensor = type === undefined ? undefined : message(type, TYPE).tensor;
    if (tensor === undefined) return { element: undefined, dims: null };
    const { element, shape } = message(tensor, TENSOR_TYPE);
    if (shape === undefined) return { element, dims: null };
    const dims = message(shape, SHAPE).dims.map((entry) => message(entry, DIMENSION).value);
    return { element, dims: dims.map((value) => value ?? null) };
  }

  // ---- Moving elements (section 4.2): one list of places for every operator ----

  function checkShape(shape) {
    if (shape.length > LIMIT.rank) unusable("a shape of too high a rank");
    if (!(product(shape) <= LIMIT.elements)) unusable("a shape of too many elements");
    return shape;
  }
  const stridesOf = (shape) => shape.map((_, axis) => product(shape.slice(axis + 1)));
  // Sums of one offset from each axis, in row-major order.
  function grid(offsets) {
    let result = new Int32Array(1);
    for (const axis of offsets) {
      const next = new Int32Array(result.length * axis.length);
      spend(next.length);
      let at = 0;
      for (const start of result) for (const offset of axis) next[at++] = start + offset;
      result = next;
    }
    return result;
  }
  // The elements of a value at these places.
  function pick(value, shape, places) {
    const data = new value.data.constructor(places.length);
    spend(places.length);
    for (let i = 0; i < places.length; i++) data[i] = value.data[places[i]];
    return { ...value, shape, data };
  }
  // The same where each axis lists its places.
  function pickAxes(value, axes) {
    const shape = checkShape(axes.map((places) => places.length));
    const strides = stridesOf(value.shape);
    return pick(value, shape, grid(axes.map((places, axis) => places.map((i) => i * strides[axis]))));
  }
  // Integers as places along an axis of this length; negative ones count from the end.
  function placesAlong({ data }, length) {
    return mapped(data, (index) => {
      const i = Number(index);
      if (!(i >= -length && i < length)) unusable("an index out of range");
      return i < 0 ? i + length : i;
    });
  }
  const reshaped = (value, shape) => ({ ...value, shape: checkShape(shape) });
  function transposed(value, axes) {
    const strides = stridesOf(value.shape);
    const shape = axes.map((axis) => value.shape[axis]);
    return pick(value, shape, grid(axes.map((axis) => range(value.shape[axis]).map((i) => i * strides[axis]))));
  }
  function broadcastShape(a, b) {
    const rank = Math.max(a.length, b.length);
    const [left, right] = [a, b].map((shape) => [...Array(rank - shape.length).fill(1), ...shape]);
    return checkShape(left.map((n, axis) => {
      if (n !== right[axis] && n !== 1 && right[axis] !== 1) unusable("shapes that do not broadcast");
      return n === 1 ? right[axis] : n;
    }));
  }
  function broadcastPlaces(from, to) {
    const padded = [...Array(to.length - from.length).fill(1), ...from];
    const strides = stridesOf(padded);
    return grid(to.map((n, axis) => range(n).map((i) => (padded[axis] === 1 ? 0 : i * strides[axis]))));
  }
  function broadcast(value, shape) {
    return sameShape(value.shape, shape) ? value : pick(value, shape, broadcastPlaces(value.shape, shape));
  }
  const sameShape = (a, b) => a.length === b.length && a.every((n, axis) => n === b[axis]);
  function axisOf(axis, rank) {
    if (!(axis >= -rank && axis < rank)) unusable("an axis out of range");
    return axis < 0 ? axis + rank : axis;
  }
  function axesOf(axes, rank) {
    const result = axes.map((axis) => axisOf(axis, rank));
    if (new Set(result).size !== result.length) unusable("an axis twice");
    return result;
  }
  function small(value, lowest) {
    if (!(value >= lowest && value <= 2 ** 31)) unusable("a number out of range");
    return value;
  }
  // Ends as in numpy: negative numbers count from the end, then they are cut to what can be reached.
  const cut = (value, length, lowest, highest) => Math.min(Math.max(value < 0 ? value + length : value, lowest), highest);

  // ---------------------------------------------------------------------------------------------------------------
  // The layers of operators (section 4.2): each calculating operator makes a layer, each element of a layer has an id
  //
  //   constant   numbers                                   embed      rows of a table
  //   numbers    the inputs of a network that takes numbers
  //   affine     a row of ids times a column of weights, plus a bias
  //   rectifier  max(x, alpha x)                           maximum    the greatest of a row of ids
  //   product    the product of a row of two ids           curve      the function `curve` (its number) of an id
  //
  // Rows lie one after another in `ids`, each `width` long; -1 is padding, and NONE is refused. Element i of an affine
  // layer has the row row[i] and the column column[i], or with null the row i and the column 0. Numbers among variables
  // make a layer of constants here, in which minus infinity is a 0 that nobody reads; canonicalNetwork below turns all
  // this into what section 4.3 says.
  // ---------------------------------------------------------------------------------------------------------------

  function addLayer(net, kind, shape, details) {
    if (details.ids.includes(NONE)) unusable("minus infinity where an operator does not take it");
    const size = product(checkShape(shape));
    const first = net.ids;
    net.ids += size;
    if (net.ids > LIMIT.ids) lackOfMemory("a network of so many elements");
    net.layers.push({ kind, first, size, ...details });
    return { kind: "variable", shape, data: Int32Array.from({ length: size }, (_, i) => first + i) };
  }
  // The same of an operator that takes minus infinity: NONE, and no element of the layer, where the row holds it (of a
  // maximum: nothing else). Rows are not shared (row is null).
  function addLayerBeside(net, kind, shape, details) {
    const { ids, width, column, bias } = details;
    if (!ids.includes(NONE)) return addLayer(net, kind, shape, details);
    if (kind === "affine" || kind === "curve") net.computed = true;
    const size = product(shape);
    const rowAt = (i) => ids.subarray(i * width, (i + 1) * width);
    const isMade = kind === "maximum" ? (i) => rowAt(i).some((id) => id >= 0) : (i) => !rowAt(i).includes(NONE);
    const places = range(size).filter(isMade);
    const rows = new Int32Array(places.length * width);
    places.forEach((place, i) => rows.set(rowAt(place), i * width));
    const kept = (list) => list && places.map((place) => list[place]);
    const made = addLayer(net, kind, [places.length], { ...details, ids: asPadding(rows), column: kept(column), bias: kept(bias) });
    const data = new Int32Array(size).fill(NONE);
    places.forEach((place, i) => (data[place] = made.data[i]));
    return { kind: "variable", shape, data };
  }
  const asPadding = (ids) => ids.map((id) => (id === NONE ? PADDING : id));
  // The constant element 0 in place of minus infinity.
  function zeroBeside(net, x) {
    if (!holdsInfinity(x)) return x;
    const [zero] = asVariable(net, rationals([1], [0n], 1n)).data;
    return { ...x, data: x.data.map((id) => (id === NONE ? zero : id)) };
  }
  // Numbers among variables are elements like all others, and a variable has one at least.
  function asVariable(net, value) {
    if (value.kind === "variable") return value;
    if (value.kind !== "numbers") unusable("integers or tokens among values of another kind");
    if (value.data.length === 0) unusable("a variable without elements");
    const num = numerators(value);
    const made = addLayer(net, "constant", value.shape, { ids: [], num: num.map((n) => (n === -Infinity ? 0n : n)), den: value.den });
    num.forEach((n, i) => n === -Infinity && (made.data[i] = NONE));
    return made;
  }
  // Values of one kind, or numbers and variables, one after another.
  function oneAfterAnother(net, values) {
    const kinds = new Set(values.map((value) => value.kind));
    if (kinds.size > 1) return oneAfterAnother(net, values.map((value) => asVariable(net, value)));
    const size = values.reduce((sum, value) => sum + value.data.length, 0);
    const list = (parts) => parts.flatMap((part) => Array.from(part));
    if (kinds.has("numbers")) {
      if (values.every((value) => value.scale !== 0)) return floats([size], Float64Array.from(list(values.map((value) => value.data))));
      const den = values.map((value) => value.den).reduce(leastMultiple);
      return rationals([size], list(values.map((value) => numeratorsOver(den, value))), den);
    }
    const data = list(values.map((value) => value.data));
    return { ...values[0], shape: [size], data: values[0].data.constructor.from(data) };
  }
  // Element i of each value, one value after the other: rows of as many ids as there are values.
  function sideBySide(net, values, shape) {
    const ids = new Int32Array(product(shape) * values.length);
    spend(ids.length);
    values.forEach((value, place) => {
      const { data } = broadcast(asVariable(net, value), shape);
      for (let i = 0; i < data.length; i++) ids[i * values.length + place] = data[i];
    });
    return ids;
  }

  function affine(net, shape, ids, width, details, add = addLayer) {
    const all = { ids, width, row: null, column: null, weights: null, weightDen: 1n, bias: null, biasDen: 1n, ...details };
    // The steps of a recurrent layer share their weights.
    if (!net.bounded.has(all.weights)) all.weights.forEach(bounded);
    net.bounded.add(all.weights);
    return add(net, "affine", shape, all);
  }
  // sum of signs[j] * values[j]. In Add and Sub a number is the bias; in Sum, where two could cancel, an element.
  function sum(net, values, signs, mayBias) {
    if (values.every((value) => value.kind !== "variable")) unusable("an operator on variables that is given constants alone");
    if (values.length === 1) return values[0];
    needFinite(...values.filter((_, j) => signs[j] < 0n));
    const shape = values.map((value) => value.shape).reduce(broadcastShape);
    if (values.length * product(shape) > LIMIT.ids) lackOfMemory("a sum of so many inputs");
    const numbers = values.filter((value) => value.kind === "numbers");
    const hasBias = mayBias && numbers.length === 1;
    const isBias = (value) => hasBias && value === numbers[0];
    const terms = range(values.length).filter((j) => !isBias(values[j]));
    const details = { weights: terms.map((j) => signs[j]) };
    const ids = sideBySide(net, terms.map((j) => values[j]), shape);
    if (hasBias) {
      const [bias] = numbers;
      const sign = signs[values.indexOf(bias)];
      const num = numerators(bias).map((x) => (x === -Infinity ? x : sign * x));
      details.bias = Array.from(broadcastPlaces(bias.shape, shape), (i) => num[i]);
      details.biasDen = bias.den;
      details.bias.forEach((x, i) => x === -Infinity && (ids[i * terms.length] = NONE));
    }
    return affine(net, shape, ids, terms.length, details, addLayerBeside);
  }
  // Each element times its own number: factors by place.
  function scaled(net, x, shape, factors, weightDen, column, details = {}) {
    return affine(net, shape, sideBySide(net, [x], shape), 1, { weights: factors, weightDen, column, ...details }, addLayerBeside);
  }
  const negated = (net, x) => scaled(net, x, x.shape, [-1n], 1n, null);

  // ---- two values, element by element

  const COMPARISONS = {
    Equal: (m, n) => m === n, Greater: (m, n) => m > n, GreaterOrEqual: (m, n) => m >= n,
    Less: (m, n) => m < n, LessOrEqual: (m, n) => m <= n,
  };
  // On integers, and (but Div) on numerators over one denominator.
  const EXACT = {
    Add: (m, n) => m + n, Sub: (m, n) => m - n, Mul: (m, n) => m * n, Div: (m, n) => m / n,
    Max: larger, Min: smaller,
    ...Object.fromEntries(Object.entries(COMPARISONS).map(([name, holds]) => [name, (m, n) => BigInt(holds(m, n))])),
  };

  function ofTwo(net, operator, a, b) {
    const [x, c] = a.kind === "variable" ? [a, b] : [b, a];
    if (x.kind !== "variable") return ofConstants(net, operator, a, b);
    if (!KINDS.real.includes(c.kind)) unusable("integers or tokens beside a variable");
    if (operator === "Add") return sum(net, [a, b], [1n, 1n], true);
    if (operator === "Sub") return sum(net, [a, b], [1n, -1n], true);
    if (operator === "Max" || operator === "Min") {
      return c.kind === "numbers" ? limited(net, operator, x, c) : extremum(net, [a, b], operator === "Min");
    }
    const shape = broadcastShape(a.shape, b.shape);
    needFinite(c);
    if (operator === "Div" && b.kind === "variable") {
      const inverse = curve(net, CURVES.Reciprocal, b);
      if (a.kind === "variable") return productOf(net, a, inverse);
      return scaled(net, inverse, shape, numerators(a), a.den, broadcastPlaces(a.shape, shape));
    }
    if (c.kind === "variable") return productOf(net, a, b);
    const { data, den } = operator === "Mul" ? { data: numerators(c), den: c.den } : inverses(c);
    const column = broadcastPlaces(c.shape, shape);
    if (holdsInfinity(x) && broadcast(x, shape).data.some((id, i) => id === NONE && data[column[i]] <= 0n)) {
      unusable("minus infinity times a number that is not above 0");
    }
    return scaled(net, x, shape, data, den, column);
  }
  // Max and Min of a variable and numbers: c + Relu(x - c), and c - Relu(c - x). These rectifiers refuse minus infinity.
  function limited(net, operator, x, c) {
    const toAdd = (left, right, sign) => sum(net, [left, right], [1n, sign], true);
    if (operator === "Min") return toAdd(c, rectifier(net, toAdd(c, x, -1n), ZERO), -1n);
    if (numerators(c).every((n) => n === 0n)) return relu(net, broadcast(x, broadcastShape(x.shape, c.shape)));
    return toAdd(c, rectifier(net, toAdd(x, c, -1n), ZERO), 1n);
  }

  function ofConstants(net, operator, a, b) {
    const shape = broadcastShape(a.shape, b.shape);
    const [x, y] = [a, b].map((value) => broadcast(value, shape));
    const kinds = [x.kind, y.kind].sort().join(" and ");
    if (kinds === "integers and tokens") return ofTokens(net, operator, x, y);
    if (kinds === "integers and integers") {
      const results = mapped(x.data, (m, i) => onIntegers(operator, m, y.data[i]));
      if (results.includes(null)) unusable("a division of negative numbers or by zero, or a computed integer of more than 32 bits");
      return integers(shape, results);
    }
    if (kinds !== "numbers and numbers") unusable(`an operator on ${kinds}`);
    if (isAnyTiny(x) || isAnyTiny(y)) net.computed = true;
    if (operator === "Div") {
      needFinite(y);
      const inverse = inverses(y);
      return computedNumbers(net, rationals(shape, mapped(numerators(x), (m, i) => onNumbers("Mul", m, inverse.data[i])), x.den * inverse.den));
    }
    const den = leastMultiple(x.den, y.den);
    const [left, right] = [x, y].map((value) => numeratorsOver(den, value));
    const data = mapped(left, (m, i) => onNumbers(operator, m, right[i]));
    if (Object.hasOwn(COMPARISONS, operator)) return integers(shape, data);
    return computedNumbers(net, rationals(shape, data, operator === "Mul" ? den * den : den));
  }
  const isShort = (n) => n === BigInt.asIntN(32, n);
  const isLong = (n) => n === BigInt.asIntN(64, n);
  // Is one of these numbers not 0, and below what float32 can hold with all its bits? A runtime may read it as 0.
  const isAnyTiny = ({ data, den, scale }) => data.some((x) => scale === 0
    ? x !== 0n && x !== -Infinity && absolute(x) << 126n < den
    : x !== 0 && Math.abs(x) < 2 ** -126);
  // null for what computed integers must not be: INT32 wraps around.
  function onIntegers(operator, m, n) {
    if (operator === "Div" && (m < 0n || n <= 0n)) return null;
    const result = EXACT[operator](m, n);
    return isShort(result) ? result : null;
  }
  // Numerators over one denominator. Of minus infinity and a sign the floats know what comes: it, or what is refused.
  function onNumbers(operator, m, n) {
    if ((m !== -Infinity && n !== -Infinity) || !["Add", "Sub", "Mul"].includes(operator)) return EXACT[operator](m, n);
    const [left, right] = [m, n].map((x) => (x === -Infinity ? x : Number(x > 0n) - Number(x < 0n)));
    const result = EXACT[operator](left, right);
    return result === -Infinity ? result : unusable("a computed NaN or plus infinity");
  }
  // The greatest finite numbers.
  const GREATEST = { [TYPE_FLOAT]: 2n ** 128n - 2n ** 104n, [TYPE_FLOAT16]: 65504n, [TYPE_DOUBLE]: 2n ** 1024n - 2n ** 971n };
  // Rounding plays no part where the results are whole and at most 2^24 (and what they come from is not tiny).
  function computedNumbers(net, value) {
    const greatest = GREATEST[net.realType] * value.den;
    for (const n of value.data) {
      if (n === -Infinity) continue;
      if (absolute(bounded(n)) > greatest) unusable("a computed number that is infinite in the model's type");
      if (n % value.den !== 0n || absolute(n) > value.den << 24n) net.computed = true;
    }
    return value;
  }
  // Tokens beside integers: what is the same for all that may stand at a position is a constant. A network is built once
  // for all certificates that find the same here.
  function ofTokens(net, operator, x, y) {
    const look = (standing) => range(x.data.length).map((i) => {
      const position = (x.kind === "tokens" ? x : y).data[i];
      spend(standing[position].length);
      const results = standing[position].map((token) => {
        const [m, n] = [x, y].map(({ kind, data }) => (kind === "tokens" ? BigInt(token) : data[i]));
        return onIntegers(operator, m, n);
      });
      if (results.includes(null)) refuse("with some option the model divides by zero, or leaves 32 bits");
      if (results.some((result) => result !== results[0])) refuse("the options of a word differ in what the model computes from tokens");
      return results[0];
    });
    const found = look(net.standing);
    net.looks.push({ look, found });
    return integers(x.shape, found);
  }
  function inverses(numbers) {
    const num = numerators(numbers);
    if (num.includes(0n)) unusable("division by zero");
    const den = [...new Set(num.map(absolute))].reduce(leastMultiple, 1n);
    return { data: mapped(num, (x) => (numbers.den * den) / x), den };
  }

  // The products of pairs, but padding for those with the constant element 0.
  function addProducts(net, pairs) {
    const isZero = new Uint8Array(net.ids);
    for (const { kind, first, num } of net.layers) if (kind === "constant") num.forEach((n, i) => n === 0n && (isZero[first + i] = 1));
    const ids = pairs.map((id) => (isZero[id] === 1 ? NONE : id));
    if (ids.includes(NONE)) net.computed = true;
    return asPadding(addLayerBeside(net, "product", [ids.length / 2], { ids, width: 2 }).data);
  }
  // alpha A B + bias, one of A and B variable, over the last two axes; the axes before are broadcast.
  function matrixProduct(net, a, b, alpha, bias) {
    const swapLast = (value) => transposed(value, [...range(value.shape.length - 2), value.shape.length - 1, value.shape.length - 2]);
    const variables = [a, b].filter((value) => value.kind === "variable").length;
    if (variables === 0) unusable("a product of numbers alone");
    if (a.shape.length < 2 || b.shape.length < 2) unusable("a product of too low a rank");
    const [m, inner] = a.shape.slice(-2);
    const [other, n] = b.shape.slice(-2);
    if (inner !== other) unusable("a product of matrices that do not fit");
    const batch = broadcastShape(a.shape.slice(0, -2), b.shape.slice(0, -2));
    const shape = checkShape([...batch, m, n]);
    // Rows of A and columns of B, numbered through all matrices.
    const rows = batch.length === 0 ? new Int32Array(1) : broadcastPlaces(a.shape.slice(0, -2), batch);
    const columns = batch.length === 0 ? new Int32Array(1) : broadcastPlaces(b.shape.slice(0, -2), batch);
    const left = new Int32Array(product(shape));
    const right = new Int32Array(product(shape));
    for (let i = 0; i < left.length; i++) {
      const matrix = Math.floor(i / (m * n));
      left[i] = rows[matrix] * m + (Math.floor(i / n) % m);
      right[i] = columns[matrix] * n + (i % n);
    }
    const turned = swapLast(b);
    if (variables === 2) {
      const pairs = new Int32Array(2 * product(checkShape([...shape, inner])));
      spend(pairs.length);
      for (let i = 0, at = 0; i < left.length; i++) {
        for (let k = 0; k < inner; k++) {
          pairs[at++] = a.data[left[i] * inner + k];
          pairs[at++] = turned.data[right[i] * inner + k];
        }
      }
      return affine(net, shape, addProducts(net, pairs), inner, { weights: Array(inner).fill(1n) });
    }
    const [x, w, row, column] = a.kind === "variable" ? [a, turned, left, right] : [turned, a, right, left];
    const weights = mapped(numerators(w), (weight) => weight * alpha.num);
    return affine(net, shape, x.data, inner, { row, column, weights, weightDen: w.den * alpha.den, ...bias });
  }

  // ---- windows

  // Windows over spatial axes: for each output place its input places in row-major kernel order, -1 over padding.
  function slide(spatial, kernel, a, copies) {
    const rank = spatial.length;
    const list = (name, length, lowest, otherwise) => {
      const values = a[name] ?? Array(length).fill(otherwise);
      if (values.length !== length) unusable(`${name} of the wrong length`);
      return values.map((value) => small(value, lowest));
    };
    const automatic = a.auto_pad;
    if (!["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"].includes(automatic)) unusable("an unknown auto_pad");
    if (automatic !== "NOTSET" && (a.pads !== null || a.ceil_mode)) unusable("auto_pad beside pads or ceil_mode");
    const strides = list("strides", rank, 1, 1);
    const dilations = list("dilations", rank, 1, 1);
    const pads = list("pads", 2 * rank, 0, 0);
    const axes = spatial.map((n, axis) => {
      const [stride, dilation] = [strides[axis], dilations[axis]];
      const reach = (kernel[axis] - 1) * dilation + 1;
      if (automatic.startsWith("SAME")) {
        const size = Math.ceil(n / stride);
        const half = Math.max(0, (size - 1) * stride + reach - n) / 2;
        return { size, before: automatic === "SAME_UPPER" ? Math.floor(half) : Math.ceil(half) };
      }
      const [before, after] = [pads[axis], pads[axis + rank]];
      const steps = (n + before + after - reach) / stride;
      if (steps < 0) unusable("a kernel larger than its input");
      let size = (a.ceil_mode ? Math.ceil(steps) : Math.floor(steps)) + 1;
      if (a.ceil_mode && (size - 1) * stride >= n + before) size -= 1;
      return { size, before };
    });
    const out = axes.map(({ size }) => size);
    if (out.some((n) => !(n >= 1))) unusable("a kernel larger than its input");
    if (product(out) * product(kernel) * copies > LIMIT.windows) unusable("windows of too many elements");
    const inputStrides = stridesOf(spatial);
    let windows = [[0]];
    axes.forEach(({ size, before }, axis) => {
      // Each window so far, for each output place on this axis, with each kernel place on this axis.
      windows = windows.flatMap((window) =>
        range(size).map((place) =>
          window.flatMap((start) =>
            range(kernel[axis]).map((k) => {
              const at = place * strides[axis] - before + k * dilations[axis];
              return start < 0 || at < 0 || at >= spatial[axis] ? -1 : start + at * inputStrides[axis];
            }),
          ),
        ),
      );
    });
    return { out, windows };
  }

  // The windows of reduced axes, one after another.
  function reduceWindows(x, axes, keep) {
    if (product(x.shape) > LIMIT.windows) unusable("windows of too many elements");
    const strides = stridesOf(x.shape);
    const steps = (list) => list.map((axis) => range(x.shape[axis]).map((i) => i * strides[axis]));
    const kept = range(x.shape.length).filter((axis) => !axes.includes(axis));
    const inside = range(x.shape.length).filter((axis) => axes.includes(axis));
    const shape = keep ? x.shape.map((n, axis) => (axes.includes(axis) ? 1 : n)) : kept.map((axis) => x.shape[axis]);
    const width = product(inside.map((axis) => x.shape[axis]));
    const places = grid([...steps(kept), ...steps(inside)]);
    return { shape, width, ids: x.kind === "variable" ? pick(x, x.shape, places).data : places };
  }
  // Axes as an attribute or as a list, or null.
  function givenAxes({ axes }, list) {
    if (axes !== null && list !== null) unusable("axes twice");
    return axes ?? list;
  }
  // A Reduce operator: what `reduce` makes of the windows of the axes; without axes all are meant, or nothing is done.
  function reduction(a, x, list, reduce) {
    const axes = givenAxes(a, list) ?? [];
    if (axes.length === 0 && a.noop_with_empty_axes) return x;
    return reduce(reduceWindows(x, axes.length === 0 ? range(x.shape.length) : axesOf(axes, x.shape.length), a.keepdims));
  }
  // The sums of the windows of constants.
  function constantSums(net, x, { shape, width, ids }) {
    const num = x.kind === "numbers" ? numerators(x) : x.data;
    const windows = mapped(range(product(checkShape(shape))), (i) => Array.from(ids.subarray(i * width, (i + 1) * width), (place) => num[place]));
    const sums = (of) => windows.map((window) => window.reduce((all, n) => all + of(n), 0n));
    if (x.kind === "integers") {
      const totals = sums((n) => n);
      if (!totals.every(isShort)) unusable("a computed integer of more than 32 bits");
      return integers(shape, totals);
    }
    // No order of adding rounds when all is whole and small.
    if (num.some((n) => n % x.den !== 0n) || sums(absolute).some((n) => n > x.den << 24n)) net.computed = true;
    return computedNumbers(net, rationals(shape, sums((n) => n), x.den));
  }
  function globalPool(x) {
    checkSpatial(x);
    return reduceWindows(x, range(x.shape.length).slice(2), true);
  }
  function checkSpatial(x) {
    if (![3, 4].includes(x.shape.length)) unusable("windows on another rank than 3 or 4");
  }
  function pool(a, x) {
    checkSpatial(x);
    const [batch, channels, ...spatial] = x.shape;
    if (a.kernel_shape === null || a.kernel_shape.length !== spatial.length) unusable("a pool without a kernel_shape that fits");
    const kernel = a.kernel_shape.map((n) => small(n, 1));
    const { out, windows } = slide(spatial, kernel, a, batch * channels);
    if (windows.some((window) => window.every((i) => i < 0))) unusable("a window of padding alone");
    const width = product(kernel);
    const size = product(spatial);
    const ids = new Int32Array(batch * channels * windows.length * width);
    let at = 0;
    for (let copy = 0; copy < batch * channels; copy++) {
      for (const window of windows) for (const i of window) ids[at++] = i < 0 ? -1 : x.data[copy * size + i];
    }
    return { shape: [batch, channels, ...out], width, ids };
  }
  // The sum over each window divided by a count.
  function mean(net, { shape, width, ids }, countOf, details = {}) {
    const counts = Array.from({ length: product(shape) }, (_, i) => countOf(ids.subarray(i * width, (i + 1) * width)));
    const different = [...new Set(counts)];
    const den = different.map(BigInt).reduce(leastMultiple, 1n);
    const weights = different.flatMap((count) => Array(width).fill(den / BigInt(count)));
    const column = Int32Array.from(counts, (count) => different.indexOf(count));
    return affine(net, shape, ids, width, { column, weights, weightDen: den, ...details });
  }
  function maximum(net, { shape, width, ids }) {
    if (ids.length > LIMIT.windows) unusable("windows of too many elements");
    return addLayerBeside(net, "maximum", shape, { ids, width });
  }
  // Max, or Min as the negative of the Max of the negatives.
  function extremum(net, values, isMin) {
    if (values.every((value) => value.kind !== "variable")) unusable("an operator on variables that is given constants alone");
    if (!values.every((value) => KINDS.real.includes(value.kind))) unusable("integers or tokens beside a variable");
    if (isMin) needFinite(...values);
    if (values.length === 1) return values[0];
    const shape = values.map((value) => value.shape).reduce(broadcastShape);
    if (product(shape) * values.length > LIMIT.windows) unusable("windows of too many elements");
    if (!isMin) return maximum(net, { shape, width: values.length, ids: sideBySide(net, values, shape) });
    // The inputs times -1 are one layer: one input after another, each broadcast.
    const size = product(shape);
    const all = values.flatMap((value) => Array.from(broadcast(asVariable(net, value), shape).data));
    const { data } = negated(net, { kind: "variable", shape: [values.length, ...shape], data: Int32Array.from(all) });
    const parts = values.map((_, place) => ({ kind: "variable", shape, data: data.subarray(place * size, (place + 1) * size) }));
    return negated(net, maximum(net, { shape, width: values.length, ids: sideBySide(net, parts, shape) }));
  }
  const ZERO = { num: 0n, den: 1n };
  const rectifier = (net, x, alpha, add = addLayer) => add(net, "rectifier", x.shape, { ids: x.data, width: 1, alpha });
  const relu = (net, x) => zeroBeside(net, rectifier(net, x, ZERO, addLayerBeside));
  // (1 - s) Relu(x) + s x, with a number s for each element.
  function bent(net, x, s) {
    const slopes = numerators(s);
    const ids = sideBySide(net, [rectifier(net, x, ZERO), x], x.shape);
    const weights = slopes.flatMap((slope) => [s.den - slope, slope]);
    return affine(net, x.shape, ids, 2, { weights, weightDen: s.den, column: broadcastPlaces(s.shape, x.shape) });
  }

  // ---- Smooth operators (section 4.2): each step is a layer

  const CURVES = { Exp: 1, Tanh: 2, Sigmoid: 3, Erf: 4, Reciprocal: 5, Sqrt: 6 };
  const curve = (net, number, x, add = addLayer) => add(net, "curve", x.shape, { ids: x.data, width: 1, curve: number });
  function productOf(net, x, y, add = addLayer) {
    const shape = broadcastShape(x.shape, y.shape);
    return add(net, "product", shape, { ids: sideBySide(net, [x, y], shape), width: 2 });
  }
  // The sum of factors[j] times variable j, and of a number; numbers are { num, den }.
  function combined(net, variables, factors, bias, add = addLayer) {
    const shape = variables.map((x) => x.shape).reduce(broadcastShape);
    const weightDen = factors.map(({ den }) => den).reduce(leastMultiple, 1n);
    const details = { weights: factors.map(({ num, den }) => num * (weightDen / den)), weightDen };
    if (bias.num !== 0n) Object.assign(details, { bias: Array(product(shape)).fill(bias.num), biasDen: bias.den });
    return affine(net, shape, sideBySide(net, variables, shape), variables.length, details, add);
  }
  const [UNIT, MINUS, HALF] = [{ num: 1n, den: 1n }, { num: -1n, den: 1n }, { num: 1n, den: 2n }];
  const times = (x, y) => ({ num: x.num * y.num, den: x.den * y.den });
  // The float32 numbers nearest to 1/sqrt(2), sqrt(2/pi) and 0.044715, by their bits.
  const [ROOT_HALF, ROOT_PI, CUBIC] = [0x3f3504f3, 0x3f4c422a, 0x3d372713].map((bits) => {
    return exact(new Float32Array(Uint32Array.of(bits).buffer)[0]);
  });

  function smooth(number) {
    return { takes: ["variable"], has: {}, make: (net, a, x) => curve(net, number, x) };
  }
  function power(net, x, exponent) {
    net.computed = true;
    if (exponent.data.length !== 1) unusable("a Pow by several numbers");
    const base = broadcast(x, broadcastShape(x.shape, exponent.shape));
    const num = numerator(exponent, 0) * 2n;
    const is = (twice) => num === twice * exponent.den;
    if (is(2n)) return base;
    if (is(4n)) return productOf(net, base, base);
    if (is(6n)) return productOf(net, productOf(net, base, base), base);
    if (is(1n)) return curve(net, CURVES.Sqrt, base);
    if (is(-1n)) return curve(net, CURVES.Reciprocal, curve(net, CURVES.Sqrt, base));
    if (is(-2n)) return curve(net, CURVES.Reciprocal, base);
    return unusable("a Pow by another number than 2, 3, 0.5, -0.5, -1 and 1");
  }
  function gelu(net, x, approximate) {
    if (approximate !== "none" && approximate !== "tanh") unusable("an unknown approximation of Gelu");
    if (approximate === "none") {
      const error = curve(net, CURVES.Erf, combined(net, [x], [ROOT_HALF], ZERO));
      return productOf(net, x, combined(net, [error], [HALF], HALF));
    }
    const cube = productOf(net, productOf(net, x, x), x);
    const inner = combined(net, [x, cube], [ROOT_PI, times(ROOT_PI, CUBIC)], ZERO);
    return productOf(net, x, combined(net, [curve(net, CURVES.Tanh, inner)], [HALF], HALF));
  }
  function softmax(net, x, axis) {
    net.computed = true;
    const axes = [axisOf(axis, x.shape.length)];
    const most = needFinite(maximum(net, reduceWindows(x, axes, true)));
    const powers = curve(net, CURVES.Exp, combined(net, [x, most], [UNIT, MINUS], ZERO, addLayerBeside), addLayerBeside);
    const { ids, ...lines } = reduceWindows(powers, axes, true);
    const inverse = curve(net, CURVES.Reciprocal, mean(net, { ...lines, ids: asPadding(ids) }, () => 1));
    return zeroBeside(net, productOf(net, powers, inverse, addLayerBeside));
  }
  function layerNormalization(net, a, x, scale, shift) {
    net.computed = true;
    if (a.stash_type !== 1) unusable("a LayerNormalization of another stash_type");
    const axes = range(x.shape.length).slice(axisOf(a.axis, x.shape.length));
    const inner = axes.map((axis) => x.shape[axis]);
    for (const c of [scale, shift]) {
      if (c !== null && !sameShape(broadcastShape(c.shape, inner), inner)) unusable("a LayerNormalization that does not fit");
    }
    const meanOf = (value, details) => mean(net, reduceWindows(value, axes, true), (w) => w.length, details);
    const apart = combined(net, [x, meanOf(x, {})], [UNIT, MINUS], ZERO);
    const squares = productOf(net, apart, apart);
    const lines = product(x.shape) / product(inner);
    const spread = meanOf(squares, { bias: Array(lines).fill(a.epsilon.num), biasDen: a.epsilon.den });
    const normal = productOf(net, apart, curve(net, CURVES.Reciprocal, curve(net, CURVES.Sqrt, spread)));
    const details = {};
    if (shift !== null) {
      const num = numerators(shift);
      Object.assign(details, { bias: Array.from(broadcastPlaces(shift.shape, x.shape), (i) => num[i]), biasDen: shift.den });
    }
    return scaled(net, normal, x.shape, numerators(scale), scale.den, broadcastPlaces(scale.shape, x.shape), details);
  }
  // Sums of squares, and of ReduceL2 their roots.
  function norm(isRoot) {
    return { takes: ["variable", "list?"], has: REDUCE, make(net, a, x, list) {
      if (isRoot) net.computed = true;
      if ((givenAxes(a, list) ?? []).length === 0 && a.noop_with_empty_axes) unusable("a norm over no axes");
      const sums = reduction(a, productOf(net, x, x), list, (windows) => mean(net, windows, () => 1));
      return isRoot ? curve(net, CURVES.Sqrt, sums) : sums;
    } };
  }
  // What stands last is a head; elsewhere it is smooth.
  function headOr(make, has, kind = "variable") {
    return { takes: [kind], has, make(net, a, x) {
      const last = net.model.nodes[net.model.nodes.length - 1];
      if (net.outputs !== last.outputs || net.outputs[0] !== net.model.output.name) return make(net, a, x);
      if (a.axis !== undefined && axisOf(a.axis, x.shape.length) !== x.shape.length - 1) unusable("a head over another axis than the last");
      net.head = true;
      return x;
    } };
  }

  // ---- LSTM, GRU, RNN (section 4.4)

  const RECURRENT = {
    LSTM: { gates: 4, activations: ["sigmoid", "tanh", "tanh"] },
    GRU: { gates: 3, activations: ["sigmoid", "tanh"] },
    RNN: { gates: 1, activations: ["tanh"] },
  };
  const lowerCase = (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const flat = (data) => ({ kind: "variable", shape: [data.length], data: Int32Array.from(data) });

  function recurrent(operator) {
    const { gates, activations } = RECURRENT[operator];
    const has = {
      hidden_size: ["int", null], direction: ["string", "forward"], layout: ["int", 0], activations: ["strings", null],
      ...(operator === "LSTM" ? { input_forget: ["int", 0] } : {}),
      ...(operator === "GRU" ? { linear_before_reset: ["flag", 0] } : {}),
    };
    const takes = ["variable", "numbers", "numbers", "numbers?", "integers?", "real?", ...(operator === "LSTM" ? ["real?"] : [])];
    return { takes, has, make(net, a, x, w, r, b, ends, h0, c0 = null) {
      const must = (holds) => holds || unusable(`inputs or attributes of ${operator} that do not fit`);
      must(["forward", "reverse", "bidirectional"].includes(a.direction));
      must([x, w, r].every((value) => value.shape.length === 3));
      const directions = a.direction === "bidirectional" ? 2 : 1;
      const [length, batch, inner] = x.shape;
      const hidden = r.shape[2];
      must(batch === 1 && hidden >= 1 && (a.hidden_size ?? hidden) === hidden && a.layout === 0 && (a.input_forget ?? 0) === 0);
      must(sameShape(w.shape, [directions, gates * hidden, inner]) && sameShape(r.shape, [directions, gates * hidden, hidden]));
      must(b === null || sameShape(b.shape, [directions, 2 * gates * hidden]));
      must([h0, c0].every((state) => state === null || sameShape(state.shape, [directions, 1, hidden])));
      const wanted = range(directions).flatMap(() => activations);
      must(a.activations === null || (a.activations.length === wanted.length && wanted.every((name, i) => lowerCase(a.activations[i]) === name)));
      must(ends === null || sameShape(ends.shape, [1]));
      const steps = ends === null ? length : Number(ends.data[0]);
      must(steps >= 1 && steps <= length);

      const zeros = asVariable(net, rationals([hidden], Array(hidden).fill(0n), 1n)).data;
      const one = b === null ? [] : Array.from(asVariable(net, rationals([1], [1n], 1n)).data);
      const ids = { all: [], h: [], c: [] };
      ids.all = range(length).map(() => range(directions).map(() => zeros));
      range(directions).forEach((d) => {
        const part = (state) => state === null ? zeros : asVariable(net, state).data.slice(d * hidden, (d + 1) * hidden);
        const rows = gateRows(w, r, b, d, gates * hidden);
        let [h, c] = [part(h0), part(c0)];
        for (let step = 0; step < steps; step++) {
          lookAtClock();
          const t = d === 1 || a.direction === "reverse" ? steps - 1 - step : step;
          const now = x.data.subarray(t * inner, (t + 1) * inner);
          [h, c] = STEPS[operator](net, rows, { now, h, c, one, hidden }, a);
          ids.all[t][d] = h;
        }
        ids.h.push(h);
        ids.c.push(c);
      });
      const joinedIds = (parts) => Int32Array.from(parts.flatMap((part) => Array.from(part)));
      const last = (parts) => ({ kind: "variable", shape: [directions, 1, hidden], data: joinedIds(parts) });
      const whole = { kind: "variable", shape: checkShape([length, directions, 1, hidden]), data: joinedIds(ids.all.flat()) };
      return [whole, last(ids.h), ...(operator === "LSTM" ? [last(ids.c)] : [])];
    } };
  }
  // The gate rows of one direction: weights of x, of h and, if there is B, of 1; and biases. Parts of these are asked for
  // again in each step, and are then the same objects.
  function gateRows(w, r, b, d, count) {
    const [inner, hidden] = [w.shape[2], r.shape[2]];
    const [left, right] = [w, r].map(({ data, shape, ...value }) => {
      const size = shape[1] * shape[2];
      return numerators({ ...value, shape: [shape[1], shape[2]], data: data.slice(d * size, (d + 1) * size) });
    });
    const shifts = b === null ? null : range(2 * count).map((i) => numerator(b, d * 2 * count + i));
    const biasDen = b === null ? 1n : b.den;
    const weightDen = [w.den, r.den, biasDen].reduce(leastMultiple);
    const [ofLeft, ofRight, ofShift] = [w.den, r.den, biasDen].map((den) => weightDen / den);
    const made = new Map();
    // Rows from start to end, of x or not, of h or not.
    return (start, end, hasInput, hasState) => {
      const key = [start, end, hasInput, hasState].join();
      if (made.has(key)) return made.get(key);
      const weights = [];
      for (let i = start; i < end; i++) {
        spend(inner + hidden);
        if (hasInput) for (let k = 0; k < inner; k++) weights.push(left[i * inner + k] * ofLeft);
        if (hasState) for (let k = 0; k < hidden; k++) weights.push(right[i * hidden + k] * ofRight);
        if (hasState && b !== null) weights.push(shifts[count + i] * ofShift);
      }
      const rows = {
        row: new Int32Array(end - start), column: Int32Array.from(range(end - start)), weights, weightDen,
        ...(hasInput && b !== null ? { bias: shifts.slice(start, end), biasDen } : {}),
      };
      made.set(key, rows);
      return rows;
    };
  }
  function gatesOf(net, rows, start, end, input, state, one) {
    const ids = Int32Array.from([...(input ?? []), ...(state === null ? [] : [...state, ...one])]);
    return affine(net, [end - start], ids, ids.length, rows(start, end, input !== null, state !== null)).data;
  }
  const pairsOf = (net, x, y) => productOf(net, flat(x), flat(y)).data;
  const curveOf = (net, number, x) => curve(net, number, flat(x)).data;
  const sumsOf = (net, x, y) => combined(net, [flat(x), flat(y)], [UNIT, UNIT], ZERO).data;
  // One step: the next states. `now` is what x holds.
  const STEPS = {
    LSTM(net, rows, { now, h, c, one, hidden }) {
      const gates = gatesOf(net, rows, 0, 4 * hidden, now, h, one);
      const open = curveOf(net, CURVES.Sigmoid, gates.subarray(0, 3 * hidden));
      const cell = curveOf(net, CURVES.Tanh, gates.subarray(3 * hidden));
      const [i, o, f] = range(3).map((n) => open.subarray(n * hidden, (n + 1) * hidden));
      const parts = pairsOf(net, [...f, ...i], [...c, ...cell]);
      const next = sumsOf(net, parts.subarray(0, hidden), parts.subarray(hidden));
      return [pairsOf(net, o, curveOf(net, CURVES.Tanh, next)), next];
    },
    GRU(net, rows, { now, h, one, hidden }, { linear_before_reset: isLinearFirst }) {
      const open = curveOf(net, CURVES.Sigmoid, gatesOf(net, rows, 0, 2 * hidden, now, h, one));
      const [z, r] = [open.subarray(0, hidden), open.subarray(hidden)];
      const [from, to] = [2 * hidden, 3 * hidden];
      let inner;
      if (isLinearFirst) {
        const reset = pairsOf(net, r, gatesOf(net, rows, from, to, null, h, one));
        inner = sumsOf(net, gatesOf(net, rows, from, to, now, null, one), reset);
      } else {
        inner = gatesOf(net, rows, from, to, now, pairsOf(net, r, h), one);
      }
      const fresh = curveOf(net, CURVES.Tanh, inner);
      const rest = combined(net, [flat(z)], [MINUS], UNIT).data;
      const parts = pairsOf(net, [...rest, ...z], [...fresh, ...h]);
      return [sumsOf(net, parts.subarray(0, hidden), parts.subarray(hidden)), null];
    },
    RNN: (net, rows, { now, h, one, hidden }) => [curveOf(net, CURVES.Tanh, gatesOf(net, rows, 0, hidden, now, h, one)), null],
  };

  // ---- The table of operators (section 4.2) ----
  // takes: the kinds of the inputs, `?` optional, `*` as many as there are, `-` perhaps with minus infinity; a list comes
  // as an array of numbers.
  // has: the attributes, each with its type and default.

  const KINDS = {
    any: ["integers", "numbers", "tokens", "variable"], variable: ["variable"], numbers: ["numbers"], list: ["integers"],
    integers: ["integers"], constant: ["integers", "numbers"], indices: ["integers", "tokens"], real: ["numbers", "variable"],
    fixed: ["integers", "numbers", "tokens"], summand: ["integers", "numbers", "variable"],
  };
  const AXES = { axes: ["ints", null] };
  const REDUCE = { ...AXES, keepdims: ["flag", 1], noop_with_empty_axes: ["flag", 0] };
  const WINDOW = {
    auto_pad: ["string", "NOTSET"], dilations: ["some", null], kernel_shape: ["ints", null], pads: ["some", null], strides: ["some", null],
  };
  const POOL = { ...WINDOW, ceil_mode: ["flag", 0] };

  function binary(operator, kind) {
    return { takes: [kind, kind], has: {}, make: (net, a, x, y) => ofTwo(net, operator, x, y) };
  }
  function greatestOrLeast(operator) {
    return {
      takes: ["any-*"],
      has: {},
      make: (net, a, ...values) => (values.length === 2 ? ofTwo(net, operator, ...values) : extremum(net, values, operator === "Min")),
    };
  }
  function oneInteger({ data }) {
    if (data.length !== 1) unusable("an integer that is not one element");
    return data[0];
  }
  const OPERATORS = {
    Constant: {
      takes: [],
      has: {
        value: ["tensor", null], value_int: ["int64", null], value_ints: ["int64s", null], value_float: ["real", null], value_floats: ["floats", null],
      },
      make(net, a) {
        const given = Object.keys(a).filter((name) => a[name] !== null);
        if (given.length !== 1) unusable("a Constant must have one value");
        if (a.value !== null) return a.value;
        if (a.value_int !== null) return integers([], [a.value_int]);
        if (a.value_ints !== null) return integers([a.value_ints.length], a.value_ints);
        if (a.value_float !== null) return floats([], Float64Array.of(a.value_float));
        return floats([a.value_floats.length], Float64Array.from(a.value_floats));
      },
    },
    ConstantOfShape: { takes: ["list"], has: { value: ["tensor", null] }, make(net, a, list) {
      const value = a.value ?? floats([1], Float64Array.of(0));
      if (value.data.length !== 1) unusable("a ConstantOfShape whose value is not one element");
      const shape = checkShape(list.map((n) => small(n, 0)));
      return pick(value, shape, new Int32Array(product(shape)));
    } },
    Identity: { takes: ["any-"], has: {}, make: (net, a, x) => x },
    Dropout: {
      takes: ["any-", "constant?", "integers?"],
      has: { ratio: ["real", null], seed: ["int64", null] },
      make(net, a, x, ratio, training) {
        if (training !== null && oneInteger(training) !== 0n) unusable("Dropout in training mode");
        return x;
      },
    },
    Cast: { takes: ["any-"], has: { to: ["int", 0] }, make(net, a, x) {
      if (x.kind === "integers" && (a.to === TYPE_FLOAT || a.to === TYPE_DOUBLE)) {
        if (net.realType === undefined) net.realType = a.to;
        if (x.data.some((n) => absolute(n) > 1n << 24n)) unusable("a Cast of an integer above 2^24");
        x = rationals(x.shape, x.data, 1n);
      }
      if (x.kind === "numbers" || x.kind === "variable") {
        if (a.to !== net.realType) unusable("a Cast of numbers to another type");
        return x;
      }
      const fits = {
        [TYPE_INT32]: isShort, [TYPE_INT64]: isLong, [TYPE_BOOL]: isBit,
      }[a.to];
      if (fits === undefined || (x.kind === "tokens" && a.to === TYPE_BOOL)) unusable("a Cast of integers to another type");
      if (x.kind === "integers" && !x.data.every(fits)) unusable("a Cast that does not fit");
      return x;
    } },
    Range: { takes: ["integers", "integers", "integers"], has: {}, make(net, a, ...ends) {
      const [start, limit, delta] = ends.map(oneInteger);
      if (delta === 0n) unusable("a Range with delta 0");
      const size = ceilDivide((limit - start) * (delta < 0n ? -1n : 1n), absolute(delta));
      const shape = checkShape([Math.max(0, Number(size))]);
      return integers(shape, range(shape[0]).map((i) => start + BigInt(i) * delta));
    } },
    Where: { takes: ["integers", "any-", "any-"], has: {}, make(net, a, condition, x, y) {
      if (!condition.data.every(isBit)) unusable("a condition that is neither 0 nor 1");
      const shape = [condition, x, y].map((value) => value.shape).reduce(broadcastShape);
      const { data } = broadcast(condition, shape);
      const [left, right] = [x, y].map((value) => broadcastPlaces(value.shape, shape));
      return pick(oneAfterAnother(net, [x, y]), shape, left.map((place, i) => (data[i] === 1n ? place : x.data.length + right[i])));
    } },
    Shape: { takes: ["any-"], has: { start: ["int", 0], end: ["int", null] }, make(net, a, { shape }) {
      const bound = (value) => cut(value, shape.length, 0, shape.length);
      const part = shape.slice(bound(a.start), a.end === null ? shape.length : bound(a.end));
      return integers([part.length], part.map(BigInt));
    } },
    Flatten: { takes: ["any-"], has: { axis: ["int", 1] }, make(net, a, x) {
      const rank = x.shape.length;
      const at = a.axis === rank ? rank : axisOf(a.axis, rank);
      return reshaped(x, [product(x.shape.slice(0, at)), product(x.shape.slice(at))]);
    } },
    Reshape: { takes: ["any-", "list"], has: { allowzero: ["flag", 0] }, make(net, a, x, list) {
      if (a.allowzero && list.includes(0)) unusable("a Reshape to a dimension of 0");
      const shape = list.map((n, axis) => {
        if (n === 0 && axis >= x.shape.length) unusable("a Reshape that copies what is not there");
        return n === 0 ? x.shape[axis] : small(n, -1);
      });
      const size = product(x.shape);
      const free = shape.indexOf(-1);
      if (free !== shape.lastIndexOf(-1)) unusable("a Reshape with several dimensions to infer");
      if (free >= 0) {
        shape[free] = 1;
        const rest = product(shape);
        if (!(rest > 0) || size % rest !== 0) unusable("a Reshape that does not fit");
        shape[free] = size / rest;
      }
      if (product(shape) !== size) unusable("a Reshape that does not fit");
      return reshaped(x, shape);
    } },
    Squeeze: { takes: ["any-", "list?"], has: AXES, make(net, a, x, list) {
      const given = givenAxes(a, list);
      if (given !== null && given.length === 0) unusable("a Squeeze of an empty list of axes");
      const axes = given === null ? range(x.shape.length).filter((axis) => x.shape[axis] === 1) : axesOf(given, x.shape.length);
      if (axes.some((axis) => x.shape[axis] !== 1)) unusable("a Squeeze of an axis that is not 1");
      return reshaped(x, x.shape.filter((_, axis) => !axes.includes(axis)));
    } },
    Unsqueeze: { takes: ["any-", "list?"], has: AXES, make(net, a, x, list) {
      const given = givenAxes(a, list);
      if (given === null) unusable("an Unsqueeze without axes");
      const rank = x.shape.length + given.length;
      const axes = axesOf(given, rank);
      const rest = [...x.shape];
      return reshaped(x, range(rank).map((axis) => (axes.includes(axis) ? 1 : rest.shift())));
    } },
    Transpose: { takes: ["any-"], has: { perm: ["ints", null] }, make(net, a, x) {
      const rank = x.shape.length;
      const perm = a.perm ?? range(rank).reverse();
      if (perm.length !== rank || range(rank).some((axis) => !perm.includes(axis))) unusable("a Transpose without a permutation");
      checkShape(x.shape);
      return transposed(x, perm);
    } },
    Expand: {
      takes: ["any-", "list"],
      has: {},
      make: (net, a, x, list) => broadcast(x, broadcastShape(x.shape, list.map((n) => small(n, 0)))),
    },
    Tile: { takes: ["any-", "list"], has: {}, make(net, a, x, list) {
      if (list.length !== x.shape.length) unusable("a Tile whose list is not as long as the rank");
      checkShape(x.shape.map((n, axis) => n * small(list[axis], 0)));
      return pickAxes(x, x.shape.map((n, axis) => range(n * list[axis]).map((i) => i % n)));
    } },
    Split: { takes: ["any-", "list?"], has: { axis: ["int", 0], num_outputs: ["int", null] }, make(net, a, x, list) {
      const axis = axisOf(a.axis, x.shape.length);
      const n = x.shape[axis];
      const count = net.outputs.length;
      if (list !== null && a.num_outputs !== null) unusable("a Split with a list and num_outputs");
      if (a.num_outputs !== null && a.num_outputs !== count) unusable("a Split with another number of outputs");
      if (list === null && a.num_outputs === null && n % count !== 0) unusable("a Split into parts that are not equal");
      const part = Math.ceil(n / count);
      const parts = list ?? range(count).map((i) => Math.min(part, n - i * part));
      if (parts.length !== count || parts.some((size) => size < 1)) unusable("a Split with empty parts");
      if (parts.reduce((all, size) => all + size, 0) !== n) unusable("a Split that does not fit");
      let start = 0;
      return parts.map((size) => {
        start += size;
        return pickAxes(x, x.shape.map((m, other) => (other === axis ? range(size).map((i) => start - size + i) : range(m))));
      });
    } },
    Gather: { takes: ["any-", "indices"], has: { axis: ["int", 0] }, make(net, a, x, rows) {
      const axis = axisOf(a.axis, x.shape.length);
      const shape = checkShape([...x.shape.slice(0, axis), ...rows.shape, ...x.shape.slice(axis + 1)]);
      if (rows.kind === "tokens") {
        if (x.kind !== "numbers" || x.shape.length !== 2 || axis !== 0) unusable("a Gather by tokens that is no embedding");
        needFinite(x);
        return addLayer(net, "embed", shape, { ids: [], table: x, width: x.shape[1], den: x.den, positions: rows.data });
      }
      const length = x.shape[axis];
      const inner = product(x.shape.slice(axis + 1));
      const outer = range(product(x.shape.slice(0, axis))).map((i) => i * length * inner);
      return pick(x, shape, grid([outer, placesAlong(rows, length).map((i) => i * inner), range(inner)]));
    } },
    GatherElements: { takes: ["any-", "integers"], has: { axis: ["int", 0] }, make(net, a, x, rows) {
      const axis = axisOf(a.axis, x.shape.length);
      const shape = checkShape(rows.shape);
      if (shape.length !== x.shape.length || shape.some((n, other) => other !== axis && n > x.shape[other])) unusable("a GatherElements that does not fit");
      if (product(shape) === 0) unusable("a GatherElements of nothing");
      const strides = stridesOf(x.shape);
      const picked = placesAlong(rows, x.shape[axis]);
      const others = grid(shape.map((n, other) => range(n).map((i) => (other === axis ? 0 : i * strides[other]))));
      return pick(x, shape, others.map((start, i) => start + picked[i] * strides[axis]));
    } },
    GatherND: { takes: ["any-", "integers"], has: { batch_dims: ["int", 0] }, make(net, a, x, rows) {
      const [batch, depth] = [a.batch_dims, rows.shape[rows.shape.length - 1]];
      const doesFit = batch >= 0 && batch < rows.shape.length && depth >= 1 && depth <= x.shape.length - batch;
      if (!doesFit || !sameShape(x.shape.slice(0, batch), rows.shape.slice(0, batch))) unusable("a GatherND that does not fit");
      const shape = checkShape([...rows.shape.slice(0, -1), ...x.shape.slice(batch + depth)]);
      if (product(shape) === 0) unusable("a GatherND of nothing");
      const strides = stridesOf(x.shape);
      // Of each list: where its batch starts, and one offset for each of its integers.
      const offsets = range(depth).map((k) => {
        const its = { data: range(rows.data.length / depth).map((list) => rows.data[list * depth + k]) };
        return placesAlong(its, x.shape[batch + k]).map((i) => i * strides[batch + k]);
      });
      const lists = product(rows.shape.slice(batch, -1));
      const block = product(x.shape.slice(batch));
      const starts = range(offsets[0].length).map((list) => offsets.reduce((sum, its) => sum + its[list], Math.floor(list / lists) * block));
      return pick(x, shape, grid([starts, range(product(x.shape.slice(batch + depth)))]));
    } },
    Slice: { takes: ["any-", "list", "list", "list?", "list?"], has: {}, make(net, a, x, starts, ends, list, steps) {
      const axes = axesOf(list ?? range(starts.length), x.shape.length);
      const by = steps ?? starts.map(() => 1);
      if ([ends, axes, by].some((other) => other.length !== starts.length)) unusable("a Slice with lists of different lengths");
      const places = x.shape.map(range);
      axes.forEach((axis, number) => {
        const length = x.shape[axis];
        const step = by[number];
        if (step === 0) unusable("a Slice with step 0");
        const [lowest, highest] = step > 0 ? [0, length] : [-1, length - 1];
        const end = cut(ends[number], length, lowest, highest);
        places[axis] = [];
        for (let at = cut(starts[number], length, lowest, highest); step > 0 ? at < end : at > end; at += step) places[axis].push(at);
        if (places[axis].length === 0) unusable("an empty Slice");
      });
      return pickAxes(x, places);
    } },
    Concat: { takes: ["any-*"], has: { axis: ["int", null] }, make(net, a, ...values) {
      if (a.axis === null) unusable("a Concat without axis");
      const axis = axisOf(a.axis, values[0].shape.length);
      const rest = (shape) => shape.map((n, other) => (other === axis ? 1 : n));
      if (values.some((value) => !sameShape(rest(value.shape), rest(values[0].shape)))) unusable("a Concat that does not fit");
      const shape = [...values[0].shape];
      shape[axis] = values.reduce((all, value) => all + value.shape[axis], 0);
      const places = new Int32Array(product(checkShape(shape)));
      let at = 0;
      // Row by row of what comes before the axis: the block of each value.
      for (let row = 0; row < product(shape.slice(0, axis)); row++) {
        let start = 0;
        for (const value of values) {
          const block = product(value.shape.slice(axis));
          for (let i = 0; i < block; i++) places[at++] = start + row * block + i;
          start += product(value.shape);
        }
      }
      return pick(oneAfterAnother(net, values), shape, places);
    } },
    Pad: {
      takes: ["real-", "list", "numbers-?", "list?"],
      has: { mode: ["string", "constant"] },
      make(net, a, x, pads, filler, list) {
        if (a.mode !== "constant") unusable("a Pad of another mode");
        const rank = x.shape.length;
        const axes = axesOf(list ?? range(rank), rank);
        if (pads.length !== 2 * axes.length) unusable("a Pad with pads of the wrong length");
        const value = filler ?? floats([1], Float64Array.of(0));
        if (value.data.length !== 1) unusable("a Pad with several values");
        const before = Array(rank).fill(0);
        const shape = [...x.shape];
        axes.forEach((axis, number) => {
          before[axis] = small(pads[number], 0);
          shape[axis] += before[axis] + small(pads[number + axes.length], 0);
        });
        checkShape(shape);
        // Places outside get an offset so low that no sum with it is a place; the filler comes last.
        const strides = stridesOf(x.shape);
        const places = grid(shape.map((n, axis) => range(n).map((i) => {
          const from = i - before[axis];
          return from < 0 || from >= x.shape[axis] ? -LIMIT.ids : from * strides[axis];
        })));
        return pick(oneAfterAnother(net, [x, value]), shape, places.map((i) => (i < 0 ? product(x.shape) : i)));
      },
    },

    ...Object.fromEntries(["Add", "Sub", "Mul", "Div"].map((operator) => [operator, binary(operator, "any-")])),
    ...Object.fromEntries(Object.keys(COMPARISONS).map((operator) => [operator, binary(operator, "fixed-")])),
    Not: { takes: ["integers"], has: {}, make(net, a, x) {
      if (!x.data.every(isBit)) unusable("a Not of what is neither 0 nor 1");
      return integers(x.shape, x.data.map((n) => 1n - n));
    } },
    Sum: { takes: ["real-*"], has: {}, make: (net, a, ...values) => sum(net, values, values.map(() => 1n), false) },
    Neg: { takes: ["variable"], has: {}, make: (net, a, x) => negated(net, x) },
    MatMul: { takes: ["real", "real"], has: {}, make: (net, a, x, y) => matrixProduct(net, x, y, { num: 1n, den: 1n }, {}) },
    Gemm: {
      takes: ["variable", "numbers", "numbers?"],
      has: { alpha: ["float", 1], beta: ["float", 1], transA: ["flag", 0], transB: ["flag", 0] },
      make(net, a, x, w, c) {
        if (x.shape.length !== 2 || w.shape.length !== 2) unusable("a Gemm of another rank than 2");
        // When it is multiplied by these differs between runtimes.
        if ([a.alpha, ...(c === null ? [] : [a.beta])].some(({ num, den }) => num !== den)) net.computed = true;
        const [left, right] = [[x, a.transA], [w, a.transB]].map(([value, turned]) => (turned ? transposed(value, [1, 0]) : value));
        const bias = {};
        if (c !== null) {
          const shape = [left.shape[0], right.shape[1]];
          if (!sameShape(broadcastShape(c.shape, shape), shape)) unusable("a Gemm whose C does not fit");
          const num = numerators(c).map((value) => value * a.beta.num);
          bias.bias = Array.from(broadcastPlaces(c.shape, shape), (i) => num[i]);
          bias.biasDen = c.den * a.beta.den;
        }
        return matrixProduct(net, left, right, a.alpha, bias);
      },
    },
    Conv: { takes: ["variable", "numbers", "numbers?"], has: { ...WINDOW, group: ["int", 1] }, make(net, a, x, w, b) {
      checkSpatial(x);
      if (x.shape[0] !== 1) unusable("a Conv over several sentences");
      if (w.shape.length !== x.shape.length) unusable("a Conv whose W has another rank");
      const [batch, channels, ...spatial] = x.shape;
      const [outer, inner, ...kernel] = w.shape;
      const groups = small(a.group, 1);
      if (inner * groups !== channels || outer % groups !== 0) unusable("a Conv whose groups do not fit");
      if (b !== null && !sameShape(b.shape, [outer])) unusable("a Conv whose B does not fit");
      if (outer < 1 || kernel.some((n) => n < 1)) unusable("a Conv without kernel");
      if (a.kernel_shape !== null && !sameShape(a.kernel_shape, kernel)) unusable("a kernel_shape that is not the kernel's");
      const { out, windows } = slide(spatial, kernel, a, batch * channels);
      const width = inner * product(kernel);
      const shape = checkShape([batch, outer, ...out]);
      if (product(shape) * width > LIMIT.convolution) unusable("a Conv that applies too many weights");
      // Rows: batch, group, output place. Inside: channel of the group, kernel place.
      const ids = new Int32Array(batch * groups * windows.length * width);
      let at = 0;
      for (let copy = 0; copy < batch * groups; copy++) {
        for (const window of windows) {
          for (let channel = 0; channel < inner; channel++) {
            const start = (copy * inner + channel) * product(spatial);
            for (const i of window) ids[at++] = i < 0 ? -1 : x.data[start + i];
          }
        }
      }
      const row = new Int32Array(product(shape));
      const column = new Int32Array(product(shape));
      for (let i = 0; i < row.length; i++) {
        const channel = Math.floor(i / windows.length) % outer;
        const copy = Math.floor(i / (windows.length * outer)) * groups + Math.floor(channel / (outer / groups));
        row[i] = copy * windows.length + (i % windows.length);
        column[i] = channel;
      }
      const bias = b === null ? {} : { bias: Array.from(column, (channel) => numerator(b, channel)), biasDen: b.den };
      return affine(net, shape, ids, width, { row, column, weights: numerators(w), weightDen: w.den, ...bias });
    } },
    BatchNormalization: {
      takes: ["variable", "numbers", "numbers", "numbers", "numbers"],
      has: { epsilon: ["float", Math.fround(0.00001)], momentum: ["real", null], training_mode: ["flag", 0] },
      make(net, a, x, scale, shift, average, variance) {
        if (a.training_mode) unusable("BatchNormalization in training mode");
        if (x.shape.length < 2) unusable("BatchNormalization of too low a rank");
        const channels = x.shape[1];
        if ([scale, shift, average, variance].some((c) => !sameShape(c.shape, [channels]))) unusable("BatchNormalization that does not fit");
        net.computed = true;
        // scale r x + (B - mean scale r), with r = floor(2^40 / sqrt(var + epsilon)) / 2^40.
        const weightDen = scale.den << 40n;
        const biasDen = leastMultiple(shift.den, average.den * weightDen);
        const { num, den } = a.epsilon;
        const weights = range(channels).map((c) => {
          const total = numerator(variance, c) * den + num * variance.den;
          if (total <= 0n) unusable("BatchNormalization with a variance that is not positive");
          const root = squareRoot(((variance.den * den) << 80n) / total);
          if (root >= 1n << 53n) unusable("BatchNormalization with too small a variance");
          return numerator(scale, c) * root;
        });
        const biases = weights.map((weight, c) => {
          return numerator(shift, c) * (biasDen / shift.den) - numerator(average, c) * weight * (biasDen / (average.den * weightDen));
        });
        const inner = product(x.shape.slice(2));
        const column = Int32Array.from(x.data, (_, i) => Math.floor(i / inner) % channels);
        return affine(net, x.shape, x.data, 1, { column, weights, weightDen, bias: Array.from(column, (c) => biases[c]), biasDen });
      },
    },
    ReduceSum: { takes: ["summand", "list?"], has: REDUCE, make(net, a, x, list) {
      if (x.kind === "variable") return reduction(a, x, list, (windows) => mean(net, windows, () => 1));
      return reduction(a, x, list, (windows) => constantSums(net, x, windows));
    } },
    ReduceMean: {
      takes: ["variable", "list?"], has: REDUCE, make: (net, a, x, list) => reduction(a, x, list, (windows) => mean(net, windows, (w) => w.length)),
    },
    ReduceMax: { takes: ["variable-", "list?"], has: REDUCE, make: (net, a, x, list) => reduction(a, x, list, (windows) => maximum(net, windows)) },
    GlobalAveragePool: { takes: ["variable"], has: {}, make: (net, a, x) => mean(net, globalPool(x), (w) => w.length) },
    GlobalMaxPool: { takes: ["variable-"], has: {}, make: (net, a, x) => needFinite(maximum(net, globalPool(x))) },
    AveragePool: { takes: ["variable"], has: { ...POOL, count_include_pad: ["flag", 0] }, make(net, a, x) {
      if (a.dilations !== null && a.dilations.some((n) => n !== 1)) unusable("AveragePool with dilations");
      if (a.count_include_pad && a.ceil_mode) unusable("AveragePool with count_include_pad and ceil_mode");
      return mean(net, pool(a, x), (w) => (a.count_include_pad ? w.length : w.reduce((n, id) => n + (id < 0 ? 0 : 1), 0)));
    } },
    MaxPool: { takes: ["variable-"], has: { ...POOL, storage_order: ["int", 0] }, make(net, a, x) {
      if (a.storage_order !== 0) unusable("storage_order");
      if (a.auto_pad.startsWith("SAME") && a.dilations !== null && a.dilations.some((n) => n !== 1)) unusable("MaxPool with SAME and dilations");
      return needFinite(maximum(net, pool(a, x)));
    } },
    Max: greatestOrLeast("Max"),
    Min: greatestOrLeast("Min"),
    Clip: { takes: ["any-", "constant-?", "constant-?"], has: {}, make(net, a, x, low, high) {
      if ([low, high].some((limit) => limit !== null && limit.shape.length !== 0)) unusable("a Clip with a limit that is not of rank 0");
      if (x.kind === "variable") needFinite(x);
      const raised = low === null ? x : ofTwo(net, "Max", x, low);
      return high === null ? raised : ofTwo(net, "Min", raised, high);
    } },
    Relu: { takes: ["variable-"], has: {}, make: (net, a, x) => relu(net, x) },
    PRelu: { takes: ["variable", "numbers"], has: {}, make(net, a, x, s) {
      if (!sameShape(broadcastShape(x.shape, s.shape), x.shape)) unusable("a PRelu whose slopes do not fit");
      return bent(net, x, s);
    } },
    Abs: { takes: ["variable"], has: {}, make: (net, a, x) => bent(net, x, rationals([], [-1n], 1n)) },
    LeakyRelu: { takes: ["variable"], has: { alpha: ["float", Math.fround(0.01)] }, make(net, a, x) {
      if (a.alpha.num < 0n || a.alpha.num > a.alpha.den) unusable("LeakyRelu with alpha outside 0 to 1");
      return rectifier(net, x, a.alpha);
    } },
    Softmax: headOr((net, a, x) => softmax(net, x, a.axis), { axis: ["int", -1] }, "variable-"),
    LogSoftmax: headOr(() => unusable("a LogSoftmax that is not last"), { axis: ["int", -1] }),
    Sigmoid: headOr((net, a, x) => curve(net, CURVES.Sigmoid, x), {}),
    Tanh: headOr((net, a, x) => curve(net, CURVES.Tanh, x), {}),
    Exp: { takes: ["variable-"], has: {}, make: (net, a, x) => zeroBeside(net, curve(net, CURVES.Exp, x, addLayerBeside)) },
    Erf: smooth(CURVES.Erf),
    Reciprocal: smooth(CURVES.Reciprocal),
    Sqrt: { takes: ["variable"], has: {}, make(net, a, x) {
      net.computed = true;
      return curve(net, CURVES.Sqrt, x);
    } },
    Pow: { takes: ["variable", "numbers"], has: {}, make: (net, a, x, exponent) => power(net, x, exponent) },
    HardSigmoid: { takes: ["variable"], has: { alpha: ["float", Math.fround(0.2)], beta: ["float", 0.5] }, make(net, a, x) {
      const one = rationals([], [1n], 1n);
      return limited(net, "Min", rectifier(net, combined(net, [x], [a.alpha], a.beta), ZERO), one);
    } },
    Gelu: { takes: ["variable"], has: { approximate: ["string", "none"] }, make: (net, a, x) => gelu(net, x, a.approximate) },
    LayerNormalization: {
      takes: ["variable", "numbers", "numbers?"],
      has: { axis: ["int", -1], epsilon: ["float", Math.fround(0.00001)], stash_type: ["int", 1] },
      make: layerNormalization,
    },
    ReduceL2: norm(true),
    ReduceSumSquare: norm(false),
    ...Object.fromEntries(Object.keys(RECURRENT).map((operator) => [operator, recurrent(operator)])),
  };

  // The inputs a node is given, as its operator takes them.
  function inputsOf(takes, values) {
    const many = takes.length > 0 && takes[takes.length - 1].endsWith("*");
    if (values.length > takes.length && !many) unusable("an input that the operator does not take");
    return range(Math.max(takes.length, values.length)).map((place) => {
      const wanted = takes[Math.min(place, takes.length - 1)];
      const kind = wanted.replace(/-?[?*]?$/, "");
      const value = values[place];
      if (value === undefined && wanted.endsWith("?")) return null;
      if (value === undefined) unusable("an input is missing");
      if (!KINDS[kind].includes(value.kind)) unusable("an input of a kind that the operator does not take");
      if (!wanted.includes("-")) needFinite(value);
      if (kind === "list" && value.shape.length !== 1) unusable("a list that is not of rank 1");
      return kind === "list" ? value.data.map(Number) : value;
    });
  }

  // The attributes by name; `some` without any are null. Integers beyond 2^53 lose digits here, but nothing that large
  // is ever in range.
  function attributesOf(has, given) {
    for (const name of given.keys()) if (!Object.hasOwn(has, name)) unusable("an attribute that the operator does not take");
    const read = {
      int: ["int", Number], int64: ["int", (x) => x], int64s: ["ints", (x) => x], ints: ["ints", (list) => list.map(Number)],
      some: ["ints", (list) => (list.length === 0 ? null : list.map(Number))],
      flag: ["int", (x) => (isBit(x) ? x === 1n : unusable("an attribute that is neither 0 nor 1"))],
      float: ["float", exact], real: ["float", (x) => x], floats: ["floats", (x) => x], string: ["string", (x) => x], strings: ["strings", (x) => x], tensor: ["tensor", (x) => x],
    };
    return Object.fromEntries(Object.entries(has).map(([name, [type, otherwise]]) => {
      const [stored, convert] = read[type];
      const attribute = given.get(name);
      if (attribute === undefined) return [name, type === "float" ? exact(otherwise) : type === "flag" ? otherwise === 1 : otherwise];
      if (attribute.type !== stored) unusable(`the attribute ${name} is of another type`);
      return [name, convert(attribute.value)];
    }));
  }
  function exact(x) {
    const number = floats([], Float64Array.of(x));
    return { num: numerator(number, 0), den: number.den };
  }

  // inputs, standing: see readStatement.
  function buildNetwork(model, inputs, standing) {
    const net = {
      model, standing, looks: [], realType: model.realType, layers: [], ids: 0, computed: false, head: false, outputs: [], bounded: new WeakSet(),
    };
    const values = new Map(model.initializers);
    inputs.forEach(({ role, first, original }, place) => {
      const shape = checkShape([1, original.length]);
      const tokens = { kind: "tokens", shape, data: Int32Array.from(original, (_, i) => first + i) };
      values.set(model.inputs[place].name, role === "words" ? tokens : integers(shape, original.map(BigInt)));
    });
    const logits = runNodes(net, values);
    if (logits.shape.length !== 2 || logits.shape[0] !== 1) unusable("the output's shape is not (1, classes)");
    if (logits.shape[1] < 2 || logits.shape[1] > LIMIT.classes) unusable("too few or too many classes");
    return canonicalNetwork(net, logits.data);
  }

  // The first opset in which these are what section 4.2 says.
  const SINCE = { Clip: 11n, Pad: 11n, Slice: 10n, Dropout: 12n, BatchNormalization: 9n, MaxPool: 8n };
  // The network of a model that takes numbers (section 14.2).
  function buildNumeric(model) {
    for (const { operator, outputs } of model.nodes) {
      const several = operator === "BatchNormalization" && outputs.length > 1;
      if (model.version < (several ? 14n : (Object.hasOwn(SINCE, operator) ? SINCE[operator] : 0n))) unusable(`the operator ${operator} of an opset before the format's`);
    }
    const net = {
      model, standing: [], looks: [], realType: model.realType, layers: [], ids: 0, computed: true, head: false, outputs: [], bounded: new WeakSet(),
    };
    const values = new Map(model.initializers);
    const [{ name, shape }] = model.inputs;
    values.set(name, addLayer(net, "numbers", shape, { ids: [] }));
    const { data } = runNodes(net, values);
    if (net.head) unusable("a head in a network of numbers");
    if (data.length > LIMIT.outputs) unusable("too many outputs");
    const network = canonicalNetwork(net, data);
    return network;
  }

  // What the output is.
  function runNodes(net, values) {
    const { model } = net;
    for (const node of model.nodes) {
      lookAtClock();
      if (!Object.hasOwn(OPERATORS, node.operator)) unusable(`the operator ${node.operator.replace(/[^A-Za-z0-9_]/g, "?")}`);
      const { takes, has, make } = OPERATORS[node.operator];
      net.outputs = node.outputs;
      const given = node.inputs.map((name) => {
        if (name !== "" && !values.has(name)) unusable("a node reads what no earlier node has made");
        return values.get(name);
      });
      while (given.length > 0 && given[given.length - 1] === undefined) given.pop();
      if (node.outputs.length === 0) unusable("a node without output");
      const made = [make(net, attributesOf(has, node.attributes), ...inputsOf(takes, given))].flat();
      node.outputs.forEach((name, place) => {
        if (place >= made.length) return;
        if (name === "" && Object.hasOwn(RECURRENT, node.operator)) return;
        if (name === "") unusable("an output without a name");
        const { kind, shape } = made[place];
        if ((kind === "tokens" || kind === "variable") && product(shape) === 0) unusable("a variable without elements");
        values.set(name, made[place]);
      });
    }
    const logits = values.get(model.output.name);
    if (logits === undefined || logits.kind !== "variable") unusable("the output does not depend on the input");
    return needFinite(logits);
  }

  // ---------------------------------------------------------------------------------------------------------------
  // The canonical network (section 4.3). What follows from here on speaks of nothing else. Its layers are those of the
  // page behind one that holds the constants, so layer n of the page is layers[n + 1]. Element i of a layer is element
  // first + i of the network, and by kind
  //
  //   constant   num[i] / den
  //   numbers    input i, a real number
  //   embed      entry i mod width of the row of `table` that the integer at positions[floor(i / width)] names
  //   affine     the sum of ids[start + k] times weights[at + k] / weightDen over a row, see rowOf, plus bias[i] / biasDen
  //   rectifier  max(x, alpha x) of ids[i]
  //   maximum    the greatest of ids[starts[i]], ..., ids[starts[i + 1] - 1]
  //   product    the product of ids[2 i] and ids[2 i + 1]
  //   curve      the function of this number of ids[i]
  // ---------------------------------------------------------------------------------------------------------------

  // Of an affine layer: where the list of element i starts and ends in ids, and where its weights start.
  function rowOf({ listOf, starts, weightsOf, weightStarts }, i) {
    return { start: starts[listOf[i]], end: starts[listOf[i] + 1], at: weightStarts[weightsOf[i]] };
  }
  const isSmooth = (layer) => layer.kind === "product" || layer.kind === "curve";
  const isNonlinear = (layer) => layer.kind === "rectifier" || layer.kind === "maximum" || isSmooth(layer);

  function canonicalNetwork(net, logits) {
    // Only what the logits depend on plays a part.
    const maker = new Int32Array(net.ids);
    net.layers.forEach((layer, number) => maker.fill(number, layer.first, layer.first + layer.size));
    const needed = new Uint8Array(net.layers.length);
    logits.forEach((id) => (needed[maker[id]] = 1));
    for (let number = net.layers.length - 1; number >= 0; number--) {
      spend(net.layers[number].ids.length);
      if (needed[number] === 1) for (const id of net.layers[number].ids) if (id >= 0) needed[maker[id]] = 1;
    }
    const kept = net.layers.filter(({ kind }, number) => (needed[number] === 1 && kind !== "constant") || kind === "numbers");
    if (kept.reduce((all, layer) => all + layer.size, 0) > LIMIT.allElements) unusable("layers of too many elements");
    if (kept.some(isSmooth)) {
      if (kept.length > LIMIT.smoothLayers) unusable("too many layers");
    } else if (kept.filter(isNonlinear).length > LIMIT.layers) {
      unusable("too many nonlinear layers");
    }

    // newId gives the number that an element gets, and of padding -1.
    const numberOf = new Int32Array(net.ids);
    const constants = numberConstants(net, [...kept.map((layer) => layer.ids), logits], maker, numberOf);
    let size = constants.num.length;
    for (const layer of kept) for (let i = 0; i < layer.size; i++) numberOf[layer.first + i] = size++;
    const newId = (id) => (id < 0 ? -1 : numberOf[id]);
    const layers = [{ kind: "constant", first: 0, size: constants.num.length, ids: [], ...constants }];
    const known = new Map();
    for (const layer of kept) layers.push(CANONICAL[layer.kind](layer, Int32Array.from(layer.ids, newId), numberOf[layer.first], known));
    const layerOf = new Int32Array(size);
    layers.forEach((layer, number) => layerOf.fill(number, layer.first, layer.first + layer.size));
    const network = {
      layers, layerOf, size, logits: Array.from(logits, newId),
      positions: net.standing.length, isSmooth: kept.some(isSmooth),
      canBeFloat: net.realType === TYPE_FLOAT && !net.head && !net.computed,
      // Of what stands in a text the network depends on these only.
      looks: net.looks,
      lookups: net.layers.filter(({ kind }) => kind === "embed").map(({ table, positions }) => ({ rows: table.shape[0], positions })),
    };
    network.bytes = networkBytes(network);
    network.hash = hex(sha256(network.bytes, lookAtClock));
    return withDenominators(network);
  }

  // Numbers the constants among these ids: each number once, ascending.
  function numberConstants(net, idLists, maker, numberOf) {
    const found = new Uint8Array(net.ids);
    for (const ids of idLists) for (const id of ids) if (id >= 0 && net.layers[maker[id]].kind === "constant") found[id] = 1;
    const ids = range(net.ids).filter((id) => found[id] === 1);
    const den = [...new Set(ids.map((id) => maker[id]))].map((number) => net.layers[number].den).reduce(leastMultiple, 1n);
    const values = mapped(ids, (id) => {
      const block = net.layers[maker[id]];
      return [bounded(block.num[id - block.first] * (den / block.den)), id];
    });
    values.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    const num = [];
    for (const [value, id] of values) {
      if (num.length === 0 || num[num.length - 1] !== value) num.push(value);
      numberOf[id] = num.length - 1;
    }
    return { num, den };
  }

  // Distinct sequences, numbered in the order in which they are first asked for, and laid one after another.
  class Sequences {
    constructor() {
      this.numbers = new Map();
      this.items = [];
      this.starts = [0];
    }
    number(sequence) {
      spend(sequence.length);
      const key = sequence.map((x) => x.toString(36)).join();
      let number = this.numbers.get(key);
      if (number === undefined) {
        number = this.numbers.size;
        this.numbers.set(key, number);
        for (const x of sequence) this.items.push(x);
        this.starts.push(this.items.length);
      }
      return number;
    }
  }

  // By kind, from a layer of an operator, with the new ids that it reads.
  const CANONICAL = {
    numbers: ({ kind, size }, ids, first) => ({ kind, first, size, ids, den: 1n }),
    embed: ({ kind, size, table, width, positions, den }, ids, first) => ({ kind, first, size, ids, table, width, positions, den }),
    rectifier: ({ kind, size, alpha }, ids, first) => ({ kind, first, size, ids, alpha }),
    product: ({ kind, size }, ids, first) => ({ kind, first, size, ids }),
    curve: ({ kind, size, curve: number }, ids, first) => ({ kind, first, size, ids, curve: number }),
    maximum({ kind, size, width }, ids, first) {
      const starts = [0];
      const windows = [];
      for (let i = 0; i < size; i++) {
        spend(width);
        const window = new Set(ids.subarray(i * width, (i + 1) * width));
        window.delete(-1);
        for (const id of [...window].sort((a, b) => a - b)) windows.push(id);
        starts.push(windows.length);
      }
      return { kind, first, size, ids: Int32Array.from(windows), starts };
    },
    affine({ kind, size, width, row, column, weights, weightDen, bias, biasDen }, ids, first, known) {
      // The steps of a recurrent layer have the same weights, and nothing left out: they are numbered once.
      const shared = known.get(weights);
      if (shared !== undefined && shared.column === column && !ids.includes(-1)) {
        const { listOf: noted, factors: written, weightsOf: same } = shared;
        return {
          kind, first, size, ids, listOf: noted, starts: [0, width], weights: written.items, weightsOf: same,
          weightStarts: written.starts, weightDen, bias: bias ?? new Array(size).fill(0n), biasDen,
        };
      }
      const [lists, factors, holes] = [new Sequences(), new Sequences(), new Sequences()];
      const [listOf, weightsOf] = [new Int32Array(size), new Int32Array(size)];
      // A row has one list, and with its padding left out the weights of a column depend on where that is. `holes`
      // numbers the sets of places without padding.
      const rows = new Map();
      const columns = new Map();
      const columnCount = weights.length / width;
      for (let i = 0; i < size; i++) {
        const r = row === null ? i : row[i];
        const c = column === null ? 0 : column[i];
        if (!rows.has(r)) {
          const inRow = Array.from(ids.subarray(r * width, (r + 1) * width));
          const isWhole = !inRow.includes(-1);
          const places = isWhole ? null : range(width).filter((k) => inRow[k] >= 0);
          rows.set(r, {
            list: lists.number(isWhole ? inRow : places.map((k) => inRow[k])), places,
            key: isWhole ? 0 : (1 + holes.number(places)) * columnCount,
          });
        }
        const { list, places, key } = rows.get(r);
        if (!columns.has(key + c)) {
          const inColumn = weights.slice(c * width, (c + 1) * width);
          columns.set(key + c, factors.number(places === null ? inColumn : places.map((k) => inColumn[k])));
        }
        listOf[i] = list;
        weightsOf[i] = columns.get(key + c);
      }
      // One list for all rows, and no padding.
      if (ids.length === width && holes.numbers.size === 0 && row !== null) known.set(weights, { column, listOf, factors, weightsOf });
      return {
        kind, first, size, ids: Int32Array.from(lists.items), listOf, starts: lists.starts, weights: factors.items, weightsOf,
        weightStarts: factors.starts, weightDen, bias: bias ?? new Array(size).fill(0n), biasDen,
      };
    },
  };

  // ---- Its bytes

  // Numbers of four bytes each, the lowest byte first.
  function u32s(list) {
    const bytes = new Uint8Array(4 * list.length);
    const view = new DataView(bytes.buffer);
    spend(list.length);
    for (let i = 0; i < list.length; i++) view.setUint32(4 * i, list[i], true);
    return bytes;
  }
  const u32 = (...numbers) => u32s(numbers);
  const counted = (list) => [u32(list.length), u32s(list)];
  const lengths = (starts) => starts.slice(1).map((end, i) => end - starts[i]);
  // Sequences, each behind its length.
  function sequences(starts, items) {
    const all = new Uint32Array(starts.length - 1 + items.length);
    let at = 0;
    for (let i = 0; i < starts.length - 1; i++) {
      all[at++] = starts[i + 1] - starts[i];
      for (let k = starts[i]; k < starts[i + 1]; k++) all[at++] = items[k];
    }
    return u32s(all);
  }

  // n / d as a float64 number, or null if it is none. If d is a power of two, not too large, n is all there is to look at.
  function asDouble(n, d) {
    if (d === 1n || isPowerOfTwo(d)) {
      const x = Number(n);
      if (d <= 1n << 1000n && Number.isFinite(x) && BigInt(x) === n) return x / Number(d);
    }
    const common = greatestDivisor(n, d);
    const [p, q] = [n / common, d / common];
    const x = Number(p);
    if (!isPowerOfTwo(q) || q > 1n << 1074n || !Number.isFinite(x) || BigInt(x) !== p) return null;
    // Exact: the last bit of p is no lower than 2^-1074.
    const half = 1n << BigInt(Math.floor((q.toString(2).length - 1) / 2));
    return x / Number(half) / Number(q / half);
  }
  const isPowerOfTwo = (n) => (n & (n - 1n)) === 0n;

  // Numbers in the network: the form, and the hash of what is written apart.
  function floatNumbers(data) {
    const form = data.every((x) => Math.fround(x) === x) ? 1 : 2;
    const size = form === 1 ? 4 : 8;
    const bytes = new Uint8Array(size * data.length);
    const view = new DataView(bytes.buffer);
    spend(data.length);
    // + 0 takes the sign off a zero.
    if (form === 1) data.forEach((x, i) => view.setFloat32(4 * i, x + 0, true));
    else data.forEach((x, i) => view.setFloat64(8 * i, x + 0, true));
    return joined(u32(form), sha256(bytes, lookAtClock));
  }
  function writtenNumbers(num, den) {
    const data = new Float64Array(num.length);
    for (let i = 0; i < num.length; i++) {
      spend(1);
      const x = asDouble(num[i], den);
      if (x === null) return joined(u32(3), sha256(ascii(fractions(num, den)), lookAtClock));
      data[i] = x;
    }
    return floatNumbers(data);
  }
  function fractions(num, den) {
    return mapped(num, (n) => {
      const common = greatestDivisor(n, den);
      return `${(n / common).toString(16)}/${(den / common).toString(16)}`;
    }).join();
  }
  // Tables are large, and the same for many networks of a model.
  const writtenTables = new WeakMap();
  function writtenTable(table) {
    if (!writtenTables.has(table.data)) {
      writtenTables.set(table.data, table.scale !== 0 ? floatNumbers(table.data) : writtenNumbers(table.data, table.den));
    }
    return writtenTables.get(table.data);
  }

  const writtenLists = new WeakMap();
  function writtenWeights(weights, den) {
    if (!writtenLists.has(weights)) writtenLists.set(weights, writtenNumbers(weights, den));
    return writtenLists.get(weights);
  }

  const LAYER_BYTES = {
    numbers: ({ size }) => [u32(0, size)],
    embed: ({ table, positions }) => [u32(1, ...table.shape), writtenTable(table), ...counted(positions)],
    affine({ size, ids, listOf, starts, weights, weightsOf, weightStarts, weightDen, bias, biasDen }) {
      const rows = new Uint32Array(2 * size);
      for (let i = 0; i < size; i++) [rows[2 * i], rows[2 * i + 1]] = [listOf[i], weightsOf[i]];
      return [
        u32(2, starts.length - 1), sequences(starts, ids), ...counted(lengths(weightStarts)), writtenWeights(weights, weightDen),
        u32(size), u32s(rows), writtenNumbers(bias, biasDen),
      ];
    },
    rectifier: ({ ids, alpha }) => [u32(3), writtenNumbers([alpha.num], alpha.den), ...counted(ids)],
    product: ({ size, ids }) => [u32(5, size), u32s(ids)],
    curve: ({ ids, curve: number }) => [u32(6, number), ...counted(ids)],
    maximum: ({ size, ids, starts }) => [u32(4, size), sequences(starts, ids)],
  };
  function networkBytes({ layers: [constants, ...layers], logits, positions, canBeFloat }) {
    const parts = [ascii("swapproof net 2\n"), u32(canBeFloat ? 1 : 0, positions, constants.size), writtenNumbers(constants.num, constants.den), u32(layers.length)];
    for (const layer of layers) for (const part of LAYER_BYTES[layer.kind](layer)) parts.push(part);
    return joined(...[parts, counted(logits)].flat());
  }

  // ---- What is worked out with it
  // A layer is in *front* when it is affine in the words: no nonlinear layer comes before it. The *border* is what later
  // layers (or the logits) read of the front.

  function layersRead({ layers, layerOf }, { ids }) {
    const sources = new Set();
    spend(ids.length);
    for (const id of ids) sources.add(layerOf[id]);
    return [...sources].map((number) => layers[number]);
  }
  // Of a layer, by those of the layers that it reads.
  function denominators({ kind, weightDen, biasDen, alpha, den }, from, denOf) {
    const inDen = from.map(denOf).reduce(leastMultiple, 1n);
    const made = { inDen, inFactors: null, den };
    if (from.some((source) => denOf(source) !== inDen)) {
      made.inFactors = [];
      for (const source of from) made.inFactors[source.number] = inDen / denOf(source);
    }
    if (kind === "affine") made.den = leastMultiple(bounded(inDen * weightDen), biasDen);
    if (kind === "rectifier") made.den = bounded(inDen * alpha.den);
    if (kind === "maximum") made.den = inDen;
    return made;
  }
  function withDenominators(network) {
    const { layers, layerOf, logits, size } = network;
    // All elements of a layer have one known denominator; a layer brings those it reads to inDen first. What is read
    // behind the front has the same denominator throughout the front.
    const isBorder = new Uint8Array(size);
    const markBorder = (ids) => ids.forEach((id) => layers[layerOf[id]].front && (isBorder[id] = 1));
    const sourcesOf = (layer) => layersRead(network, layer);
    const setDens = (layer, from, denOf) => Object.assign(layer, denominators(layer, from, denOf));
    layers.forEach((layer, number) => (layer.number = number));
    for (const layer of layers) {
      const from = sourcesOf(layer);
      layer.front = layer.kind !== "constant" && !isNonlinear(layer) && from.every((source) => source.front || source.kind === "constant");
      if (layer.front) setDens(layer, from, (source) => source.den);
      else markBorder(layer.ids);
    }
    markBorder(logits);
    const border = Int32Array.from(range(size).filter((id) => isBorder[id] === 1));
    const frontDen = Array.from(new Set(border.map((id) => layerOf[id])), (number) => layers[number].den).reduce(leastMultiple, 1n);
    const denOf = (layer) => (layer.front ? frontDen : layer.den);
    const back = layers.filter((layer) => !layer.front && layer.kind !== "constant");
    // Smooth layers have intervals, and no denominators.
    if (network.isSmooth) findElements(network);
    else for (const layer of back) setDens(layer, sourcesOf(layer), denOf);
    const spared = network.isSmooth ? exemptions(network, back) : {};
    return {
      ...network, border, frontDen, denOf, back, ...spared, margins: new Map(), roots: new Map(), rootCount: 0,
      constants: layers[0],
      front: layers.filter((layer) => layer.front),
      nonlinear: layers.filter(isNonlinear),
      scratch: { coefficients: new Array(size), touched: layers.map(() => []) },
    };
  }

  // The limit of section 15.1 spares what exp reads, and from below sunk elements: affine ones that are not lifted.
  function exemptions({ logits, size }, back) {
    const [isReadByExp, isLifted] = [new Uint8Array(size), new Uint8Array(size)];
    for (const layer of back) if (layer.curve === CURVES.Exp) layer.ids.forEach((id) => (isReadByExp[id] = 1));
    for (const id of logits) isLifted[id] = 1;
    for (const layer of [...back].reverse()) {
      if (layer.kind === "maximum" || layer.curve === CURVES.Exp) continue;
      const lifting = layer.elements.filter((i) => layer.kind !== "affine" || isLifted[layer.first + i] === 1);
      placesRead(layer, lifting).forEach((is, at) => is === 1 && (isLifted[layer.ids[at]] = 1));
    }
    return { isReadByExp, isLifted };
  }

  // The exact elements of one layer from those before, by id.
  function forward({ layerOf }, layer, values) {
    const { kind, first, size, ids, inFactors } = layer;
    const input = inFactors === null ? (id) => values[id] : (id) => values[id] * inFactors[layerOf[id]];
    spend(size);
    if (kind === "affine") {
      const { weights, bias } = layer;
      const factor = layer.den / (layer.inDen * layer.weightDen);
      const biasFactor = layer.den / layer.biasDen;
      for (let i = 0; i < size; i++) {
        const { start, end, at } = rowOf(layer, i);
        let sum = 0n;
        for (let k = 0; k < end - start; k++) {
          const id = ids[start + k];
          const x = inFactors === null ? values[id] : input(id);
          if (x !== 0n) sum += weights[at + k] * x;
        }
        spend(end - start);
        if (factor !== 1n) sum *= factor;
        values[first + i] = bounded(bias[i] === 0n ? sum : sum + bias[i] * biasFactor);
      }
    } else if (kind === "rectifier") {
      const { num, den } = layer.alpha;
      for (let i = 0; i < size; i++) {
        const x = input(ids[i]);
        values[first + i] = x >= 0n ? (den === 1n ? x : x * den) : num === 0n ? 0n : x * num;
      }
    } else if (kind === "maximum") {
      for (let i = 0; i < size; i++) values[first + i] = greatestOf(layer, i, (at) => input(ids[at]));
    }
  }

  // Where in ids element i of a layer behind the front starts and ends to read.
  function placesOf(layer, i) {
    const { kind, starts, listOf } = layer;
    if (kind === "affine") return [starts[listOf[i]], starts[listOf[i] + 1]];
    if (kind === "maximum") return [starts[i], starts[i + 1]];
    return kind === "product" ? [2 * i, 2 * i + 2] : [i, i + 1];
  }
  // The places of ids that these elements read.
  function placesRead(layer, elements) {
    const isRead = new Uint8Array(layer.ids.length);
    const lists = new Set();
    for (const i of elements) {
      spend(1);
      if (layer.kind === "affine" && lists.has(layer.listOf[i])) continue;
      if (layer.kind === "affine") lists.add(layer.listOf[i]);
      isRead.fill(1, ...placesOf(layer, i));
    }
    return isRead;
  }
  // The elements of a smooth network that the logits are computed from, also with weight 0 (section 15.1): nothing else is
  // looked at behind the front. By layer, and the places of ids that these read.
  function findElements({ layers, logits, size }) {
    const isNeeded = new Uint8Array(size);
    for (const id of logits) isNeeded[id] = 1;
    for (const layer of [...layers].reverse()) {
      layer.elements = range(layer.size);
      if (layer.front || layer.kind === "constant") continue;
      layer.elements = layer.elements.filter((i) => isNeeded[layer.first + i] === 1);
      layer.isRead = placesRead(layer, layer.elements);
      layer.ids.forEach((id, at) => layer.isRead[at] === 1 && (isNeeded[id] = 1));
    }
  }

  // The greatest of `of` over the places of the window of element i.
  function greatestOf({ starts }, i, of) {
    let best = of(starts[i]);
    spend(starts[i + 1] - starts[i]);
    for (let at = starts[i] + 1; at < starts[i + 1]; at++) best = larger(best, of(at));
    return best;
  }

  // ---- Backward substitution (section 7) ----

  // A linear combination of elements: sum of coefficients[id] x_id / den, plus a constant. It works on arrays that
  // belong to the network, so there is one at a time; finish() leaves them clean.
  class Combination {
    constructor(network, terms) {
      this.network = network;
      this.coefficients = network.scratch.coefficients;
      this.touched = network.scratch.touched;
      this.den = 1n;
      this.constant = { num: 0n, den: 1n };
      for (const [id, x] of terms) this.add(id, x);
    }
    add(id, x) {
      const before = this.coefficients[id];
      if (before === undefined) {
        this.coefficients[id] = x;
        this.touched[this.network.layerOf[id]].push(id);
      } else {
        this.coefficients[id] = before + x;
      }
    }
    addConstant(num, den) {
      const { constant } = this;
      if (num === 0n) return;
      const common = leastMultiple(constant.den, den);
      this.constant = { num: constant.num * (common / constant.den) + num * (common / den), den: common };
    }
    // The same combination over a denominator that is `factor` times as large.
    refine(factor) {
      if (factor === 1n) return;
      this.den = bounded(this.den * factor);
      for (const ids of this.touched) for (const id of ids) this.coefficients[id] *= factor;
    }
    // Takes the elements of a layer out: pairs of an id and a coefficient that is not zero.
    take(number) {
      const taken = [];
      for (const id of this.touched[number]) {
        const x = this.coefficients[id];
        this.coefficients[id] = undefined;
        if (x !== 0n) taken.push([id, bounded(x)]);
      }
      this.touched[number].length = 0;
      return taken;
    }
    finish() {
      for (const ids of this.touched) {
        for (const id of ids) this.coefficients[id] = undefined;
        ids.length = 0;
      }
    }

    // Replaces the elements of a linear layer by their definition.
    passLinear(layer, number) {
      const taken = this.take(number);
      if (taken.length === 0) return;
      let sum = 0n;
      if (layer.kind === "constant") {
        for (const [id, x] of taken) sum += x * layer.num[id - layer.first];
        return this.addConstant(sum, this.den * layer.den);
      }
      const { first, ids, weights, bias } = layer;
      for (const [id, x] of taken) sum += x * bias[id - first];
      this.addConstant(sum, this.den * layer.biasDen);
      this.refine(layer.weightDen);
      for (const [id, x] of taken) {
        const { start, end, at } = rowOf(layer, id - first);
        spend(end - start);
        for (let k = 0; k < end - start; k++) {
          const weight = weights[at + k];
          if (weight !== 0n) this.add(ids[start + k], x * weight);
        }
      }
    }
  }

  // ---- The words of one certificate: the border of the original sentence, and what each swap changes there ----

  class Words {
    // See readStatement.
    constructor(network, { words, standing, wordAt }) {
      this.network = network;
      this.standing = standing; // by position, what may stand there: the original first, then one for each option
      this.wordAt = wordAt; // by position, -1 where no word stands
      this.sizes = words.map(({ options }) => options.length);
      // Swaps are numbered over all words: option o > 0 of word w is swap number firstOf[w] + o - 1.
      this.firstOf = [];
      this.swaps = 0;
      for (const size of this.sizes) {
        this.firstOf.push(this.swaps);
        this.swaps += size - 1;
      }
      const { constants } = network;
      const values = new Array(network.size);
      this.original = new Array(network.size); // by id, over frontDen, but constants over their own
      this.slots = new Array(network.size); // by id: for each word that reaches it what each swap adds
      const nowhere = new Map();
      constants.num.forEach((x, id) => ([values[id], this.original[id], this.slots[id]] = [x, x, nowhere]));
      for (const layer of network.front) {
        if (layer.kind !== "embed") forward(network, layer, values);
        else for (let i = 0; i < layer.size; i++) values[layer.first + i] = this.entry(layer, i, 0);
      }
      this.deltas = new Array(network.size);
      let count = 0;
      for (const id of network.border) {
        lookAtClock();
        this.original[id] = values[id] * (network.frontDen / this.layer(id).den);
        this.slots[id] = this.slotsOf(id);
        for (const { amounts } of this.slots[id].values()) count += amounts.length;
        if (count > LIMIT.reached) lackOfMemory("swaps that change so many elements");
      }
      this.reach = network.isSmooth ? findReach(this) : null;
      this.smooth = new Map();
      this.byWord = undefined;
      this.rows = new Array(network.size);
      this.known = new Array(network.size); // by id, see borderIn
      this.zeros = new Float64Array(this.swaps);
      this.rounding = null;
    }
    layer(id) { return this.network.layers[this.network.layerOf[id]]; }
    // What section 15 needs at one level and precision.
    smoothOf(level, precision) {
      const key = `${level} ${precision}`;
      if (!this.smooth.has(key)) this.smooth.set(key, new Smooth(this, level, precision));
      return this.smooth.get(key);
    }
    // The numerator of element i of an embedding layer when what stands at its position is that of this option.
    entry({ table, width, positions }, i, option) {
      return numerator(table, this.standing[positions[Math.floor(i / width)]][option] * width + (i % width));
    }
    // An element of the border is an affine function of embedding elements; so each word adds its part.
    slotsOf(id) {
      const { network, wordAt, sizes } = this;
      const byWord = new Map();
      const sum = new Combination(network, [[id, 1n]]);
      try {
        for (let number = network.layerOf[id]; number >= 0; number--) {
          if (network.layers[number].kind !== "embed") sum.passLinear(network.layers[number], number);
        }
        for (let number = network.layerOf[id]; number > 0; number--) {
          const layer = network.layers[number];
          const taken = sum.take(number);
          if (taken.length === 0) continue;
          // From 1 / (sum.den layer.den) to 1 / frontDen.
          const common = greatestDivisor(network.frontDen, sum.den * layer.den);
          const factor = network.frontDen / common;
          const divisor = (sum.den * layer.den) / common;
          for (const [element, x] of taken) {
            const i = element - layer.first;
            const word = wordAt[layer.positions[Math.floor(i / layer.width)]];
            const more = word < 0 ? 0 : sizes[word] - 1;
            if (more === 0) continue;
            if (!byWord.has(word)) byWord.set(word, { amounts: new Array(more).fill(0n), cell: null, most: 0n, least: 0n });
            const { amounts } = byWord.get(word);
            const delta = this.delta(layer, element);
            const scaled = x * factor;
            spend(more);
            for (let c = 0; c < more; c++) {
              const amount = scaled * delta[c];
              if (divisor !== 1n && amount % divisor !== 0n) throw new Error("a denominator that does not fit");
              amounts[c] += divisor === 1n ? amount : amount / divisor;
            }
          }
        }
      } finally {
        sum.finish();
      }
      return byWord;
    }
    // What each swap adds to an embedding element.
    delta(layer, element) {
      if (this.deltas[element] === undefined) {
        const i = element - layer.first;
        const [original, ...others] = this.standing[layer.positions[Math.floor(i / layer.width)]].map((_, option) => this.entry(layer, i, option));
        this.deltas[element] = others.map((x) => x - original);
      }
      return this.deltas[element];
    }
    row(id) {
      return (this.rows[id] ??= this.functionOf(this.original[id], this.slots[id]));
    }
    // A function of the words: its value for the original, and for some words what each swap adds to it. Both also in
    // floating point, over 2^shift to be below 2^64. most: the greatest of these in magnitude, exactly.
    functionOf(original, slots) {
      const changes = [];
      const swaps = [];
      let most = absolute(original);
      for (const [word, { amounts }] of slots) {
        spend(amounts.length);
        for (let c = 0; c < amounts.length; c++) {
          changes.push(amounts[c]);
          swaps.push(this.firstOf[word] + c);
          most = larger(most, absolute(amounts[c]));
        }
      }
      const shift = Math.max(0, bitLength(most) - 64);
      const asFloat = (x) => Number(x >> BigInt(shift));
      return { original, slots, swaps: Int32Array.from(swaps), base: asFloat(original), changes: Float64Array.from(changes, asFloat), shift, most };
    }
    // Changes the border of a sentence by one swap; gives what it was before.
    swap(border, word, option) {
      const changed = this.changedBy(word);
      const before = changed.map(({ id }) => border[id]);
      for (const { id, amounts } of changed) border[id] += amounts[option - 1];
      return before;
    }
    undo(border, word, before) {
      this.changedBy(word).forEach(({ id }, i) => (border[id] = before[i]));
    }
    changedBy(word) {
      if (this.byWord === undefined) {
        this.byWord = this.sizes.map(() => []);
        for (const id of this.network.border) {
          for (const [reaching, { amounts }] of this.slots[id]) this.byWord[reaching].push({ id, amounts });
        }
      }
      return this.byWord[word];
    }
    // All elements behind the border, by id.
    evaluate(border) {
      const values = border.slice();
      for (const layer of this.network.back) forward(this.network, layer, values);
      return values;
    }
    // z_label - z_rival as a fraction.
    difference(values, label, rival) {
      const { logits, denOf } = this.network;
      const [y, r] = [logits[label], logits[rival]];
      const [yDen, rDen] = [denOf(this.layer(y)), denOf(this.layer(r))];
      return yDen === rDen ? { num: values[y] - values[r], den: yDen } : { num: values[y] * rDen - values[r] * yDen, den: yDen * rDen };
    }
  }

  // ---- Regions (section 5) ----
  // What does not depend on slopes and the like is found once, until a split by words.

  // What a word may be, by numbers of its options.
  function makeCell(chosen) {
    return { chosen, swaps: chosen.filter((option) => option > 0), forced: !chosen.includes(0) };
  }

  class Space {
    constructor(words, most) {
      this.words = words;
      this.cells = words.sizes.map((size) => makeCell(range(size)));
      this.most = most; // the greatest number of swaps
      this.known = null;
    }
    // The places are the words that can be swapped. free: how many of them can be swapped beside the forced ones; the
    // region holds no sentence if it is below 0.
    get plan() {
      if (this.known !== null) return this.known;
      const places = [];
      const placeOf = new Int32Array(this.cells.length).fill(-1);
      this.cells.forEach((cell, word) => {
        if (cell.swaps.length === 0) return;
        placeOf[word] = places.length;
        places.push({ word, cell });
      });
      const isForced = Uint8Array.from(places, ({ cell }) => Number(cell.forced));
      const forced = isForced.reduce((all, one) => all + one, 0);
      this.known = { words: this.words, places, placeOf, isForced, forced, most: this.most, free: this.most - forced };
      return this.known;
    }
  }

  // The number of sentences: the coefficients, up to the number of swaps allowed, of a product of polynomials.
  function countSentences({ places, most }) {
    const longest = Math.min(places.length, most);
    if (places.length * longest > LIMIT.counting) refuse("too many sentences to count them");
    let counts = [1n];
    for (const { cell } of places) {
      const [keeps, swaps] = [cell.forced ? 0n : 1n, BigInt(cell.swaps.length)];
      spend(counts.length);
      const next = counts.map((count, s) => keeps * count + (s > 0 ? swaps * counts[s - 1] : 0n));
      if (counts.length <= longest) next.push(swaps * counts[counts.length - 1]);
      counts = next;
    }
    const total = counts.reduce((all, count) => all + count, 0n);
    if (total >= LIMIT.count) refuse("too many sentences to count them");
    return total;
  }

  // The best total of amounts, one per place: all forced places, and the greatest of the others that are positive.
  function bestTotal({ isForced, free }, amounts) {
    let total = 0n;
    const gains = [];
    spend(amounts.length);
    for (let i = 0; i < amounts.length; i++) {
      if (isForced[i] === 1) total += amounts[i];
      else if (amounts[i] > 0n) gains.push(amounts[i]);
    }
    for (const gain of greatest(gains, free)) total += gain;
    return total;
  }
  // The `count` greatest numbers of a list, greatest first.
  function greatest(list, count) {
    if (count >= list.length || count > 16) return list.sort(byValueDescending).slice(0, Math.max(count, 0));
    const top = [];
    for (const x of list) {
      if (top.length === count && !(x > top[count - 1])) continue;
      let at = Math.min(top.length, count - 1);
      while (at > 0 && top[at - 1] < x) {
        top[at] = top[at - 1];
        at -= 1;
      }
      top[at] = x;
    }
    return top;
  }

  // The least and the greatest of the amounts of a cell; of the cell that asked last they are known.
  function rangeOf(slot, cell) {
    if (slot.cell !== cell) {
      const amounts = cell.swaps.map((option) => slot.amounts[option - 1]);
      slot.cell = cell;
      slot.most = amounts.reduce(larger);
      slot.least = amounts.reduce(smaller);
    }
    return slot;
  }
  // What a region makes of one element of the border depends on the words that reach it only: on what each may be (null
  // if it cannot be swapped) and, up to their number, on how many are free to be. What the last region made of it is
  // kept: its least and greatest value, and bottom and base, the least and greatest with the forced words swapped alone.
  function borderIn({ words, places, placeOf, free }, id) {
    const slots = words.slots[id];
    const most = Math.min(free, slots.size);
    const cells = [];
    spend(slots.size);
    for (const word of slots.keys()) cells.push(placeOf[word] < 0 ? null : places[placeOf[word]].cell);
    const known = words.known[id];
    if (known !== undefined && known.most === most && cells.every((cell, i) => cell === known.cells[i])) return known;

    let low = words.original[id];
    let base = low;
    const [falls, rises] = [[], []];
    let at = 0;
    for (const slot of slots.values()) {
      const cell = cells[at++];
      if (cell === null) continue;
      const range = rangeOf(slot, cell);
      if (cell.forced) {
        low += range.least;
        base += range.most;
      } else {
        if (range.least < 0n) falls.push(-range.least);
        if (range.most > 0n) rises.push(range.most);
      }
    }
    const bottom = low;
    let high = base;
    for (const fall of greatest(falls, most)) low -= fall;
    for (const rise of greatest(rises, most)) high += rise;
    return (words.known[id] = { most, cells, low, high, bottom, base, bounds: null, counted: null, lowered: null });
  }

  // ---- The greatest value of a sum of x times functions of the words, of those of Words.functionOf ----
  // Floating point finds out which swaps can make it; exact numbers are looked at for these only. The same totals as
  // above have functions of their own here, because engines run code fast that meets one kind of numbers only.
  //
  // Floats are whole numbers here, in units of 2^shift: products of two integers, rounded down. At most `count` of them
  // are added up, each below 2^49 / count (see shiftFor), so all sums stay below 2^53 and are exact. Before it is
  // rounded down a product is off by less than 2^-51 of 2^49 / count: at least 60 bits of each factor are kept (of a
  // row, counted from its greatest number), then 53 bits, and 53 of the product. That is less than 1/4 in a sum. Rounding
  // down takes off less than 1 for each product. So a sum may look smaller than one it is not smaller than, by less than
  // count + 1/2.

  // Twice that: what looks smaller by more than this is smaller.
  const lagOf = (count) => 2 * count + 1;
  function checkWhole(x) {
    if (!Number.isSafeInteger(x)) throw new Error("floating point that may not be exact");
    return x;
  }
  // Functions of the words in floating point. The amounts of all swaps are left + right. For each word: the greatest
  // amount of the cell that asked last.
  function makeRough({ words }, base, left, right) {
    return { base, left, right, cells: new Array(words.sizes.length), most: new Float64Array(words.sizes.length), reach: 0 };
  }
  function mostByPlace({ words, places }, { left, right, cells, most }) {
    const result = new Float64Array(places.length);
    for (let place = 0; place < result.length; place++) {
      const { word, cell } = places[place];
      if (cells[word] !== cell) {
        const first = words.firstOf[word] - 1;
        let best = -Infinity;
        for (const option of cell.swaps) best = Math.max(best, left[first + option] + right[first + option]);
        cells[word] = cell;
        most[word] = checkWhole(best);
      }
      result[place] = most[word];
    }
    return result;
  }
  // Of the positive amounts of places that are not forced the greatest, as many as can be swapped, descending; there may
  // be zeros for those that lack.
  function greatestGains({ isForced, free }, most) {
    if (free > 16) return most.filter((x, place) => isForced[place] === 0 && x > 0).sort().reverse().subarray(0, free);
    const top = new Float64Array(free);
    for (let place = 0; place < most.length; place++) {
      const x = most[place];
      if (isForced[place] === 1 || !(x > top[free - 1])) continue;
      let at = free - 1;
      for (; at > 0 && top[at - 1] < x; at--) top[at] = top[at - 1];
      top[at] = x;
    }
    return top;
  }
  // The greatest value in the region.
  function reachOf(plan, f) {
    const most = mostByPlace(plan, f);
    const gains = greatestGains(plan, most);
    let total = f.base;
    spend(most.length);
    for (let place = 0; place < most.length; place++) if (plan.isForced[place] === 1) total += most[place];
    for (let i = 0; i < gains.length; i++) total += gains[i];
    return checkWhole(total);
  }
  // A sum of x times functions, over 2^shift.
  function roughSum(plan, terms, shift) {
    const { words } = plan;
    const sums = new Float64Array(words.swaps);
    let total = 0;
    for (const [{ swaps, base, changes, shift: own, most }, x] of terms) {
      if (x === 0n || most === 0n) continue;
      const over = Math.max(0, bitLength(x) - 64);
      // No less than 0 bits are left to divide by: x most has at most 7 bits fewer than both their lengths, see shiftFor.
      const factor = Number(x >> BigInt(over)) / Number(1n << BigInt(shift - over - own));
      total += Math.floor(factor * base);
      addMultiple(sums, swaps, factor, changes);
    }
    return makeRough(plan, total, sums, words.zeros);
  }
  function addMultiple(sums, swaps, factor, changes) {
    spend(swaps.length);
    for (let j = 0; j < swaps.length; j++) sums[swaps[j]] += Math.floor(factor * changes[j]);
  }
  // A shift that makes each product less than 2^49 / count.
  function shiftFor(terms, count) {
    const most = terms.map(([f, x]) => absolute(x) * f.most).reduce(larger, 0n);
    return Math.max(0, bitLength(most) + bitLength(BigInt(count)) - 49);
  }

  function greatestSum(plan, terms) {
    const { words, places, isForced, free } = plan;
    const sum = roughSum(plan, terms, shiftFor(terms, terms.length));
    const most = mostByPlace(plan, sum);
    const lag = lagOf(terms.length);
    // What a place must reach to be swapped though it is not forced.
    const [least = 0] = free === 0 ? [Infinity] : greatestGains(plan, most).subarray(free - 1);
    const exact = places.map(({ word, cell }, place) => {
      if (isForced[place] === 0 && most[place] < least - lag) return 0n;
      const first = words.firstOf[word] - 1;
      const options = cell.swaps.filter((option) => sum.left[first + option] >= most[place] - lag);
      return options.map((option) => exactAmount(terms, word, option)).reduce(larger);
    });
    return terms.reduce((all, [f, x]) => all + x * f.original, bestTotal(plan, exact));
  }
  function exactAmount(terms, word, option) {
    let sum = 0n;
    spend(terms.length);
    for (const [{ slots }, x] of terms) {
      const slot = slots.get(word);
      if (slot !== undefined) sum += x * slot.amounts[option - 1];
    }
    return sum;
  }

  // ---- The linear recipe (section 7) ----

  // A linear leaf is { words, network, plan, region, bounds: by id, of elements, inputs: by nonlinear layer, low and high
  // of its inputs, place by place, lines: by nonlinear layer, the relaxations of its elements, made when they are asked
  // for, gains, losses: by id, what swaps change in upper and lower relaxations that count them, and changeCount: how
  // many swaps in all }.

  const roundedOut = (low, high, den) => [floorDivide(low * ONE, den), ceilDivide(high * ONE, den)];

  // Bounds of one element, l down and u up to multiples of 2^-64 (so they are integers here).
  function elementBounds(leaf, id) {
    const { network, plan } = leaf;
    lookAtClock();
    const layer = network.layers[network.layerOf[id]];
    const i = id - layer.first;
    if (layer.front) {
      const found = borderIn(plan, id);
      return (found.bounds ??= roundedOut(found.low, found.high, network.frontDen));
    }
    if (layer.kind === "constant") return roundedOut(layer.num[i], layer.num[i], layer.den);
    if (layer.kind === "rectifier") {
      const ends = rectifiedEnds(layer, i, leaf.inputs.get(layer));
      return countsSwaps(leaf.region, layer, i) ? [stairsOf(leaf, layer, i).low, ends[1]] : ends;
    }
    if (layer.kind === "maximum") return [stairsOf(leaf, layer, i).low, lineOf(leaf, layer, i).counted.top];
    const [low, high] = [1n, -1n].map((sign) => {
      const { num, den } = leastOf(leaf, [[id, sign]], false);
      return floorDivide(num * ONE, den);
    });
    return [low, -high];
  }

  function boundsIn(leaf, id, boundsOf) {
    if (!leaf.bounds.has(id)) leaf.bounds.set(id, boundsOf(leaf, id));
    return leaf.bounds.get(id);
  }
  // Bounds of the inputs of every nonlinear layer, in order.
  function findBounds(leaf, boundsOf = elementBounds) {
    for (const layer of leaf.network.nonlinear) {
      const low = new Array(layer.ids.length);
      const high = new Array(layer.ids.length);
      for (let at = 0; at < layer.ids.length; at++) {
        [low[at], high[at]] = boundsIn(leaf, layer.ids[at], boundsOf);
      }
      leaf.inputs.set(layer, { low, high });
      leaf.lines.set(layer, new Array(layer.size));
    }
  }

  function lineOf(leaf, layer, i) {
    return (leaf.lines.get(layer)[i] ??= makeLine(leaf, layer, i));
  }
  function makeLine({ region, inputs }, layer, i) {
    const ends = inputs.get(layer);
    if (layer.kind === "maximum") return maximumLine(layer, i, ends);
    const line = rectifierLine(layer, i, ends);
    if (countsSwaps(region, layer, i)) line.counted = countedLine(...rectifiedEnds(layer, i, ends));
    return line;
  }
  // What counts swaps: its greatest l and u as they are without stairs. What is null is made when it is asked for: see
  // stairsOf, lowerOfCounted, upperOfCounted.
  function countedLine(least, top) {
    return { least, top, stairs: null, lower: null, upper: null };
  }
  function rectifiedEnds({ alpha: { num, den } }, i, { low, high }) {
    const [l, u] = [low[i], high[i]];
    return [l >= 0n ? l : floorDivide(l * num, den), u >= 0n ? u : ceilDivide(u * num, den)];
  }
  // Exact slope (over alpha.den), or upper slope and constant, and lower slope (slopes over alpha.den 2^16, constants over
  // alpha.den 2^80).
  function rectifierLine({ alpha }, i, { low, high }) {
    const [l, u] = [low[i], high[i]];
    if (l >= 0n) return { exact: alpha.den, counted: null };
    if (u <= 0n) return { exact: alpha.num, counted: null };
    const whole = alpha.den << 16n;
    const leak = alpha.num << 16n;
    const width = (u - l) * alpha.den;
    const s = floorDivide(((u * alpha.den - l * alpha.num) << 17n) + width, 2n * width) * alpha.den;
    return { exact: null, upper: s, constant: larger((leak - s) * l, (whole - s) * u), lower: u > -l ? whole : leak, counted: null };
  }
  // The element of the window with the greatest l, whether it is the maximum for sure, and the greatest l and u.
  function maximumLine(layer, i, { low, high }) {
    const [start, end] = placesOf(layer, i);
    let best = start;
    spend(2 * (end - start));
    for (let at = start; at < end; at++) if (low[at] > low[best]) best = at;
    let exact = true;
    for (let at = start; at < end; at++) if (at !== best && high[at] > low[best]) exact = false;
    return { best: layer.ids[best], exact, counted: countedLine(low[best], greatestOf(layer, i, (at) => high[at])) };
  }

  // ---- Maxima and rectifiers that count swaps (section 7). Integers in units of 2^-64

  // What a table of node 8 says of an element that counts swaps: 64 times its height, and how many stairs, together one
  // number. That of a rectifier is written 128 higher, above all slopes; without it its lines count nothing.
  const isOfCounted = (number) => number >= 0 && number % 128 <= 64 && number < 8 * 128;
  const isOfNode8 = (value, { kind }) => (kind === "rectifier" && value <= 64) || isOfCounted(kind === "rectifier" ? value - 128 : value);
  const countedOf = ({ slopes }, layer, i) => {
    const value = slopes?.get(layer)?.get(i);
    return layer.kind === "rectifier" ? (value ?? 0) - 128 : value ?? 64;
  };
  const countsSwaps = (region, layer, i) => countedOf(region, layer, i) >= 0;
  const heightOf = (region, layer, i) => countedOf(region, layer, i) % 128;
  const stairCountOf = (region, layer, i) => Math.floor(countedOf(region, layer, i) / 128);

  // The roots of an element, ascending, and whether a rectifier is met on the way to one; null if it does not count swaps.
  function rootsOf(network, id) {
    const { roots } = network;
    if (!roots.has(id)) {
      const found = findRoots(network, id);
      roots.set(id, found);
      network.rootCount += found === null ? 0 : found.ids.length;
      if (network.rootCount > LIMIT.reached) lackOfMemory("maxima and rectifiers of so many elements");
    }
    return roots.get(id);
  }
  function findRoots({ layers, layerOf }, id) {
    const ids = [];
    let isRectified = false;
    const met = new Set([id]);
    // What is added to a set while it is gone through has its turn.
    for (const element of met) {
      const layer = layers[layerOf[element]];
      if (layer.front || layer.kind === "constant") {
        ids.push(element);
        continue;
      }
      if (!isNonlinear(layer)) return null;
      if (layer.kind === "rectifier") isRectified = true;
      const [start, end] = placesOf(layer, element - layer.first);
      spend(end - start);
      for (let at = start; at < end; at++) met.add(layer.ids[at]);
    }
    return { ids: ids.sort((a, b) => a - b), isRectified };
  }

  // Of a root: base, total (S), and of each free word that can add to it { word, slot, cell, most (D) }.
  function rootIn(plan, id) {
    const { network } = plan.words;
    const layer = plan.words.layer(id);
    if (layer.kind === "constant") return { base: ceilDivide(layer.num[id - layer.first] * ONE, layer.den), total: 0n, parts: [] };
    const found = borderIn(plan, id);
    if (found.counted === null) {
      const up = (x) => ceilDivide(x * ONE, network.frontDen);
      const parts = [];
      let at = 0;
      for (const [word, slot] of plan.words.slots[id]) {
        const cell = found.cells[at++];
        if (cell === null || cell.forced || rangeOf(slot, cell).most <= 0n) continue;
        slot.rises ??= slot.amounts.map(up);
        parts.push({ word, slot, cell, most: up(slot.most) });
      }
      const total = greatest(parts.map(({ most }) => most), found.most).reduce((all, one) => all + one, 0n);
      found.counted = { base: up(found.base), total, parts };
    }
    return found.counted;
  }

  // The upper relaxation of what counts swaps: a constant, and for the words that add to it what each swap adds; at height
  // 1 the constant alone.
  function upperOfCounted({ words, plan, region }, layer, i, { top }) {
    const height = heightOf(region, layer, i);
    if (height === 64) return { constant: top, changes: new Map() };
    const { ids, isRectified } = rootsOf(words.network, layer.first + i);
    const roots = ids.map((id) => rootIn(plan, id));
    const least = roots.map(({ base }) => base).reduce(larger, isRectified ? 0n : roots[0].base);
    if (top <= least) return { constant: top, changes: new Map() };
    const constant = least + ceilDivide((top - least) * BigInt(height), 64n);
    const changes = new Map();
    for (const { base, total, parts } of roots) {
      const slack = constant - base;
      if (total <= slack) continue;
      for (const { word, slot, cell, most } of parts) {
        const amounts = amountsOf(changes, words, word);
        const paid = (slack * most) / total;
        spend(cell.swaps.length);
        for (const option of cell.swaps) amounts[option - 1] = larger(amounts[option - 1], slot.rises[option - 1] - paid);
      }
    }
    return { constant, changes };
  }
  function amountsOf(changes, words, word) {
    if (!changes.has(word)) changes.set(word, { amounts: new Array(words.sizes[word] - 1).fill(0n) });
    return changes.get(word).amounts;
  }

  // Of a root: low, and the free words that lower it, { word, slot, cell }.
  function lowRootIn(plan, id) {
    const { network } = plan.words;
    const layer = plan.words.layer(id);
    if (layer.kind === "constant") return { low: floorDivide(layer.num[id - layer.first] * ONE, layer.den), parts: [] };
    const found = borderIn(plan, id);
    if (found.lowered === null) {
      const parts = [];
      let at = 0;
      for (const [word, slot] of plan.words.slots[id]) {
        const cell = found.cells[at++];
        if (cell !== null && !cell.forced && rangeOf(slot, cell).least < 0n) parts.push({ word, slot, cell });
      }
      found.lowered = { low: floorDivide(found.bottom * ONE, network.frontDen), parts };
    }
    return found.lowered;
  }

  // The l of what counts swaps, and of its stairs the roots.
  function stairsOf(leaf, layer, i) {
    const { counted } = lineOf(leaf, layer, i);
    return (counted.stairs ??= findStairs(leaf, layer.first + i, counted.least, stairCountOf(leaf.region, layer, i)));
  }
  function findStairs({ words, plan }, id, least, count) {
    if (count === 0) return { low: least, roots: [] };
    // Roots that are not above the l without stairs would be taken last, are no stairs, and raise no l. Among them is each
    // that no word lowers, since its low is its own l: each other is taken once, since its own words lower it.
    let left = [];
    for (const root of rootsOf(words.network, id).ids) {
      const known = lowRootIn(plan, root);
      if (known.low > least) left.push(known);
    }
    const taken = [];
    const lowering = new Set();
    while (left.length > 0 && taken.length <= plan.free) {
      spend(2 * left.length);
      const root = left.reduce((best, other) => (other.low > best.low ? other : best));
      taken.push(root);
      for (const { word } of root.parts) lowering.add(word);
      left = left.filter(({ parts }) => !parts.some(({ word }) => lowering.has(word)));
    }
    const low = taken.length > plan.free ? taken[plan.free].low : least;
    return { low, roots: taken.slice(0, count).filter((root) => root.low > low) };
  }

  // The lower relaxation of what has stairs, as the upper one above: what swaps change is not above 0.
  function lowerOfCounted(leaf, layer, i) {
    const { words } = leaf;
    const { low, roots } = stairsOf(leaf, layer, i);
    const ends = [...roots.map((root) => root.low), low];
    const changes = new Map();
    roots.forEach(({ parts }, n) => {
      const most = ends[n] - ends[n + 1];
      for (const { word, slot, cell } of parts) {
        const amounts = amountsOf(changes, words, word);
        slot.falls ??= slot.amounts.map((x) => larger(0n, ceilDivide(-x * ONE, words.network.frontDen)));
        spend(cell.swaps.length);
        for (const option of cell.swaps) amounts[option - 1] -= smaller(slot.falls[option - 1], most);
      }
    });
    return { constant: ends[0], changes };
  }

  // The least value in the region that backward substitution shows for a sum of elements. forMargin turns on slopes and
  // joint groups.
  function leastOf(leaf, terms, forMargin) {
    const { words, network, plan, gains, losses } = leaf;
    const sum = new Combination(network, terms);
    try {
      passBack(leaf, sum, forMargin);
      // What is left are elements of the border, and such that stand for what swaps change in their relaxations.
      const unit = gains.size + losses.size === 0 ? network.frontDen : leastMultiple(network.frontDen, ONE);
      const [ofBorder, ofChanges] = [unit / network.frontDen, unit / ONE];
      const left = network.layers.flatMap((_, number) => sum.take(number));
      const least = -greatestSum(plan, left.map(([id, x]) => {
        const changes = (x > 0n ? losses : gains).get(id);
        return changes === undefined ? [words.row(id), -x * ofBorder] : [changes, -x * ofChanges];
      }));
      const den = sum.den * unit;
      const common = leastMultiple(den, sum.constant.den);
      return { num: least * (common / den) + sum.constant.num * (common / sum.constant.den), den: common };
    } finally {
      sum.finish();
    }
  }

  // Down to the front.
  function passBack(leaf, sum, forMargin) {
    const { layers } = leaf.network;
    for (let number = layers.length - 1; number >= 0; number--) {
      const layer = layers[number];
      spend(1);
      if (layer.front) continue;
      if (layer.kind === "rectifier") {
        passRectifier(leaf, sum, layer, number, forMargin);
        if (forMargin && leaf.region.betas !== undefined) passBetas(leaf.region, sum, layer);
      } else if (layer.kind === "maximum") passMaximum(leaf, sum, layer, number);
      else sum.passLinear(layer, number);
    }
  }

  // Of elements with a phase and a beta, in units of 2^-shift: -beta x if x >= 0, beta x if x <= 0 (section 14.3).
  function passBetas({ betas, shift, phases }, sum, layer) {
    const own = betas.get(layer);
    const signs = phases.get(layer);
    if (own === undefined || signs === undefined) return;
    sum.refine(1n << shift);
    for (const [i, sign] of signs) {
      const beta = own.get(i);
      if (beta !== undefined) sum.add(layer.ids[i], (sum.den >> shift) * BigInt(-sign * beta));
    }
  }
  function keepChanges(leaf, changesOf, id, changes) {
    changesOf.set(id, changes);
    leaf.changeCount += changes.swaps.length;
    if (leaf.changeCount > LIMIT.reached) lackOfMemory("swaps that change so many maxima and rectifiers");
  }
  // The relaxation, of the side that the sign of x asks for, of what counts swaps: adds x times what swaps change in it,
  // for which the element stands, and gives its constant.
  function passCounted(leaf, sum, layer, i, x) {
    const id = layer.first + i;
    const { counted } = lineOf(leaf, layer, i);
    const [side, changesOf, make] = x > 0n ? ["lower", leaf.losses, lowerOfCounted] : ["upper", leaf.gains, upperOfCounted];
    if (counted[side] === null) {
      counted[side] = make(leaf, layer, i, counted);
      if (counted[side].changes.size > 0) keepChanges(leaf, changesOf, id, leaf.words.functionOf(0n, counted[side].changes));
    }
    if (changesOf.has(id)) sum.add(id, x);
    return counted[side].constant;
  }
  function passMaximum(leaf, sum, layer, number) {
    let constant = 0n;
    for (const [id, x] of sum.take(number)) {
      const i = id - layer.first;
      const line = lineOf(leaf, layer, i);
      if (line.exact || (x > 0n && stairCountOf(leaf.region, layer, i) === 0)) sum.add(line.best, x);
      else constant += x * passCounted(leaf, sum, layer, i, x);
    }
    sum.addConstant(constant, sum.den * ONE);
  }

  function passRectifier(leaf, sum, layer, number, forMargin) {
    const { region } = leaf;
    const { alpha, first, ids } = layer;
    const taken = sum.take(number);
    if (taken.length === 0) return;
    spend(taken.length);
    const jointly = forMargin ? passJointGroups(leaf, sum, layer, taken) : new Map();
    const slopes = forMargin ? region.slopes.get(layer) : undefined;
    const shift = jointly.size > 0 || taken.some(([id]) => lineOf(leaf, layer, id - first).exact === null) ? 16n : 0n;
    const before = sum.den;
    sum.refine(alpha.den << shift);
    let constant = 0n;
    for (const [id, x] of taken) {
      const i = id - first;
      const line = lineOf(leaf, layer, i);
      let slope;
      if (jointly.has(i)) {
        slope = (jointly.get(i) * alpha.den) << 10n;
      } else if (line.exact !== null) {
        slope = line.exact << shift;
      } else if (line.counted !== null && (x < 0n || stairCountOf(region, layer, i) > 0)) {
        constant += x * (passCounted(leaf, sum, layer, i, x * (alpha.den << 16n)) * alpha.den << 16n);
        continue;
      } else if (x < 0n) {
        slope = line.upper;
        constant += x * line.constant;
      } else {
        slope = line.lower;
        // a = max(alpha, value / 64)
        if (line.counted === null && slopes?.has(i)) slope = larger((BigInt(slopes.get(i)) * alpha.den) << 10n, alpha.num << 16n);
      }
      if (slope !== 0n) sum.add(ids[i], x * slope);
    }
    sum.addConstant(constant, (before * alpha.den) << 80n);
  }

  // The elements of joint groups with c_j < 0: sum c_j y_j >= sum c_j a_j x_j - T. Subtracts every T and
  // gives 64 a_j by element.
  function passJointGroups(leaf, sum, layer, taken) {
    const groups = leaf.region.joint.get(layer);
    const jointly = new Map();
    if (groups === undefined) return jointly;
    const negative = new Map(taken.filter(([, x]) => x < 0n).map(([id, x]) => [id - layer.first, x]));
    for (const group of groups) {
      const members = [...group.values].filter(([i]) => negative.has(i));
      if (members.length === 0) continue;
      for (const [i, value] of members) jointly.set(i, BigInt(value));
      // All over 64 alpha.den sum.den frontDen: |c_j| (alpha - a_j), and |c_j| (1 - a_j).
      const { num, den } = layer.alpha;
      const weights = members.map(([i, value]) => [num, den].map((d) => -negative.get(i) * (64n * d - BigInt(value) * den)));
      const most = greatestOverPatterns(leaf, group, members.map(([i]) => layer.ids[i]), weights);
      sum.addConstant(-most.num, 64n * den * sum.den * most.den);
    }
    return jointly;
  }

  // The greatest, over all choices of one of two weights for each element, of the greatest value of the weighted sum.
  // Often leaves ask for the same, so patterns are kept with their group.
  function greatestOverPatterns({ plan, network }, group, ids, weights) {
    const same = (known) => known !== null && sameShape(known.ids, ids) && sameShape(known.weights.flat(), weights.flat());
    const patterns = same(group.known) ? group.known : makePatterns(plan, network, ids, weights);
    if (group.keeps) group.known = patterns;
    const { left, right, pairs, lag, den } = patterns;
    for (const f of [...left, ...right]) f.reach = reachOf(plan, f);
    // No pattern reaches more than its two halves do.
    for (const half of [left, right]) half.sort((f, g) => g.reach - f.reach);
    const found = [];
    let enough = -Infinity;
    for (const f of left) {
      for (const g of right) {
        if (f.reach + g.reach < enough) break;
        const number = f.number * right.length + g.number;
        if (pairs[number] === undefined) pairs[number] = makeRough(plan, f.base + g.base, f.left, g.left);
        const reach = reachOf(plan, pairs[number]);
        enough = Math.max(enough, reach - lag);
        if (reach >= enough) found.push({ reach, terms: [...f.terms, ...g.terms] });
      }
    }
    const candidates = found.filter(({ reach }) => reach >= enough);
    return { num: candidates.map(({ terms }) => greatestSum(plan, terms)).reduce(larger), den };
  }

  // The patterns of the first and of the second half of the elements. A total adds up `count` numbers.
  function makePatterns(plan, network, ids, weights) {
    const { words } = plan;
    const dens = ids.map((id) => network.denOf(words.layer(id)));
    const den = dens.reduce(leastMultiple);
    const members = ids.map((id, j) => weights[j].map((weight) => [words.row(id), weight * (den / dens[j])]));
    const count = members.length * (words.sizes.length + 1);
    const shift = shiftFor(members.flat(), count);
    const patternsOf = (part) => {
      const choices = part.reduce((all, pair) => all.flatMap((terms) => pair.map((term) => [...terms, term])), [[]]);
      return choices.map((terms, number) => ({ ...roughSum(plan, terms, shift), terms, number }));
    };
    const middle = Math.floor(members.length / 2);
    const [left, right] = [members.slice(0, middle), members.slice(middle)].map(patternsOf);
    return { ids, weights, left, right, pairs: [], lag: lagOf(count), den };
  }

  // ---- The float32 level (section 8) ----
  // A bounds |x|, e bounds the error, by id; integers over 2^64. n counts the roundings that a term of an affine layer
  // may meet, also those of the affine layers that it is joined with; of other elements it is 0.

  const MOST = 1n << 40n;

  // boundsAt(layer, at): the bounds l, u of a nonlinear layer's input at this place; null in the pass over the whole
  // space, where they come from A, and whose result later passes take for everything up to the border.
  function roundingErrors(words, boundsAt, whole) {
    const { network } = words;
    const [A, e, n] = whole === null ? [0, 1, 2].map(() => new Array(network.size).fill(0n)) : [whole.A, whole.e, whole.n].map((list) => list.slice());
    for (const layer of whole === null ? network.layers : network.back) {
      const limits = (at) => {
        if (boundsAt !== null) return boundsAt(layer, at);
        const id = layer.ids[at];
        const { kind, num, den, first } = words.layer(id);
        return kind === "constant" ? roundedOut(num[id - first], num[id - first], den) : [-A[id], A[id]];
      };
      const size = ([low, high]) => larger(-low, high);
      spend(layer.size);
      for (let i = 0; i < layer.size; i++) {
        const id = layer.first + i;
        if (layer.kind === "constant") {
          [A[id], e[id]] = [ceilDivide(absolute(layer.num[i]) * ONE, layer.den), 0n];
        } else if (layer.kind === "embed") {
          [A[id], e[id]] = [embeddingSize(words, layer, i, 64n), 0n];
        } else if (layer.kind === "maximum") {
          const bounds = [0, 1].map((end) => greatestOf(layer, i, (at) => limits(at)[end]));
          [A[id], e[id]] = [size(bounds), greatestOf(layer, i, (at) => e[layer.ids[at]])];
        } else if (layer.kind === "affine") {
          [A[id], e[id], n[id]] = affineErrors(layer, i, A, e, n, whole === null);
        } else if (layer.alpha.num === 0n) {
          const error = e[layer.ids[i]];
          const [, high] = limits(i);
          [A[id], e[id]] = high + error <= 0n ? [0n, 0n] : [larger(high, 0n), error];
        } else {
          const error = e[layer.ids[i]];
          A[id] = size(limits(i));
          if (whole === null && A[id] + error > MOST * ONE) refuse("float32: what a LeakyRelu is of may be larger than 2^40");
          e[id] = error + ceilDivide(4n * 257n * (A[id] + error), 1n << 32n) + 1n;
        }
      }
    }
    return { A, e, n };
  }

  // Up, to multiples of 2^-bits.
  function embeddingSize(words, { table, width, positions }, i, bits) {
    let most = 0n;
    for (const token of words.standing[positions[Math.floor(i / width)]]) {
      most = larger(most, absolute(numerator(table, token * width + (i % width))));
    }
    return ceilDivide(most << bits, table.den);
  }

  // One element z = sum of w x + b of an affine layer. With `check`, the conditions of the section.
  function affineErrors(layer, i, A, e, n, check) {
    const { ids, weights, weightDen, bias, biasDen } = layer;
    const { start, end, at } = rowOf(layer, i);
    let used = 0n;
    let straight = 0n; // the sum of the n of what is added as it is, or taken away
    let inner = 0n; // the greatest n of what else is read
    let sizes = 0n;
    let errors = 0n;
    spend(3 * (end - start));
    for (let k = 0; k < end - start; k++) {
      const id = ids[start + k];
      const weight = absolute(weights[at + k]);
      if (check && weight > MOST * weightDen) refuse("float32: a weight is larger than 2^40");
      if (weight === 0n || A[id] + e[id] === 0n) continue;
      if (check && A[id] + e[id] > MOST * ONE) refuse("float32: a term of a sum may be larger than 2^40");
      used += 1n;
      if (weight === weightDen) straight += n[id];
      else inner = larger(inner, n[id]);
      sizes += weight * A[id];
      if (e[id] !== 0n) errors += weight * e[id];
    }
    // Everything over den 2^64.
    const b = absolute(bias[i]);
    const den = leastMultiple(weightDen, biasDen);
    const factor = den / weightDen;
    const constant = b * ONE * (den / biasDen);
    const total = (sizes + errors) * factor + constant;
    const roundings = used + 3n + straight + inner;
    if (check) {
      if (roundings > 65280n) refuse("float32: a sum of too many terms");
      if (b > MOST * biasDen) refuse("float32: a bias is larger than 2^40");
      if (total > MOST * ONE * den) refuse("float32: a sum may be larger than 2^40");
    }
    return [
      ceilDivide(sizes * factor + constant, den),
      ceilDivide(((errors * factor) << 32n) + roundings * 257n * total, den << 32n) + 1n,
      roundings,
    ];
  }

  function wholeErrors(words) {
    return (words.rounding ??= roundingErrors(words, null, null));
  }
  // For one sentence l and u are its exact values, rounded.
  function sentenceErrors(words, values) {
    const { network } = words;
    const boundsAt = (layer, at) => {
      const id = layer.ids[at];
      return roundedOut(values[id], values[id], network.denOf(words.layer(id)));
    };
    return roundingErrors(words, boundsAt, wholeErrors(words));
  }
  function leafErrors(leaf) {
    const boundsAt = (layer, at) => {
      const { low, high } = leaf.inputs.get(layer);
      return [low[at], high[at]];
    };
    return roundingErrors(leaf.words, boundsAt, wholeErrors(leaf.words));
  }

  // Is the margin of one class over another for sure at this level? `margin` is of winner over loser in exact numbers;
  // at float32 it must exceed the error bound of the whole space, or that of a closer look.
  function wins({ words, level, closer }, { num, den }, winner, loser) {
    if (level === "real") return num > 0n || (num === 0n && winner < loser);
    const { logits } = words.network;
    const exceeds = ({ e }) => num * ONE > (e[logits[winner]] + e[logits[loser]] + 1n) * den;
    return num > 0n && (exceeds(wholeErrors(words)) || exceeds(closer()));
  }
  // A function that is called once at most.
  function once(make) {
    let made = null;
    return () => (made ??= make());
  }

  // ---------------------------------------------------------------------------------------------------------------
  // Smooth networks (section 15). Numbers are integers in units of 2^-q.
  // ---------------------------------------------------------------------------------------------------------------

  // ---- Enclosures: the floor and the ceiling of the true 2^q f(x 2^-q), for integers x and q
  // A value is found with p bits behind the point and a bound on what it is off by, in units of 2^-p. If floors of both
  // ends agree they are the floor of the true value; else it is found again with more bits. That ends: but for x = 0 the
  // true values are irrational (exp, tanh and 1/(1 + exp(-x)) by Lindemann, erf by Siegel and Shidlovsky), and so their
  // ceiling is the floor + 1.

  // make(bits) gives low and high, around the true value times 2^(q + bits).
  function settled(make) {
    for (let bits = 24n; ; bits *= 2n) {
      const [low, high] = make(bits);
      const floor = low >> bits;
      if (floor === high >> bits) return floor;
    }
  }
  // What is made for a precision, kept.
  function kept(make) {
    const known = new Map();
    return (p) => {
      if (!known.has(p)) known.set(p, make(p));
      return known.get(p);
    };
  }
  // Both have an error below 2 for the following reasons. They are found with 32 bits more. Each term is rounded down
  // twice at most, and there are fewer than 2^12 terms before they are 0 (p stays below 2^11), each counted up to 18
  // times: less than 2^18 in all. The terms left out are less than the last one.
  //
  // ln 2 = 2 (1/3 + 1/(3 3^3) + 1/(5 3^5) + ...)
  const logarithmOfTwo = kept((p) => {
    let power = (2n << (p + 32n)) / 3n;
    let sum = 0n;
    for (let n = 1n; power > 0n; n += 2n) {
      sum += power / n;
      power /= 9n;
    }
    return sum >> 32n;
  });
  // pi = 16 (1/5 - 1/(3 5^3) + ...) - 4 (1/239 - 1/(3 239^3) + ...)
  const pi = kept((p) => {
    const arcTangent = (x) => {
      let power = (1n << (p + 32n)) / x;
      let sum = 0n;
      for (let n = 1n; power > 0n; n += 2n) {
        sum += n % 4n === 1n ? power / n : -(power / n);
        power /= x * x;
      }
      return sum;
    };
    return (16n * arcTangent(5n) - 4n * arcTangent(239n)) >> 32n;
  });
  // 2^p exp(a / 64) for a < 45 and 2^p exp(b / 4096) for b < 64, off by less than 1.1: each of fewer than 2^11 terms, with
  // 32 bits more, is off by less than 2 (what it is off by shrinks from term to term), and so is what is left out.
  const powerTables = kept((p) => [[64n, 45], [4096n, 64]].map(([divisor, size]) => range(size).map((a) => {
    let term = 1n << (p + 32n);
    let sum = 0n;
    for (let n = 1n; term > 0n; n++) {
      sum += term;
      term = (term * BigInt(a)) / (divisor * n);
    }
    return sum >> 32n;
  })));
  // exp(x 2^-q) = 2^n e 2^-p, where e is off by less than 2048. x 2^-q lies between -180 and 30 (q is at most 256).
  //
  // x 2^-q = n ln 2 + r, 0 <= r < ln 2; r is off by less than 2 |n| + 1 < 530 (ln 2 by less than 2, x by less than 1 where
  // p < q), so exp(r) by less than 2.01 530 < 1066. r = a/64 + b/4096 + t, t < 2^-12. exp(t) is
  // 1 + t (1 + t/2 (1 + t/3 (...))): each step is off by less than 2, and by 2^-12 of what the one before is off by; what
  // is left out is less than 1: less than 3.1 in all. The product of the tables is off by less than
  // 1.1 1.02 + 1.1 2.1 + 1 < 4.5, and with exp(t) by less than 4.5 1.01 + 3.1 2.1 + 1 < 13. That is 1079 in all.
  function powerOf(x, q, p) {
    const log = logarithmOfTwo(p);
    const scaledX = p >= q ? x << (p - q) : x >> (q - p);
    const n = floorDivide(scaledX, log);
    const r = scaledX - n * log;
    const [coarse, fine] = powerTables(p);
    const step = Number(r >> (p - 12n));
    const t = r - (BigInt(step) << (p - 12n));
    const one = 1n << p;
    let series = one;
    for (let i = (p + 11n) / 12n; i > 0n; i--) series = one + ((t * series) >> p) / i;
    return { n, e: (((coarse[step >> 6] * fine[step & 63]) >> p) * series) >> p };
  }
  const POWER_ERROR = 2048n;
  // exp(x 2^-q) for x <= 0, with p bits behind the point, off by less than POWER_ERROR + 1.
  function fallingPower(x, q, p) {
    const { n, e } = powerOf(x, q, p);
    return e >> -n;
  }
  // Is exp(x 2^-q) below 2^-bits for sure? 0.6932 is more than ln 2.
  const isFlat = (x, q, bits) => 10000n * x <= -6932n * bits << q;

  const EXACT_CURVES = {
    // exp. Of more than 28 it is above 2^40.
    1(x, q) {
      if (x === 0n) return [1n << q, 1n << q];
      if (x > 28n << q) refuse("exp of a number above 28");
      if (isFlat(x, q, q)) return [0n, 1n];
      const ahead = x > 0n ? 42n : 0n; // n is at most 41
      const floor = settled((bits) => {
        const p = q + bits + ahead;
        const { n, e } = powerOf(x, q, p);
        return [(e - POWER_ERROR) >> (ahead - n), ((e + POWER_ERROR) >> (ahead - n)) + 1n];
      });
      return [floor, floor + 1n];
    },
    // tanh(x) = (1 - e) / (1 + e), e = exp(-2 x), x > 0. Its slope over e is at most 2. 1 - tanh(x) < 2 e.
    2(x, q) {
      if (x === 0n) return [0n, 0n];
      const double = -2n * absolute(x);
      const floor = isFlat(double, q, q + 1n) ? (1n << q) - 1n : settled((bits) => {
        const p = q + bits;
        const one = 1n << p;
        const e = fallingPower(double, q, p);
        return around(((one - e) << p) / (one + e), 2n * (POWER_ERROR + 1n) + 1n);
      });
      return x > 0n ? [floor, floor + 1n] : [-floor - 1n, -floor];
    },
    // 1/(1 + exp(-x)) is e / (1 + e) for x < 0, e = exp(x), and 1 less that of -x for x > 0. Its slope over e is at most 1.
    3(x, q) {
      const one = 1n << q;
      if (x === 0n) return [one >> 1n, one >> 1n];
      const flipped = -absolute(x);
      const floor = isFlat(flipped, q, q) ? 0n : settled((bits) => {
        const p = q + bits;
        const e = fallingPower(flipped, q, p);
        return around((e << p) / ((1n << p) + e), POWER_ERROR + 2n);
      });
      return x < 0n ? [floor, floor + 1n] : [one - floor - 1n, one - floor];
    },
    // erf(x) = 2/sqrt(pi) exp(-x^2) (x + x (2 x^2)/3 + x (2 x^2)^2/(3 5) + ...), x > 0: no term is negative, so each
    // factor is rounded down for the low end and up for the high one. 1 - erf(x) <= exp(-x^2).
    4(x, q) {
      if (x === 0n) return [0n, 0n];
      const square = x * x;
      const floor = isFlat(-square, 2n * q, q) ? (1n << q) - 1n : settled((bits) => {
        // The sum is below exp(x^2) < 2^(3/2 x^2 + 1).
        const more = (3n * square >> (2n * q + 1n)) + 2n;
        const p = q + bits + more;
        const { n, e } = powerOf(-square, 2n * q, p);
        const up = (a, b) => ceilDivide(a, b);
        const ends = [[-1n, floorDivide], [1n, up]].map(([sign, divide]) => {
          const factor = divide(square << (p + 1n), 1n << (2n * q)); // 2 x^2
          let term = divide(absolute(x) << p, 1n << q);
          let sum = 0n;
          // From where terms are halved at least, what is left out is less than the last one.
          for (let i = 3n; term > 2n || 2n * factor > i << p; i += 2n) {
            spend(4);
            sum += term;
            term = divide(divide(term * factor, 1n << p), i);
          }
          if (sign > 0n) sum += 2n * term;
          const power = divide(e + sign * POWER_ERROR, 1n << -n);
          const root = squareRoot((4n << (3n * p)) / (pi(p) - 2n * sign) + (sign > 0n ? 1n : 0n)) + (sign > 0n ? 1n : 0n);
          return divide(divide(sum * power, 1n << p) * root, 1n << (p + more));
        });
        return ends;
      });
      return x > 0n ? [floor, floor + 1n] : [-floor - 1n, -floor];
    },
    // 1/x, of x on one side of 0.
    5(x, q) {
      const whole = 1n << (2n * q);
      return x > 0n ? [whole / x, ceilDivide(whole, x)] : [-ceilDivide(whole, -x), -(whole / -x)];
    },
    // sqrt(x) 2^q = sqrt(x 2^q 2^-q 2^q)
    6(x, q) {
      const square = x << q;
      const floor = squareRoot(square);
      return [floor, floor * floor === square ? floor : floor + 1n];
    },
  };
  const around = (value, error) => [value - error, value + error];

  const [EXP, TANH, SIGMOID, ERF, INVERSE, ROOT] = [1, 2, 3, 4, 5, 6];
  // 2/sqrt(pi) = ERF_SLOPE 2^-256, rounded as section 16.6 says.
  const ERF_SLOPE = 130657381209852114387528029350014196574164286124850014242073919076264802271585n;
  // D of section 16.6: less than 8 from the slope, in units of 2^-q.
  function slopeAt(number, x, q) {
    const one = 1n << q;
    const z = number === ERF || number >= INVERSE ? 0n : EXACT_CURVES[number](x, q)[0];
    if (number === EXP) return z;
    if (number === TANH) return one - ((z * z) >> q);
    if (number === SIGMOID) return (z * (one - z)) >> q;
    if (number === ERF) return (ERF_SLOPE * EXACT_CURVES[EXP](-((x * x) >> q), q)[0]) >> 256n;
    if (number === INVERSE) return -((1n << (3n * q)) / (x * x));
    return squareRoot((1n << (3n * q - 2n)) / x);
  }

  // ---- Exact sums of products
  // Where many rows share a long list, integers are cut into limbs below 2^21 in magnitude, which floats hold: sums of up
  // to 2048 products of two are below 2^53, so floats hold them too, and no rounding happens.

  const [LIMB, BLOCK] = [2 ** 21, 2048];
  function limbsOf(list) {
    const limbs = [];
    const digit = (place) => {
      while (limbs.length <= place) limbs.push(new Float64Array(list.length));
      return limbs[place];
    };
    for (let k = 0; k < list.length; k++) {
      const x = list[k];
      if (x === undefined || x === 0n) continue;
      spend(1);
      const sign = x < 0n ? -1 : 1;
      let rest = x < 0n ? -x : x;
      for (let place = 0; rest > 0n; place += 2) {
        const part = Number(BigInt.asUintN(42, rest));
        rest >>= 42n;
        const high = Math.floor(part / LIMB);
        digit(place)[k] = sign * (part - high * LIMB);
        if (high > 0) digit(place + 1)[k] = sign * high;
      }
    }
    return limbs;
  }
  // The sum over k of runs of matrix[at + k] vector[k], or of |matrix[at + k]| vector[k].
  function dot(matrix, at, vector, runs, isAbsolute) {
    let total = 0n;
    for (let i = 0; i < matrix.length; i++) {
      const w = matrix[i];
      for (let j = 0; j < vector.length; j++) {
        const x = vector[j];
        let part = 0n;
        for (const [from, to] of runs) {
          spend((to - from) >> 3);
          for (let start = from; start < to; start += BLOCK) {
            const end = Math.min(to, start + BLOCK);
            let sum = 0;
            if (isAbsolute) for (let k = start; k < end; k++) sum += Math.abs(w[at + k]) * x[k];
            else for (let k = start; k < end; k++) sum += w[at + k] * x[k];
            if (sum !== 0) part += BigInt(sum);
          }
        }
        if (part !== 0n) total += part << BigInt(21 * (i + j));
      }
    }
    return total;
  }

  // What an affine layer is worked out with, made once: its rows by list, and all its numbers over den: a sum over
  // 2 weightDen times `factor`, and biases. Weights that layers share are cut once.
  const cutWeights = new WeakMap();
  function sumsOfLayer(layer) {
    if (layer.sums !== undefined) return layer.sums;
    const { listOf, starts, weights, weightDen, bias, biasDen } = layer;
    const den = leastMultiple(2n * weightDen, biasDen);
    const lists = range(starts.length - 1).map((n) => ({ start: starts[n], width: starts[n + 1] - starts[n], rows: [] }));
    for (const i of layer.elements) lists[listOf[i]].rows.push(i);
    if (!cutWeights.has(weights)) {
      const magnitudes = mapped(weights, absolute);
      cutWeights.set(weights, {
        magnitudes, limbs: null,
        kinds: Uint8Array.from(magnitudes, (w) => (w === 0n ? 0 : w === weightDen ? 1 : 2)), // 1: added as it is, or taken away
        most: magnitudes.reduce(larger, 0n),
      });
    }
    const cut = cutWeights.get(weights);
    layer.sums = {
      lists, den, factor: den / (2n * weightDen), biases: mapped(bias, (b) => b * (den / biasDen)), cut,
      bits: isPowerOfTwo(den) ? BigInt(den.toString(2).length - 1) : null,
    };
    return layer.sums;
  }
  const downBy = ({ den, bits }, x) => (bits === null ? floorDivide(x, den) : x >> bits);
  const upBy = (sums, x) => -downBy(sums, -x);

  // A part of the sums of an affine layer: over the places of ids at which `isIn` (null: all). input: ends (and sizes) by
  // place of ids. Of row i: middle = sum w (l + u), spread = sum |w| (u - l), so the ends are (middle -+ spread) / 2. At
  // level kernel also sizes, errors, and what counts roundings. Lists that lack an end are passed over.
  function partOfSums(layer, input, isIn, isKernel) {
    const { lists, cut } = sumsOfLayer(layer);
    const { weights, weightsOf, weightStarts } = layer;
    const part = { middle: [], spread: [], size: [], error: [], used: [], straight: [], inner: [] };
    for (const { start, width, rows } of lists) {
      spend(width);
      const runs = [];
      for (let k = 0; k < width; k++) {
        if (isIn !== null && isIn[start + k] === 0) continue;
        if (runs.length > 0 && runs[runs.length - 1][1] === k) runs[runs.length - 1][1] = k + 1;
        else runs.push([k, k + 1]);
      }
      const places = runs.flatMap(([from, to]) => range(to - from).map((k) => from + k));
      if (places.length === 0 || places.some((k) => input.low[start + k] === undefined)) continue;
      const vectors = { sum: new Array(width), width: new Array(width), size: new Array(width), error: new Array(width) };
      for (const k of places) {
        const [l, u] = [input.low[start + k], input.high[start + k]];
        vectors.sum[k] = l + u;
        vectors.width[k] = u - l;
        if (!isKernel) continue;
        vectors.size[k] = input.size[start + k];
        vectors.error[k] = input.error[start + k];
      }
      let sumOver; // by name of a vector, start of the weights, and whether these count as positive
      if (rows.length >= 4 && places.length >= 16) {
        cut.limbs ??= limbsOf(weights);
        const limbs = {};
        sumOver = (name, at, isAbsolute) => dot(cut.limbs, at, (limbs[name] ??= limbsOf(vectors[name])), runs, isAbsolute);
      } else {
        sumOver = (name, at, isAbsolute) => {
          const [from, vector] = [isAbsolute ? cut.magnitudes : weights, vectors[name]];
          let sum = 0n;
          spend(places.length);
          for (const k of places) if (vector[k] !== 0n) sum += from[at + k] * vector[k];
          return sum;
        };
      }
      for (const i of rows) {
        const at = weightStarts[weightsOf[i]];
        part.middle[i] = sumOver("sum", at, false);
        part.spread[i] = sumOver("width", at, true);
        if (!isKernel) continue;
        part.size[i] = sumOver("size", at, true);
        part.error[i] = sumOver("error", at, true);
        [part.used[i], part.straight[i], part.inner[i]] = [0, 0, 0];
        spend(places.length);
        for (const k of places) {
          const kind = cut.kinds[at + k];
          if (kind === 0 || vectors.size[k] === 0n) continue;
          part.used[i] += 1;
          if (kind === 1) part.straight[i] += input.n[start + k];
          else part.inner[i] = Math.max(part.inner[i], input.n[start + k]);
        }
      }
    }
    return part;
  }

  // ---- The rules of the layers (sections 15.1 and 15.3) at one level and precision

  const emptyEnds = (isKernel) => (isKernel ? { low: [], high: [], size: [], n: [], error: [] } : { low: [], high: [] });

  class Smooth {
    constructor(words, level, precision) {
      this.words = words;
      this.network = words.network;
      this.isKernel = level === "kernel";
      this.q = BigInt(precision);
      this.limit = 1n << (40n + this.q);
      const { network } = this;
      const { num, den } = network.constants;
      this.constants = emptyEnds(this.isKernel);
      num.forEach((x, i) => this.put(this.constants, i, ...this.ends(x, den)));
      this.front = this.isKernel ? this.wholeSpace() : null;
      this.memory = new Map();
      this.remembered = 0;
    }
    // A number x / den, down and up.
    ends(x, den) {
      const scaledX = x << this.q;
      return [floorDivide(scaledX, den), ceilDivide(scaledX, den)];
    }
    // An interval without errors; size is the greater of -l and u.
    put(to, i, low, high) {
      to.low[i] = low;
      to.high[i] = high;
      if (this.isKernel) [to.size[i], to.n[i], to.error[i]] = [larger(-low, high), 0, 0n];
    }
    // Of an element that is affine in the words.
    putFront(to, i, id, [low, high]) {
      if (!this.isKernel) return this.put(to, i, low, high);
      const { size, n, error } = this.front;
      [to.low[i], to.high[i], to.size[i], to.n[i], to.error[i]] = [low - error[id], high + error[id], size[id], n[id], error[id]];
    }
    copy(to, i, from, at) {
      to.low[i] = from.low[at];
      to.high[i] = from.high[at];
      if (this.isKernel) [to.size[i], to.n[i], to.error[i]] = [from.size[at], from.n[at], from.error[at]];
    }
    // To what is there already.
    hull(to, i, from, at = i) {
      if (to.low[i] === undefined) return this.copy(to, i, from, at);
      to.low[i] = smaller(to.low[i], from.low[at]);
      to.high[i] = larger(to.high[i], from.high[at]);
      if (!this.isKernel) return;
      to.size[i] = larger(to.size[i], from.size[at]);
      to.n[i] = Math.max(to.n[i], from.n[at]);
      to.error[i] = larger(to.error[i], from.error[at]);
    }

    // Size, roundings and error of elements that are affine in the words, by id, over the whole space.
    wholeSpace() {
      const { network, words, q } = this;
      if (!network.canBeFloat) refuse("the model cannot carry kernel claims");
      const front = { size: [], n: [], error: [] };
      for (const id of range(network.constants.size)) [front.size[id], front.n[id], front.error[id]] = [this.constants.size[id], 0, 0n];
      for (const layer of network.back) if (layer.kind === "affine") this.checkWeights(layer);
      for (const layer of network.front) {
        if (layer.kind === "affine") {
          this.checkWeights(layer);
          const input = { low: [], high: [], size: [], n: [], error: [] };
          layer.ids.forEach((id, at) => {
            [input.low[at], input.high[at], input.size[at], input.n[at], input.error[at]] = [0n, 0n, front.size[id], front.n[id], front.error[id]];
          });
          this.checkTerms(layer, input);
          const part = partOfSums(layer, input, null, true);
          for (let i = 0; i < layer.size; i++) {
            const id = layer.first + i;
            ({ size: front.size[id], n: front.n[id], error: front.error[id] } = this.rounding(layer, i, [part]));
          }
        } else {
          for (let i = 0; i < layer.size; i++) {
            [front.size[layer.first + i], front.n[layer.first + i], front.error[layer.first + i]] = [embeddingSize(words, layer, i, q), 0, 0n];
          }
        }
        for (let i = 0; i < layer.size; i++) if (front.size[layer.first + i] >= this.limit) refuse("kernel: a number of 2^40 or more");
      }
      return front;
    }
    checkWeights(layer) {
      const { cut } = sumsOfLayer(layer);
      for (const i of layer.elements) {
        if (absolute(layer.bias[i]) > MOST * layer.biasDen) refuse("kernel: a bias is larger than 2^40");
        if (cut.most <= MOST * layer.weightDen) continue;
        const { start, end, at } = rowOf(layer, i);
        spend(end - start);
        for (let k = 0; k < end - start; k++) if (cut.magnitudes[at + k] > MOST * layer.weightDen) refuse("kernel: a weight is larger than 2^40");
      }
    }
    // Terms that are not multiplied by 0 must be small. Few are large, so these are looked for first.
    checkTerms(layer, { size }) {
      for (let at = 0; at < size.length; at++) {
        if (size[at] === undefined || size[at] <= this.limit) continue;
        for (const i of layer.elements) {
          const { start, end, at: first } = rowOf(layer, i);
          spend(1);
          if (at >= start && at < end && layer.weights[first + at - start] !== 0n) refuse("kernel: a term of a sum may be larger than 2^40");
        }
      }
    }
    // What widens row i of an affine layer, and its size, roundings and error.
    rounding(layer, i, parts) {
      const sums = sumsOfLayer(layer);
      const [total, errors] = ["size", "error"].map((name) => parts.reduce((all, part) => all + (part[name][i] ?? 0n), 0n) * 2n * sums.factor);
      const count = (name) => parts.reduce((all, part) => all + (part[name][i] ?? 0), 0);
      const n = count("used") + 3 + count("straight") + parts.reduce((most, part) => Math.max(most, part.inner[i] ?? 0), 0);
      if (n > 65280) refuse("kernel: a sum of too many terms");
      const size = total + (absolute(sums.biases[i]) << this.q);
      if (size > this.limit * sums.den) refuse("kernel: a sum may be larger than 2^40");
      const widening = ceilDivide(BigInt(n) * 257n * size, sums.den << 32n) + 1n;
      return { widening, size: upBy(sums, size), n, error: upBy(sums, errors) + widening };
    }

    // Elements of an affine layer from parts of its sums.
    affine(layer, elements, parts, to) {
      const sums = sumsOfLayer(layer);
      spend(8 * elements.length);
      for (const i of elements) {
        let [middle, spread] = [0n, 0n];
        for (const part of parts) {
          middle += part.middle[i] ?? 0n;
          spread += part.spread[i] ?? 0n;
        }
        const bias = sums.biases[i] << this.q;
        let low = downBy(sums, (middle - spread) * sums.factor + bias);
        let high = upBy(sums, (middle + spread) * sums.factor + bias);
        if (this.isKernel) {
          const { widening, size, n, error } = this.rounding(layer, i, parts);
          low -= widening;
          high += widening;
          [to.size[i], to.n[i], to.error[i]] = [size, n, error];
        }
        [to.low[i], to.high[i]] = [low, high];
        this.checkLimit(layer, i, low, high);
      }
    }
    // Elements of another layer; input: by place of ids.
    other(layer, elements, input, to) {
      const { low, high } = input;
      spend(20 * elements.length);
      for (const i of elements) {
        if (this.isKernel) spend(20);
        let [l, u, more] = this[layer.kind](layer, i, low, high);
        if (this.isKernel) {
          l -= more;
          u += more;
        }
        this.put(to, i, l, u);
        this.checkLimit(layer, i, l, u);
      }
    }
    // What exp reads may be larger: exp looks itself.
    checkLimit({ kind, first }, i, low, high) {
      const { isReadByExp, isLifted } = this.network;
      const isSunk = kind === "affine" && isLifted[first + i] === 0;
      const isWithin = high < this.limit && (low > -this.limit || isSunk);
      if (!isWithin && isReadByExp[first + i] === 0) refuse("an interval with a number of 2^40 or more");
    }
    // Of the greatest of a line, or a bound on it.
    checkGreatest(x) {
      if (x <= -this.limit) refuse("a maximum of -2^40 or less");
    }

    // By kind: the ends, and at level kernel what they are widened by.
    rectifier({ alpha: { num, den } }, i, low, high) {
      const [l, u] = [low[i], high[i]];
      const more = this.isKernel && num !== 0n ? ceilDivide(4n * 257n * larger(-l, u), 1n << 32n) + 1n : 0n;
      return [l >= 0n ? l : floorDivide(l * num, den), u >= 0n ? u : ceilDivide(u * num, den), more];
    }
    maximum(layer, i, low, high) {
      return [greatestOf(layer, i, (at) => low[at]), greatestOf(layer, i, (at) => high[at]), 0n];
    }
    product({ ids }, i, low, high) {
      const [a, b, c, d] = [low[2 * i], high[2 * i], low[2 * i + 1], high[2 * i + 1]];
      let ends = [a * c, a * d, b * c, b * d];
      if (ids[2 * i] === ids[2 * i + 1]) ends = a < 0n && b > 0n ? [0n, a * a, b * b] : [a * a, b * b];
      const [l, u] = [ends.reduce(smaller) >> this.q, -(-ends.reduce(larger) >> this.q)];
      return [l, u, this.isKernel ? ceilDivide(2n * 257n * larger(-l, u), 1n << 32n) + 1n : 0n];
    }
    curve({ curve: number }, i, low, high) {
      const { q } = this;
      let [l, u] = [low[i], high[i]];
      if (number === CURVES.Reciprocal) {
        if (l <= 0n && u >= 0n) refuse("1/x of an interval that holds 0");
        [l, u] = [u, l];
      }
      if (number === CURVES.Sqrt && l < 0n) refuse("sqrt of an interval with numbers below 0");
      [l, u] = [EXACT_CURVES[number](l, q)[0], EXACT_CURVES[number](u, q)[1]];
      let more = 0n;
      if (this.isKernel) {
        const p = larger(-l, u);
        if (number === CURVES.Exp) more = ceilDivide(p, 1n << 22n) + 1n;
        else if (number === CURVES.Reciprocal || number === CURVES.Sqrt) more = ceilDivide(p, 1n << 23n) + 1n;
        else more = ceilDivide(1n << q, 1n << 21n) + 1n;
      }
      return [l, u, more];
    }

    // Elements of a layer, and what they read: put(to, at, id) gives the interval of an element to a place of `to`.
    rule(layer, elements, isRead, put) {
      const [input, to] = [emptyEnds(this.isKernel), emptyEnds(this.isKernel)];
      layer.ids.forEach((id, at) => isRead[at] === 1 && put(input, at, id));
      if (layer.kind === "affine") {
        if (this.isKernel) this.checkTerms(layer, input);
        this.affine(layer, elements, [partOfSums(layer, input, isRead, this.isKernel)], to);
      } else {
        this.other(layer, elements, input, to);
      }
      return { input, to };
    }

    // ---- One sentence: how its intervals are put (see rule), of all layers behind the border by number. What layers computed from a
    // few words hold is remembered by the swaps of these: sentences share much.
    sentence(border, swaps) {
      const { network, words } = this;
      const stores = [];
      const memories = new Map();
      for (const layer of network.back) {
        lookAtClock();
        const set = words.reach.ofLayer[layer.number];
        if (!memories.has(set)) {
          const inside = words.reach.sets[set];
          const key = `${set}:${swaps.filter(([word]) => inside.has(word)).join(";")}`;
          if (this.remembered > 2 ** 20) {
            this.memory.clear();
            this.remembered = 0;
          }
          if (!this.memory.has(key)) this.memory.set(key, new Map());
          memories.set(set, this.memory.get(key));
        }
        const memory = memories.get(set);
        if (!memory.has(layer)) {
          memory.set(layer, this.rule(layer, layer.elements, layer.isRead, (...place) => this.endsIn(...place, border, stores)).to);
          this.remembered += layer.elements.length;
        }
        stores[layer.number] = memory.get(layer);
      }
      return (...place) => this.endsIn(...place, border, stores);
    }
    endsIn(to, at, id, border, stores) {
      const { network } = this;
      const number = network.layerOf[id];
      const layer = network.layers[number];
      if (layer.kind === "constant") this.copy(to, at, this.constants, id - layer.first);
      else if (layer.front) this.putFront(to, at, id, this.ends(border[id], network.frontDen));
      else this.copy(to, at, stores[number], id - layer.first);
    }

    // Is `winner` before `loser` for certain (section 15.2)? put: see rule.
    wins(winner, loser, put) {
      const { network, q } = this;
      const endsOf = (id) => this.endsBy(put, id);
      const { terms, den, constant } = marginOf(network, winner, loser);
      let least = 0n;
      for (const [id, x] of terms) {
        const { low, high } = endsOf(id);
        least += x * (x > 0n ? low : high);
      }
      // Over den constant.den.
      const margin = least * constant.den + ((constant.num * den) << q);
      if (!this.isKernel) return margin > 0n || (margin === 0n && winner < loser);
      return margin > this.lost(winner, loser, put) * den * constant.den;
    }
    endsBy(put, id) {
      const to = emptyEnds(this.isKernel);
      put(to, 0, id);
      return { low: to.low[0], high: to.high[0], error: this.isKernel ? to.error[0] : 0n };
    }
    // E of section 15.2.
    lost(winner, loser, put) {
      const { logits } = this.network;
      return this.endsBy(put, logits[winner]).error + this.endsBy(put, logits[loser]).error + 1n;
    }
  }

  // z_winner - z_loser, down to what is affine in the words and what other layers hold.
  function marginOf(network, winner, loser) {
    const key = `${winner} ${loser}`;
    if (!network.margins.has(key)) {
      const { logits, layers } = network;
      const sum = new Combination(network, [[logits[winner], 1n], [logits[loser], -1n]]);
      try {
        for (let number = layers.length - 1; number > 0; number--) {
          if (layers[number].kind === "affine" && !layers[number].front) sum.passLinear(layers[number], number);
        }
        network.margins.set(key, { terms: layers.flatMap((_, number) => sum.take(number)), den: sum.den, constant: sum.constant });
      } finally {
        sum.finish();
      }
    }
    return network.margins.get(key);
  }

  // Which words each element is computed from, also with weight 0: sets of words are numbered. Words of one option do
  // not count.
  function findReach({ network, wordAt, sizes }) {
    const { layers, layerOf, size } = network;
    const sets = [new Set()];
    const numbers = new Map([["", 0]]);
    const unions = new Map();
    const numberOf = (words) => {
      const key = words.join();
      if (!numbers.has(key)) {
        numbers.set(key, sets.length);
        sets.push(new Set(words));
      }
      return numbers.get(key);
    };
    const union = (a, b) => {
      if (a === b || b === 0) return a;
      if (a === 0) return b;
      const key = Math.min(a, b) * 2 ** 26 + Math.max(a, b);
      if (!unions.has(key)) {
        spend(sets[a].size + sets[b].size);
        unions.set(key, numberOf([...new Set([...sets[a], ...sets[b]])].sort((x, y) => x - y)));
      }
      return unions.get(key);
    };
    const of = new Int32Array(size);
    const ofPlaces = (ids, start, end) => {
      let set = 0;
      spend(end - start);
      for (let at = start; at < end; at++) set = union(set, of[ids[at]]);
      return set;
    };
    for (const layer of layers) {
      const { kind, first, ids } = layer;
      const lists = kind === "affine" ? range(layer.starts.length - 1).map((n) => ofPlaces(ids, layer.starts[n], layer.starts[n + 1])) : null;
      for (let i = 0; i < layer.size; i++) {
        let set = 0;
        if (kind === "embed") {
          const word = wordAt[layer.positions[Math.floor(i / layer.width)]];
          set = word >= 0 && sizes[word] > 1 ? numberOf([word]) : 0;
        } else if (kind === "affine") {
          set = lists[layer.listOf[i]];
        } else if (kind !== "constant") {
          set = ofPlaces(ids, ...placesOf(layer, i));
        }
        of[first + i] = set;
      }
    }
    const ofLayer = layers.map(({ first, size: count }) => {
      let set = 0;
      for (let id = first; id < first + count; id++) set = union(set, of[id]);
      return set;
    });
    return { sets, of, ofLayer, layerOf };
  }

  // ---- Boxes (section 15.4)
  // A budget of more swaps than words is as good as one of so many: of a layer B_j is kept for j up to `top`. Of an element
  // B_j is none for j below `from`, and only for these (by induction over the rules), and so it is with C_(j,o).

  class Boxes {
    constructor(smooth, plan, segments) {
      this.smooth = smooth;
      this.plan = plan;
      const { layers } = smooth.network;
      const { reach } = smooth.words;
      this.segmentOf = new Array(layers.length).fill(null);
      for (const segment of segments) {
        for (let number = segment.first; number < segment.end; number++) this.segmentOf[number + 1] = segment;
      }
      // Of each set of words: those that count in this region, and how many of them are forced.
      this.active = reach.sets.map((set) => [...set].filter((word) => plan.placeOf[word] >= 0));
      this.forced = this.active.map((words) => words.filter((word) => plan.isForced[plan.placeOf[word]] === 1).length);
      this.stores = new Array(layers.length); // of layers behind the border: top, from, and by j the intervals
      this.known = new Map(); // of elements of the border: by j
      let last = null;
      let held = []; // stores of the last segment, whose intervals by option nobody else reads
      for (const layer of smooth.network.back) {
        lookAtClock();
        const segment = this.segmentOf[layer.number];
        if (segment !== last) {
          for (const store of held) store.chosen = null;
          held = [];
        }
        last = segment;
        this.pass(layer);
        if (segment !== null) held.push(this.stores[layer.number]);
      }
    }
    countOf(id) { return this.active[this.smooth.words.reach.of[id]].length; }
    has(id, word) { return this.active[this.smooth.words.reach.of[id]].includes(word); }
    fromOf(id) {
      const { network, words } = this.smooth;
      const layer = network.layers[network.layerOf[id]];
      if (layer.kind === "constant") return 0;
      return layer.front ? this.forced[words.reach.of[id]] : this.stores[layer.number].from[id - layer.first];
    }

    // B_j of an element, to a place of `to`. It must not be none.
    box(to, at, id, j) {
      const { smooth } = this;
      const { network } = smooth;
      const layer = network.layers[network.layerOf[id]];
      if (layer.kind === "constant") return smooth.copy(to, at, smooth.constants, id - layer.first);
      if (!layer.front) {
        const { by, top } = this.stores[layer.number];
        return smooth.copy(to, at, by[Math.min(j, top)], id - layer.first);
      }
      const most = Math.min(j, this.countOf(id));
      if (!this.known.has(id)) this.known.set(id, []);
      const known = this.known.get(id);
      known[most] ??= this.extremes(id, most);
      return smooth.putFront(to, at, id, known[most]);
    }
    extremes(id, j) {
      const { plan, smooth } = this;
      const { words, network } = smooth;
      const free = j - this.forced[words.reach.of[id]];
      const [gains, losses] = [[], []];
      let [low, high] = [words.original[id], words.original[id]];
      for (const [word, slot] of words.slots[id]) {
        const place = plan.placeOf[word];
        if (place < 0) continue;
        const { most, least } = rangeOf(slot, plan.places[place].cell);
        if (plan.isForced[place] === 1) {
          low += least;
          high += most;
        } else {
          if (most > 0n) gains.push(most);
          if (least < 0n) losses.push(-least);
        }
      }
      for (const gain of greatest(gains, free)) high += gain;
      for (const loss of greatest(losses, free)) low -= loss;
      return [smooth.ends(low, network.frontDen)[0], smooth.ends(high, network.frontDen)[1]];
    }

    // All B_j of a layer.
    pass(layer) {
      const { smooth, plan, active } = this;
      const { words } = smooth;
      const top = Math.min(plan.most, active[words.reach.ofLayer[layer.number]].length);
      const store = { top, from: new Int32Array(layer.size), by: range(top + 1).map(() => emptyEnds(smooth.isKernel)), chosen: null };
      this.stores[layer.number] = store;
      const segment = this.segmentOf[layer.number];
      const isInside = (i) => segment !== null && this.has(layer.first + i, segment.word);
      const [outside, inside] = [false, true].map((side) => layer.elements.filter((i) => isInside(i) === side));
      if (outside.length > 0) this.passOutside(layer, store, outside);
      if (inside.length > 0) this.passInside(layer, store, inside, segment);
    }
    // The greatest of `of` over the places that each element reads, by element; lists are looked at once.
    greatestFrom(layer, elements, lowest, of) {
      const known = new Map();
      return elements.map((i) => {
        const key = layer.kind === "affine" ? layer.listOf[i] : i;
        if (!known.has(key)) {
          let most = lowest;
          const [start, end] = placesOf(layer, i);
          spend(end - start);
          for (let at = start; at < end; at++) most = Math.max(most, of[at]);
          known.set(key, most);
        }
        return known.get(key);
      });
    }
    passOutside(layer, store, elements) {
      const { smooth } = this;
      const isRead = placesRead(layer, elements);
      const froms = Int32Array.from(layer.ids, (id, at) => (isRead[at] === 1 ? this.fromOf(id) : 0));
      this.greatestFrom(layer, elements, 0, froms).forEach((from, n) => (store.from[elements[n]] = from));
      for (let j = 0; j <= store.top; j++) {
        const input = emptyEnds(smooth.isKernel);
        layer.ids.forEach((id, at) => {
          if (isRead[at] === 1 && froms[at] <= j) this.box(input, at, id, j);
        });
        const there = elements.filter((i) => store.from[i] <= j);
        if (layer.kind === "affine") this.sum(layer, there, [this.part(layer, input, isRead)], store.by[j]);
        else smooth.other(layer, there, input, store.by[j]);
      }
    }
    part(layer, input, isIn) {
      const { smooth } = this;
      if (smooth.isKernel) smooth.checkTerms(layer, input);
      return partOfSums(layer, input, isIn, smooth.isKernel);
    }
    sum(layer, elements, parts, to) {
      this.smooth.affine(layer, elements, parts, to);
    }

    // By options of the word of the segment. What is read is of one of three kinds: boxes with what swaps are left,
    // elements of the segment with the same option, and what is affine in this word alone.
    passInside(layer, store, elements, segment) {
      const { smooth, plan } = this;
      const { network, words } = smooth;
      const { word } = segment;
      const isRead = placesRead(layer, elements);
      const [isBox, isChosen, isExact] = range(3).map(() => new Uint8Array(layer.ids.length));
      layer.ids.forEach((id, at) => {
        if (isRead[at] === 0) return;
        const source = network.layers[network.layerOf[id]];
        if (!this.has(id, word)) isBox[at] = 1;
        else if (!source.front && this.segmentOf[source.number] === segment) isChosen[at] = 1;
        else if (source.front && this.countOf(id) === 1) isExact[at] = 1;
        else refuse("a segment reads what depends on its word, and on others, from outside");
      });
      const isExactly = (which, at) => which[at] === 1;
      const { chosen: options } = plan.places[plan.placeOf[word]].cell;
      const fromBox = Int32Array.from(layer.ids, (id, at) => (isExactly(isBox, at) ? this.fromOf(id) : 0));
      const boxParts = [];
      store.chosen = new Map();
      for (const i of elements) store.from[i] = 2 ** 31 - 1;
      for (const option of options) {
        const swapped = option === 0 ? 0 : 1;
        const sourceOf = (id) => {
          const source = network.layers[network.layerOf[id]];
          const { top, chosen } = this.stores[source.number];
          return { ...chosen.get(option), top, i: id - source.first };
        };
        const froms = Int32Array.from(layer.ids, (id, at) => {
          if (isExactly(isBox, at)) return swapped + fromBox[at];
          if (!isExactly(isChosen, at)) return 0;
          const { from, i } = sourceOf(id);
          return from[i];
        });
        const chosen = { from: new Int32Array(layer.size), by: [] };
        store.chosen.set(option, chosen);
        this.greatestFrom(layer, elements, swapped, froms).forEach((from, n) => {
          chosen.from[elements[n]] = from;
          store.from[elements[n]] = Math.min(store.from[elements[n]], from);
        });
        const putBox = (input, at, j) => froms[at] <= j && this.box(input, at, layer.ids[at], j - swapped);
        const putChosen = (input, at, j) => {
          const { from, by, top, i } = sourceOf(layer.ids[at]);
          if (from[i] <= j) smooth.copy(input, at, by[Math.min(j, top)], i);
        };
        const putExact = (input, at) => {
          const id = layer.ids[at];
          const more = option === 0 ? 0n : (words.slots[id].get(word)?.amounts[option - 1] ?? 0n);
          smooth.putFront(input, at, id, smooth.ends(words.original[id] + more, network.frontDen));
        };
        const gathered = (pairs, j) => {
          const input = emptyEnds(smooth.isKernel);
          for (const [which, put] of pairs) which.forEach((is, at) => is === 1 && put(input, at, j));
          return input;
        };
        let exactPart = null;
        for (let j = swapped; j <= store.top; j++) {
          lookAtClock();
          const there = elements.filter((i) => chosen.from[i] <= j);
          const to = emptyEnds(smooth.isKernel);
          chosen.by[j] = to;
          if (layer.kind === "affine") {
            // What is left to swap says all about boxes, and the option about exact numbers.
            boxParts[j - swapped] ??= this.part(layer, gathered([[isBox, putBox]], j), isBox);
            exactPart ??= this.part(layer, gathered([[isExact, putExact]], j), isExact);
            this.sum(layer, there, [boxParts[j - swapped], exactPart, this.part(layer, gathered([[isChosen, putChosen]], j), isChosen)], to);
          } else {
            smooth.other(layer, there, gathered([[isBox, putBox], [isExact, putExact], [isChosen, putChosen]], j), to);
          }
          for (const i of there) smooth.hull(store.by[j], i, to);
        }
      }
    }
  }

  // Do boxes show that in the whole region, which holds a sentence, the label stays before all these rivals?
  function boxesShow({ plan }, smooth, segments, label, rivals) {
    const boxes = new Boxes(smooth, plan, segments);
    return rivals.every((rival) => smooth.wins(label, rival, (to, at, id) => boxes.box(to, at, id, plan.most)));
  }

  // ---- The leaf `attention` (section 17)
  // Numbers are integers in units of 2^-q where nothing else is said. What a word may be is named by its place in the
  // options of the region, 0 is its reference.

  // What the words can be: all that the region allows (given === null), or with one word at one place. `room`: how many of
  // the words that are not free may move. Moves are numbered, those of a word one after the other.
  class View {
    constructor(leaf, given) {
      this.leaf = leaf;
      this.given = given;
      const { options, isFree } = leaf;
      this.room = leaf.room - (given !== null && !isFree[given.word] && given.place > 0 ? 1 : 0);
      this.moving = []; // moving words: their first move, and the one behind the last
      this.slotOf = new Map();
      this.moves = 0;
      options.forEach(({ length }, word) => {
        if (length === 1 || word === given?.word || (this.room === 0 && !isFree[word])) return;
        const slot = { word, first: this.moves, end: this.moves + length - 1, isFree: isFree[word] };
        this.moving.push(slot);
        this.slotOf.set(word, slot);
        this.moves = slot.end;
      });
      const free = this.moving.filter((slot) => slot.isFree).length;
      this.most = free + Math.min(this.room, this.moving.length - free); // b
      this.reached = new Map(); // by number of a set of words: those that move
      this.needed = new Set();
      this.meanings = new Map();
      this.forms = new Map();
      this.ranges = new Map();
      this.symbols = [];
      this.size = 0n; // L
      this.turned = new Map(); // by element: what is known of it as a divisor
    }
    get lost() { return (this.size >> this.leaf.q) + BigInt(this.most) + 2n; }
    wordsOf(id) {
      const set = this.leaf.words.reach.of[id];
      if (!this.reached.has(set)) {
        this.reached.set(set, [...this.leaf.words.reach.sets[set]].filter((word) => this.slotOf.has(word)).sort((a, b) => a - b));
      }
      return this.reached.get(set);
    }

    // ---- Sums over sentences

    // The least sum of what moves add; and of each move, the same beside it.
    gains(g) {
      return this.moving.map(({ first, end }) => {
        let least = 0n;
        for (let m = first; m < end; m++) if (g[m] < least) least = g[m];
        return least;
      });
    }
    least(g) {
      const gains = this.gains(g);
      let total = 0n;
      const others = [];
      spend(this.moves);
      gains.forEach((gain, at) => {
        if (this.moving[at].isFree) total += gain;
        else if (gain < 0n) others.push(-gain);
      });
      for (const gain of greatest(others, this.room)) total -= gain;
      return total;
    }
    leastBeside(g) {
      const gains = this.gains(g);
      const result = new Array(this.moves);
      let free = 0n;
      const others = [];
      spend(2 * this.moves);
      gains.forEach((gain, at) => {
        if (this.moving[at].isFree) free += gain;
        else if (gain < 0n) others.push(-gain);
      });
      const top = greatest(others, this.room);
      const all = top.reduce((a, b) => a + b, 0n);
      const last = top.length === this.room && this.room > 0 ? top[this.room - 1] : 0n;
      this.moving.forEach(({ first, end, isFree }, at) => {
        const gain = -gains[at];
        // One that is not free takes a place of its own: either its own is given up, or the least of those that were taken.
        const beside = isFree ? free + gain - all : free - all + larger(gain, last);
        result.fill(beside, first, end);
      });
      return result;
    }
    greatest(g) { return -this.least(g.map((x) => -x)); }
    greatestBeside(g) { return this.leastBeside(g.map((x) => -x)).map((x) => -x); }

    // ---- What elements are (17.2)

    // Finds what these elements are, and all that they need, in order.
    find(ids) {
      const waiting = new Heap();
      const fresh = [];
      const ask = (id) => {
        if (this.needed.has(id)) return;
        this.needed.add(id);
        waiting.push(id);
      };
      ids.forEach(ask);
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
        spend(1);
        fresh.push(id);
        if (!this.isOwn(id)) this.readsOf(id).forEach(ask);
      }
      for (const id of fresh.reverse()) this.meanings.set(id, this.meaningOf(id));
    }
    isOwn(id) { return this.given === null && this.leaf.own.has(id); }
    // Is it a sum because few words reach it, or is it affine in the words?
    isPlain(id) { return this.wordsOf(id).length <= 1 || this.leaf.layer(id).front; }
    readsOf(id) {
      const layer = this.leaf.layer(id);
      if (layer.front || layer.kind === "constant") return [];
      if (this.isPlain(id) && this.leaf.sums.get(id)?.has(this.keyOf(id))) return [];
      if (!this.isPlain(id)) {
        const power = this.powerOf(id);
        if (power !== null) return [power.s, ...this.leaf.reads(power.m)];
      }
      return this.leaf.reads(id);
    }
    // exp(s - m)
    powerOf(id) {
      const { leaf } = this;
      const layer = leaf.layer(id);
      if (layer.kind !== "curve" || layer.curve !== CURVES.Exp) return null;
      const [read] = leaf.reads(id);
      const difference = leaf.layer(read);
      if (difference.kind !== "affine" || difference.front) return null;
      const i = read - difference.first;
      const { start, end, at } = rowOf(difference, i);
      const { ids, weights, weightDen, bias } = difference;
      if (end - start !== 2 || weights[at] !== weightDen || weights[at + 1] !== -weightDen || bias[i] !== 0n) return null;
      const [s, m] = [ids[start], ids[start + 1]];
      if (leaf.layer(m).kind !== "maximum") return null;
      const few = (other) => this.wordsOf(other).length <= 1;
      if (!few(s)) return null;
      if (!leaf.reads(m).every(few)) refuse("an attention leaf takes powers less a maximum of what several words move");
      return { s, m };
    }

    meaningOf(id) {
      if (this.isPlain(id)) return this.plainSum(id);
      if (this.isOwn(id)) return { kind: "own" };
      const layer = this.leaf.layer(id);
      const power = this.powerOf(id);
      if (power !== null) return this.power(power);
      const read = this.leaf.reads(id).map((other) => this.meanings.get(other));
      const i = id - layer.first;
      if (layer.kind === "affine") {
        const isUnbiased = layer.bias[i] === 0n;
        const [{ kind, shift, over }] = read;
        if (kind === "sum" && read.every((other) => other.kind === "sum" && other.shift === shift) && (shift === null || isUnbiased)) {
          return { ...this.weighted(layer, i, read), shift };
        }
        if (kind === "quotient" && isUnbiased && read.every((other) => other.kind === "quotient" && other.over === over)) {
          return { kind: "quotient", over, sum: { ...this.weighted(layer, i, read.map((other) => other.sum)), shift: read[0].sum.shift } };
        }
      }
      if (layer.kind === "curve" && layer.curve === CURVES.Reciprocal && read[0].kind === "sum") {
        return { kind: "opened", over: this.leaf.reads(id)[0], shift: read[0].shift };
      }
      if (layer.kind === "product") {
        for (const [x, y] of [read, [read[1], read[0]]]) {
          if (x.kind === "sum" && y.kind === "opened" && x.shift === y.shift) return { kind: "quotient", over: y.over, sum: x };
          if (x.kind === "quotient" && y.kind === "sum" && y.shift === null) {
            const sum = productOfSums(x.sum, y, this.leaf.q);
            if (sum !== null) return { kind: "quotient", over: x.over, sum: { ...sum, shift: x.sum.shift } };
          }
        }
      }
      this.forms.set(id, this.ruled(layer, i));
      return { kind: "form" };
    }

    // What is computed from one word that moves at most, or is affine in the words. Views share it: it depends on the
    // word that is given, if that reaches it, and on whether others stand still.
    keyOf(id) {
      const { given, leaf } = this;
      const reaching = given !== null && leaf.words.reach.sets[leaf.words.reach.of[id]].has(given.word);
      return 2 * (reaching ? 1 + leaf.keys[given.word] + given.place : 0) + (this.room === 0 ? 1 : 0);
    }
    plainSum(id) {
      const { sums } = this.leaf;
      if (!sums.has(id)) sums.set(id, new Map());
      const known = sums.get(id);
      const key = this.keyOf(id);
      if (!known.has(key)) known.set(key, this.leaf.layer(id).front ? this.frontSum(id) : this.intervals(id));
      return known.get(key);
    }
    placeOf(word) { return this.given?.word === word ? this.given.place : 0; }
    frontSum(id) {
      const { words, network, smooth, options } = this.leaf;
      const added = (word, place) => {
        const option = options[word][place];
        return option === 0 ? 0n : (words.slots[id].get(word)?.amounts[option - 1] ?? 0n);
      };
      const moving = this.wordsOf(id);
      let fixed = words.original[id];
      for (const word of words.slots[id].keys()) if (!moving.includes(word)) fixed += added(word, this.placeOf(word));
      const apart = moving.length === 1 ? fixed : 0n;
      const parts = new Map();
      for (const word of moving) {
        spend(options[word].length);
        parts.set(word, endsList(options[word].map((_, place) => smooth.ends(apart + added(word, place), network.frontDen))));
      }
      const [low, high] = moving.length === 1 ? [0n, 0n] : smooth.ends(fixed, network.frontDen);
      return { kind: "sum", low, high, parts, shift: null };
    }
    intervals(id) {
      const { leaf } = this;
      const layer = leaf.layer(id);
      const i = id - layer.first;
      const [word] = this.wordsOf(id);
      if (layer.kind === "constant") {
        const { low, high } = leaf.smooth.constants;
        return { kind: "sum", low: low[i], high: high[i], parts: new Map(), shift: null };
      }
      const read = leaf.reads(id).map((other) => this.meanings.get(other) ?? this.plainSum(other));
      const at = (place) => leaf.interval(layer, i, read.map(({ low, high, parts }) => {
        const part = parts.get(word);
        return part === undefined ? [low, high] : [part.low[place], part.high[place]];
      }));
      if (word === undefined) {
        const [low, high] = at(0);
        return { kind: "sum", low, high, parts: new Map(), shift: null };
      }
      return { kind: "sum", low: 0n, high: 0n, parts: new Map([[word, endsList(leaf.options[word].map((_, place) => at(place)))]]), shift: null };
    }
    power({ s, m }) {
      const { leaf } = this;
      const { q } = leaf;
      const top = leaf.reads(m).map((id) => this.meanings.get(id)).flatMap(({ high, parts }) => {
        const [part] = parts.values();
        return part === undefined ? [high] : part.high;
      }).reduce(larger);
      leaf.smooth.checkGreatest(top);
      const { low, high, parts } = this.meanings.get(s);
      const ends = (l, u) => [leaf.curve(CURVES.Exp, l - top)[0], leaf.curve(CURVES.Exp, u - top)[1]];
      const [word] = parts.keys();
      if (word === undefined) {
        const [l, u] = ends(low, high);
        return { kind: "sum", low: l, high: u, parts: new Map(), shift: m };
      }
      const part = parts.get(word);
      return { kind: "sum", low: 0n, high: 0n, parts: new Map([[word, endsList(part.low.map((l, place) => ends(l, part.high[place])))]]), shift: m };
    }
    // The sum of sums, word by word.
    weighted(layer, i, sums) {
      const { factor, biases, ...cut } = sumsOfLayer(layer);
      const { at } = rowOf(layer, i);
      let [low, high] = [0n, 0n];
      const parts = new Map();
      sums.forEach((sum, k) => {
        const w = layer.weights[at + k] * factor * 2n;
        low += w * (w > 0n ? sum.low : sum.high);
        high += w * (w > 0n ? sum.high : sum.low);
        for (const [word, part] of sum.parts) {
          const count = part.low.length;
          spend(2 * count);
          if (!parts.has(word)) parts.set(word, { low: new Array(count).fill(0n), high: new Array(count).fill(0n) });
          const to = parts.get(word);
          const [lows, highs] = w > 0n ? [part.low, part.high] : [part.high, part.low];
          for (let place = 0; place < count; place++) {
            to.low[place] += w * lows[place];
            to.high[place] += w * highs[place];
          }
        }
      });
      for (const part of parts.values()) {
        part.low = part.low.map((x) => downBy(cut, x));
        part.high = part.high.map((x) => upBy(cut, x));
      }
      const bias = biases[i] << this.leaf.q;
      return { kind: "sum", low: downBy(cut, low + bias), high: upBy(cut, high + bias), parts };
    }

    // ---- Forms (17.3): { c, g: by move, a: by symbol, e }

    formOf(id) {
      if (!this.forms.has(id)) {
        const meaning = this.meanings.get(id);
        let form = null;
        if (meaning.kind === "own") form = this.ownForm(id);
        else if (meaning.kind === "quotient") form = this.quotientForm(meaning.sum, meaning.over);
        else if (meaning.kind === "sum" && meaning.shift === null) form = this.sumForm(meaning);
        else refuse("an attention leaf reads a power, or an opened divisor, as it does not fit");
        this.forms.set(id, form);
      }
      return this.forms.get(id);
    }
    newSymbol(symbol, size) {
      this.symbols.push(symbol);
      this.size += size;
      return this.symbols.length - 1;
    }
    noise(n, a) {
      const symbol = this.newSymbol({ n, over: null }, this.greatest(n));
      a[symbol] = 1n << this.leaf.q;
    }
    // A sum at the references, and what moves change.
    flat({ low, high, parts }) {
      const lows = new Array(this.moves).fill(0n);
      const highs = new Array(this.moves).fill(0n);
      let [l, u, least, width] = [low, high, low, 0n];
      for (const [word, part] of parts) {
        const { first } = this.slotOf.get(word);
        spend(part.low.length);
        l += part.low[0];
        u += part.high[0];
        least += part.low.reduce(smaller);
        part.low.forEach((x, place) => {
          width = larger(width, part.high[place] - x);
          if (place === 0) return;
          lows[first + place - 1] = x - part.low[0];
          highs[first + place - 1] = part.high[place] - part.high[0];
        });
      }
      return { low: l, high: u, lows, highs, least, width };
    }
    divisor(id) {
      if (!this.turned.has(id)) {
        const flat = this.flat(this.meanings.get(id));
        const { low, high, lows, highs, least } = flat;
        if (least <= 0n) refuse("an attention leaf divides by what may be 0");
        const at = lows.map((x) => low + x);
        const [beside, above] = [this.leastBeside(lows), this.greatestBeside(highs)];
        const one = 1n << (4n * this.leaf.q);
        spend(4 * this.moves);
        const theta = at.map((d, m) => {
          const [a, b] = [larger(least, d + beside[m]), high + highs[m] + above[m]];
          return [one / b - ceilDivide(one, d), ceilDivide(one, a) - one / d];
        });
        this.turned.set(id, { ...flat, at, theta, lowest: larger(least, low + this.least(lows)) });
      }
      return this.turned.get(id);
    }
    sumForm(sum) {
      if (sum.parts.size === 0) return { c: sum.low, g: new Array(this.moves).fill(0n), a: [], e: sum.high - sum.low };
      const one = 1n << this.leaf.q;
      const nothing = new Array(this.moves).fill(0n);
      return this.ratio(this.flat(sum), { low: one, high: one, lows: nothing, width: 0n, at: nothing.map(() => one), lowest: one }).form;
    }
    ratio(n, d) {
      const { q } = this.leaf;
      const b = BigInt(this.most);
      const r = floorDivide(n.low << q, d.low);
      const size = absolute(r);
      const t = n.lows.map((x, m) => x - ((r * d.lows[m]) >> q));
      const up = (x) => -(-x >> q);
      spend(4 * this.moves);
      const sigma = n.low - ((r * d.low) >> q) + n.high - n.low + up(size * (d.high - d.low)) + 1n + b * (n.width + up(size * d.width) + 1n);
      const form = { c: r, g: t.map((x, m) => floorDivide(x << q, d.at[m])), a: [], e: ceilDivide(sigma << q, d.lowest) + b };
      return { form, t };
    }
    quotientForm(sum, over) {
      const d = this.divisor(over);
      const { form, t } = this.ratio(this.flat(sum), d);
      const bits = 3n * this.leaf.q;
      const ends = t.map((x, m) => endsOfProduct(x, d.theta[m], bits));
      const size = larger(-this.least(ends.map(([l]) => l)), this.greatest(ends.map(([, u]) => u))) + 1n;
      if (this.most > 1) form.a[this.newSymbol({ over, t }, size)] = 1n << this.leaf.q;
      else form.e += size;
      return form;
    }
    // What symbols with these coefficients can add for each move.
    beyond(a) {
      const lows = new Array(this.moves).fill(0n);
      const highs = new Array(this.moves).fill(0n);
      const turns = new Map();
      a.forEach((x, s) => {
        if (x === 0n) return;
        const { n, over, t } = this.symbols[s];
        spend(this.moves);
        if (over === null) {
          const size = absolute(x);
          n.forEach((y, m) => (highs[m] += size * y));
        } else {
          if (!turns.has(over)) turns.set(over, new Array(this.moves).fill(0n));
          const tau = turns.get(over);
          t.forEach((y, m) => (tau[m] += x * y));
        }
      });
      highs.forEach((x, m) => (lows[m] = -x));
      for (const [over, tau] of turns) {
        const { theta } = this.divisor(over);
        tau.forEach((x, m) => {
          const [l, u] = endsOfProduct(x, theta[m], 3n * this.leaf.q);
          lows[m] += l;
          highs[m] += u;
        });
      }
      return { lows, highs };
    }
    reach(form) {
      form.beyond ??= this.beyond(form.a);
      return form.beyond;
    }
    // i(m)
    greatestBeyond(form) {
      const { q } = this.leaf;
      const { lows, highs } = this.reach(form);
      return lows.map((l, m) => -(-larger(-l, highs[m]) >> q));
    }

    // ---- Ranges

    rangeOf(id) {
      if (!this.ranges.has(id)) this.ranges.set(id, this.makeRange(id));
      return this.ranges.get(id);
    }
    makeRange(id) {
      const { leaf } = this;
      const { q } = leaf;
      const form = this.formOf(id);
      const { kind } = this.meanings.get(id);
      const { lows, highs } = this.reach(form);
      spend(2 * this.moves);
      const ends = this.spread({
        low: (form.c - form.e) << q, high: (form.c + form.e) << q,
        lows: lows.map((x, m) => x + (form.g[m] << q)), highs: highs.map((x, m) => x + (form.g[m] << q)),
      });
      // With moves: by its form.
      if (kind === "own") ({ low: ends.low, high: ends.high } = this.spread(leaf.ends([[id, 1n]])));
      const layer = leaf.layer(id);
      const isBent = (other) => this.meanings.get(other).kind === "form" && leaf.layer(other).kind !== "affine";
      if (kind === "form" && (layer.kind !== "affine" || leaf.reads(id).every(isBent))) {
        const [l, u] = leaf.interval(layer, id - layer.first, leaf.reads(id).map((other) => {
          const { low, high } = this.rangeOf(other);
          return [low, high];
        }));
        ends.low = larger(ends.low, l);
        ends.high = smaller(ends.high, u);
      }
      return ends;
    }
    // The range of ends, and with each move.
    spread({ low, high, lows, highs }) {
      const { q } = this.leaf;
      const result = { low: (low + this.least(lows)) >> q, high: -(-(high + this.greatest(highs)) >> q) };
      result.withMoves = once(() => {
        const [below, above] = [this.leastBeside(lows), this.greatestBeside(highs)];
        const into = (x) => larger(result.low, smaller(result.high, x));
        return lows.map((x, m) => [into((low + x + below[m]) >> q), into(-(-(high + highs[m] + above[m]) >> q))]);
      });
      return result;
    }

    // ---- The rules of the layers

    ruled(layer, i) {
      const reads = this.leaf.reads(layer.first + i);
      if (layer.kind === "affine") return this.affineForm(layer, i, reads);
      if (layer.kind === "maximum") return this.maximumForm(reads);
      if (layer.kind === "product") return this.productForm(...reads);
      const [x] = reads;
      const { num, den } = layer.kind === "rectifier" ? layer.alpha : {};
      if (layer.kind === "rectifier") {
        const { low, high } = this.rangeOf(x);
        if (low >= 0n) return this.formOf(x);
        if (high <= 0n && num === 0n) return { c: 0n, g: new Array(this.moves).fill(0n), a: [], e: 0n };
        return this.bent(x, (y) => (y >= 0n ? y : floorDivide(y * num, den)), rectifierSlopes(num, den, this.leaf.q));
      }
      return this.bent(x, (y) => this.leaf.curve(layer.curve, y)[0], this.leaf.slopes(layer.curve), layer.curve);
    }
    affineForm(layer, i, reads) {
      const sums = sumsOfLayer(layer);
      const { at } = rowOf(layer, i);
      const forms = reads.map((id) => this.formOf(id));
      const { lost } = this;
      const g = new Array(this.moves).fill(0n);
      const a = new Array(forms.reduce((most, form) => Math.max(most, form.a.length), 0)).fill(0n);
      let [c, e] = [sums.biases[i] << this.leaf.q, 0n];
      forms.forEach((form, k) => {
        const w = layer.weights[at + k] * sums.factor * 2n;
        if (w === 0n) return;
        spend(this.moves + form.a.length);
        c += w * form.c;
        e += absolute(w) * form.e;
        for (let m = 0; m < g.length; m++) g[m] += w * form.g[m];
        form.a.forEach((x, s) => (a[s] += w * x));
      });
      const down = (x) => downBy(sums, x);
      return { c: down(c), g: g.map(down), a: a.map(down), e: upBy(sums, e) + lost };
    }
    maximumForm(reads) {
      const { q } = this.leaf;
      const ranges = reads.map((id) => this.rangeOf(id));
      let best = 0;
      ranges.forEach(({ low }, k) => (best = low > ranges[best].low ? k : best));
      this.leaf.smooth.checkGreatest(ranges[best].low);
      if (ranges.every(({ high }, k) => k === best || high <= ranges[best].low)) return this.formOf(reads[best]);
      const forms = reads.map((id) => this.formOf(id));
      const c = forms.map((form) => form.c).reduce(larger);
      const g = range(this.moves).map((m) => forms.map((form) => form.c + form.g[m]).reduce(larger) - c);
      spend(this.moves * forms.length * 3);
      const form = { c, g, a: [], e: forms.map(({ e }) => e).reduce(larger) };
      if (this.most > 1) {
        const withMoves = ranges.map((other) => other.withMoves());
        this.noise(g.map((x, m) => {
          const l = withMoves.map((ends) => ends[m][0]).reduce(larger);
          const h = withMoves.map((ends) => ends[m][1]).reduce(larger);
          return larger(h - c - x, c + x - l) + absolute(x);
        }), form.a);
      }
      return form;
    }
    bent(id, f, slopes, curve) {
      const { q } = this.leaf;
      const x = this.formOf(id);
      const { low, high, withMoves } = this.rangeOf(id);
      if (curve === CURVES.Reciprocal || curve === CURVES.Sqrt) {
        if (low <= 0n || x.c <= 0n || x.g.some((y) => x.c + y <= 0n)) refuse("an attention leaf takes a root, or divides, where it may be 0");
      }
      const { lost } = this;
      spend(20 * this.moves);
      const c = f(x.c);
      const g = x.g.map((y) => (y === 0n ? 0n : f(x.c + y) - c));
      const [p, P] = slopes(x.c, low, high);
      let steep = larger(-p, P);
      // A sentence of one move is off from c + g(m), and without noise nothing else says so.
      if (this.most <= 1) for (const [m, ends] of withMoves().entries()) steep = slopes(x.c + x.g[m], ...ends).map(absolute).reduce(larger, steep);
      const form = { c, g, a: [], e: -(-steep * x.e >> q) + 2n * lost };
      if (this.most <= 1) return form;
      const lambda = (p + P) >> 1n;
      form.a = x.a.map((y) => (lambda * y) >> q);
      const beyond = this.greatestBeyond(x);
      const far = larger(P - lambda, lambda - p);
      this.noise(withMoves().map(([l, u], m) => {
        const bend = slopes(x.c, l, u).map((s) => absolute(x.g[m] * s - (g[m] << q))).reduce(larger);
        return ((bend + far * beyond[m]) >> q) + 2n;
      }), form.a);
      return form;
    }
    productForm(idX, idY) {
      const { q } = this.leaf;
      const [x, y] = [this.formOf(idX), this.formOf(idY)];
      const { low, high, withMoves } = this.rangeOf(idY);
      const { lost } = this;
      spend(4 * this.moves);
      const c = (x.c * y.c) >> q;
      const g = x.g.map((gain, m) => (((x.c + gain) * (y.c + y.g[m])) >> q) - c);
      let most = absolute(x.c);
      if (this.most <= 1) for (const gain of x.g) most = larger(most, absolute(x.c + gain));
      const form = { c, g, a: [], e: -(-(larger(-low, high) * x.e + most * y.e) >> q) + 2n * lost };
      if (this.most <= 1) return form;
      const mu = (low + high) >> 1n;
      form.a = range(Math.max(x.a.length, y.a.length)).map((s) => (mu * (x.a[s] ?? 0n) + x.c * (y.a[s] ?? 0n)) >> q);
      const beyond = this.greatestBeyond(x);
      const far = larger(high - mu, mu - low);
      this.noise(withMoves().map(([l, u], m) => {
        const middle = y.c + y.g[m];
        return ((absolute(x.g[m]) * larger(absolute(l - middle), absolute(u - middle)) + far * beyond[m]) >> q) + 2n;
      }), form.a);
      return form;
    }
    ownForm(id) {
      const { q } = this.leaf;
      const { low, high, lows, highs } = this.leaf.ends([[id, 1n]]);
      const whole = (l, u) => [l >> q, -(-u >> q)];
      const middle = ([l, u]) => (l + u) >> 1n;
      const half = ([l, u]) => larger(0n, (u - l + 1n) >> 1n);
      const [first, others] = [whole(low, high), lows.map((l, m) => whole(l, highs[m]))];
      const form = { c: middle(first), g: others.map(middle), a: [], e: half(first) + 1n };
      const n = others.map(half);
      if (this.most > 1) this.noise(n, form.a);
      else form.e += n.reduce(larger, 0n);
      return form;
    }

    // The weighted sum of elements, in units of 2^-2q / den: at the references, and what moves add.
    ends(terms) {
      const { q } = this.leaf;
      const g = new Array(this.moves).fill(0n);
      const a = [];
      let [c, e] = [0n, 0n];
      for (const [id, w] of terms) {
        const form = this.formOf(id);
        spend(this.moves + form.a.length);
        c += w * form.c;
        e += absolute(w) * form.e;
        form.g.forEach((x, m) => (g[m] += w * x));
        form.a.forEach((x, s) => (a[s] = (a[s] ?? 0n) + w * x));
      }
      const { lows, highs } = this.beyond(a);
      return {
        low: (c - e) << q, high: (c + e) << q,
        lows: lows.map((x, m) => x + (g[m] << q)), highs: highs.map((x, m) => x + (g[m] << q)),
      };
    }
  }

  const endsList = (pairs) => ({ low: pairs.map(([l]) => l), high: pairs.map(([, u]) => u) });
  // x times an interval, over 2^bits, down and up.
  function endsOfProduct(x, [l, u], bits) {
    const [a, b] = x < 0n ? [x * u, x * l] : [x * l, x * u];
    return [a >> bits, -(-b >> bits)];
  }
  // If both are numbers apart, or both of one word, the same: the products of their ends.
  function productOfSums(x, y, q) {
    const times = (a, b, c, d) => {
      const ends = [a * c, a * d, b * c, b * d];
      return [ends.reduce(smaller) >> q, -(-ends.reduce(larger) >> q)];
    };
    const isApart = ({ low, high, parts }) => parts.size === 0 || (parts.size === 1 && low === 0n && high === 0n);
    const moving = new Set([...x.parts.keys(), ...y.parts.keys()]);
    if (moving.size > 1 || !isApart(x) || !isApart(y)) return null;
    const [word] = moving;
    if (word === undefined) {
      const [low, high] = times(x.low, x.high, y.low, y.high);
      return { kind: "sum", low, high, parts: new Map() };
    }
    const at = ({ low, high, parts }, place) => {
      const part = parts.get(word);
      return part === undefined ? [low, high] : [part.low[place], part.high[place]];
    };
    const count = (x.parts.get(word) ?? y.parts.get(word)).low.length;
    spend(8 * count);
    return { kind: "sum", low: 0n, high: 0n, parts: new Map([[word, endsList(range(count).map((place) => times(...at(x, place), ...at(y, place))))]]) };
  }

  // The slopes of secants from c to all of [l, u], down and up.
  function rectifierSlopes(num, den, q) {
    const f = (x) => (x >= 0n ? x * den : x * num); // over den
    return (c, l, u) => {
      const at = (x, high) => {
        if (x !== c) return x > c ? [(f(x) - f(c)) << q, (x - c) * den] : [(f(c) - f(x)) << q, (c - x) * den];
        return c > 0n || (c === 0n && high) ? [den << q, den] : [num << q, den];
      };
      return [floorDivide(...at(l, false)), ceilDivide(...at(u, true))];
    };
  }

  // Numbers, the greatest first.
  class Heap {
    constructor() { this.items = []; }
    push(x) {
      const { items } = this;
      let at = items.length;
      items.push(x);
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (items[parent] >= x) break;
        items[at] = items[parent];
        at = parent;
      }
      items[at] = x;
    }
    pop() {
      const { items } = this;
      const top = items[0];
      const x = items.pop();
      if (items.length === 0) return top;
      let at = 0;
      for (;;) {
        let child = 2 * at + 1;
        if (child >= items.length) break;
        if (child + 1 < items.length && items[child + 1] > items[child]) child += 1;
        if (items[child] <= x) break;
        items[at] = items[child];
        at = child;
      }
      items[at] = x;
      return top;
    }
  }

  class Attention {
    constructor(smooth, plan) {
      this.smooth = smooth;
      this.words = smooth.words;
      this.network = smooth.network;
      this.q = smooth.q;
      this.room = plan.free;
      this.options = this.words.sizes.map(() => [0]);
      this.isFree = this.words.sizes.map(() => false);
      plan.places.forEach(({ word, cell }, place) => {
        this.options[word] = cell.chosen;
        this.isFree[word] = plan.isForced[place] === 1;
      });
      this.keys = []; // by word, how many options those before have
      this.options.reduce((count, { length }, word) => ((this.keys[word] = count), count + length), 0);
      this.sums = new Map();
      this.curves = new Map();
      this.inner = new Map();
      this.view = new View(this, null);
      this.own = this.ownWords();
    }
    layer(id) { return this.words.layer(id); }
    reads(id) {
      const layer = this.layer(id);
      return layer.kind === "constant" ? [] : Array.from(layer.ids.subarray(...placesOf(layer, id - layer.first)));
    }
    // The views in which a word is given, by place.
    given(word) {
      if (!this.inner.has(word)) this.inner.set(word, this.options[word].map((_, place) => new View(this, { word, place })));
      return this.inner.get(word);
    }
    // Elements with a word of their own (17.1).
    ownWords() {
      const { network, view } = this;
      const own = new Map();
      const shared = new Map(); // T of elements behind the border
      const ofElement = (id) => {
        const reached = view.wordsOf(id);
        if (reached.length <= 2) return reached;
        return this.layer(id).front ? [] : shared.get(id);
      };
      for (const layer of network.back) {
        const known = new Map();
        for (const i of layer.elements) {
          const id = layer.first + i;
          if (view.wordsOf(id).length < 2) continue;
          const key = layer.kind === "affine" ? layer.listOf[i] : i;
          if (!known.has(key)) {
            let common = view.wordsOf(id);
            if (common.length > 2) {
              const reads = this.reads(id);
              spend(4 * reads.length);
              const many = reads.filter((other) => view.wordsOf(other).length > 1);
              const some = many.length > 0 ? many : reads.filter((other) => view.wordsOf(other).length > 0);
              for (const other of some) {
                const its = ofElement(other);
                common = common.filter((word) => its.includes(word));
              }
            }
            known.set(key, common);
          }
          shared.set(id, known.get(key));
          if (known.get(key).length > 0) own.set(id, known.get(key)[0]);
        }
      }
      return own;
    }
    curve(number, x) {
      if (!this.curves.has(number)) this.curves.set(number, new Map());
      const known = this.curves.get(number);
      if (!known.has(x)) {
        spend(100);
        known.set(x, EXACT_CURVES[number](x, this.q));
      }
      return known.get(x);
    }
    // The interval of section 15.1, from those of what is read.
    interval(layer, i, ends) {
      let [l, u] = [0n, 0n];
      spend(ends.length + 20);
      if (layer.kind === "affine") {
        const sums = sumsOfLayer(layer);
        const { at } = rowOf(layer, i);
        ends.forEach(([low, high], k) => {
          const w = layer.weights[at + k];
          l += w * (w > 0n ? low : high);
          u += w * (w > 0n ? high : low);
        });
        const bias = sums.biases[i] << this.q;
        [l, u] = [downBy(sums, l * sums.factor * 2n + bias), upBy(sums, u * sums.factor * 2n + bias)];
      } else {
        const [start] = placesOf(layer, i);
        const [low, high] = [{}, {}];
        ends.forEach(([x, y], k) => ([low[start + k], high[start + k]] = [x, y]));
        [l, u] = this.smooth[layer.kind](layer, i, low, high);
      }
      this.smooth.checkLimit(layer, i, l, u);
      return [l, u];
    }
    // Of a curve, by its number.
    slopes(number) {
      const { q } = this;
      const one = 1n << q;
      const up = (x) => -(-x >> q);
      if (number === CURVES.Reciprocal) {
        const whole = 1n << (3n * q);
        return (c, l, u) => [-ceilDivide(whole, l * c), -(whole / (u * c))];
      }
      if (number === CURVES.Sqrt) {
        const root = (x) => squareRoot(x << q);
        const whole = 1n << (2n * q);
        return (c, l, u) => [whole / (root(u) + root(c) + 2n), ceilDivide(whole, root(l) + root(c))];
      }
      return (c, l, u) => {
        const [from, to] = [smaller(c, l), larger(c, u)];
        if (number === CURVES.Erf) {
          const far = larger(-from, to);
          const near = from <= 0n && to >= 0n ? 0n : smaller(absolute(from), absolute(to));
          const power = (x) => this.curve(CURVES.Exp, x)[0];
          return [1128379167n * power(-up(far * far)) / 10n ** 9n, ceilDivide(1128379168n * (power(-(near * near >> q)) + 1n), 10n ** 9n)];
        }
        const [f1, f2] = [this.curve(number, from)[0], this.curve(number, to)[0]];
        let [v, V] = [f1, f2 + 1n];
        if (number === CURVES.Exp) return [v, V];
        if (number === CURVES.Tanh) {
          const far = larger(-v, V);
          const near = v <= 0n && V >= 0n ? 0n : smaller(absolute(v), absolute(V));
          return [one - up(far * far), one - (near * near >> q)];
        }
        [v, V] = [v, V].map((x) => larger(0n, smaller(one, x)));
        const ends = [v * (one - v), V * (one - V)];
        const holdsTop = 2n * f1 <= one && one <= 2n * f2 + 2n;
        return [ends.reduce(smaller) >> q, holdsTop ? one >> 2n : up(ends.reduce(larger))];
      };
    }
    // 17.5: of a sum of elements, in units of 2^-2q / den, at the references, and for each move.
    ends(terms) {
      const { view } = this;
      const result = view.ends(terms.filter(([id]) => !this.own.has(id)));
      const byWord = new Map();
      for (const [id, w] of terms) {
        const word = this.own.get(id);
        if (word === undefined) continue;
        if (!byWord.has(word)) byWord.set(word, []);
        byWord.get(word).push([id, w]);
      }
      for (const [word, its] of byWord) {
        const views = this.given(word);
        for (const inner of views) inner.find(its.map(([id]) => id));
        const [first, ...others] = views.map((inner) => inner.ends(its));
        result.low += first.low;
        result.high += first.high;
        // The moves of one view in another.
        const across = (inner, f) => inner.moving.forEach((slot) => {
          const to = views[0].slotOf.get(slot.word).first - slot.first;
          for (let m = slot.first; m < slot.end; m++) f(m, m + to);
        });
        for (const { word: other, first: at } of views[0].moving) {
          const from = views[0].slotOf.get(other);
          const to = view.slotOf.get(other).first;
          for (let m = at; m < from.end; m++) {
            result.lows[to + m - at] += first.lows[m];
            result.highs[to + m - at] += first.highs[m];
          }
        }
        others.forEach((ends, n) => {
          const inner = views[n + 1];
          const [lows, highs] = [[], []];
          across(inner, (m, to) => {
            lows[m] = ends.lows[m] - first.lows[to];
            highs[m] = ends.highs[m] - first.highs[to];
          });
          const m = view.slotOf.get(word).first + n;
          result.lows[m] += ends.low - first.low + inner.least(lows);
          result.highs[m] += ends.high - first.high + inner.greatest(highs);
        });
      }
      return result;
    }
    // The least of z_label - z_rival, and what it is over. The substitution is written over the least denominator: what
    // symbols can add is rounded to whole units of it.
    margin(label, rival) {
      const { terms, den, constant } = marginOf(this.network, label, rival);
      const common = leastMultiple(den, constant.den);
      const number = constant.num * (common / constant.den);
      const numbers = terms.map(([, w]) => w * (common / den));
      const divisor = [number, ...numbers].reduce(greatestDivisor, common);
      const least = terms.map(([id], k) => [id, numbers[k] / divisor]);
      this.view.find(least.map(([id]) => id));
      const { low, lows } = this.ends(least);
      const bits = 2n * this.q;
      return { num: low + this.view.least(lows) + ((number / divisor) << bits), den: (common / divisor) << bits };
    }
  }

  // Does the leaf show that in the whole region, which holds a sentence, the label stays before all these rivals?
  function attentionShows({ plan }, smooth, label, rivals) {
    const leaf = new Attention(smooth, plan);
    return rivals.every((rival) => {
      const { num } = leaf.margin(label, rival);
      return num > 0n || (num === 0n && label < rival);
    });
  }

  // ---- The leaf `expansion` (section 18)
  // The first order is that of the sentence of references; what the margin is off by is found for each rival at once, as
  // costs, whole numbers of 2^-2q. Moving words are named by their place among them; the k-th word *in line* of a chain is
  // the k-th in its order, so that W(x) of its elements are the first so many of them.

  class Expansion {
    constructor(smooth, plan, reach, chains, label, rivals) {
      const { network, words } = smooth;
      Object.assign(this, { smooth, network, words, plan, reach, q: smooth.q, curves: new Map(), bounds: new Map(), rests: new Map() });
      if (plan.places.some(({ cell }) => cell.forced && cell.chosen.length > 1)) refuse("a word with several options, but not the original");
      const reached = new Set(network.logits.flatMap((id) => [...words.reach.sets[words.reach.of[id]]]));
      const moving = plan.places.filter(({ word, cell }) => !cell.forced && reached.has(word));
      this.count = moving.length;
      this.room = Math.min(this.count, plan.free); // r
      this.placeOf = new Map(moving.map(({ word }, place) => [word, place]));
      this.moves = moving.map(({ word, cell }) => cell.swaps.map((option) => ({ word, option })));
      let number = 0;
      for (const move of this.moves.flat()) move.number = number++;
      this.old = number; // stands for the moves of all old words
      // Of each set of words, the places of those that move.
      this.active = words.reach.sets.map((set) => [...set].filter((word) => this.placeOf.has(word)).map((word) => this.placeOf.get(word)).sort((a, b) => a - b));
      this.border = words.original.slice();
      const forced = plan.places.filter(({ cell }) => cell.forced).map(({ word, cell }) => [word, cell.chosen[0]]);
      for (const [word, option] of forced) words.swap(this.border, word, option);
      this.putReference = smooth.sentence(this.border, forced);
      this.n = range(network.size);
      const visible = [...range(network.constants.size), ...network.border, ...network.back.flatMap(({ first, elements }) => elements.map((i) => first + i))];
      for (const id of visible) this.n[id] = smooth.endsBy(this.putReference, id).low;
      this.margins = rivals.map((rival) => this.expand(label, rival));

      this.chainOf = new Array(network.layers.length).fill(null);
      for (const chain of chains) {
        Object.assign(chain, { hasElements: false, hasAll: false });
        for (let layer = chain.first; layer < chain.end; layer++) this.chainOf[layer + 1] = chain;
      }
      this.held = 0;
      this.stores = new Array(network.layers.length); // A of layers behind the border
      this.hulls = new Array(network.layers.length); // of layers of chains, by j: B_j
      this.turns = new Array(network.layers.length); // and by j and by move: T_(j,m)
      this.alone = rivals.map(() => 0n); // the costs of elements of no chain
      this.costs = [[], []]; // by order: of elements of chains by j, by move, by how many words there are in W(x)
      for (const layer of network.back) {
        lookAtClock();
        const chain = this.chainOf[layer.number];
        if (chain !== null) {
          this.pass(layer, chain);
          continue;
        }
        const made = smooth.rule(layer, layer.elements, layer.isRead, (...place) => this.putAll(...place));
        this.stores[layer.number] = made.to;
        for (const i of layer.elements) this.charge(this.alone, layer, i, made);
      }
      if (this.room > 0 && chains.some(({ hasElements, hasAll }) => hasElements && !hasAll)) refuse("a chain without an element that has all words");
    }
    layer(id) { return this.words.layer(id); }
    activeOf(id) { return this.active[this.words.reach.of[id]]; }
    // The first of these places in line.
    firstOf(places, order) { return order === 0 ? places[0] : this.count - 1 - places[places.length - 1]; }
    isOld(line, size) { return size - 1 - line > this.reach; }
    oldOf(size) { return Math.max(0, size - 1 - this.reach); }
    movesAt(line, order) { return this.moves[order === 0 ? line : this.count - 1 - line]; }

    // ---- Intervals (18.1)

    // A(x), to a place of `to`.
    putAll(to, at, id) {
      const { smooth } = this;
      const layer = this.layer(id);
      if (layer.kind === "constant") return smooth.copy(to, at, smooth.constants, id - layer.first);
      if (!layer.front) return smooth.copy(to, at, this.stores[layer.number], id - layer.first);
      if (!this.bounds.has(id)) {
        const { low, high } = borderIn(this.plan, id);
        this.bounds.set(id, [smooth.ends(low, this.network.frontDen)[0], smooth.ends(high, this.network.frontDen)[1]]);
      }
      return smooth.putFront(to, at, id, this.bounds.get(id));
    }
    // What T_(j,m)(x) of a chain reads, m a move of this word in line.
    putMove(chain, j, line, move, to, at, id) {
      const { smooth, network } = this;
      const layer = this.layer(id);
      const active = this.activeOf(id);
      if (active.length === 0) return this.putReference(to, at, id);
      if (layer.front) {
        const first = this.firstOf(active, chain.order);
        if (active.length === 1 && first === line) {
          const more = this.words.slots[id].get(move.word)?.amounts[move.option - 1] ?? 0n;
          return smooth.putFront(to, at, id, smooth.ends(this.border[id] + more, network.frontDen));
        }
        return first > line ? this.putReference(to, at, id) : this.putAll(to, at, id);
      }
      if (this.chainOf[layer.number] !== chain) return this.putAll(to, at, id);
      const i = id - layer.first;
      if (line >= active.length) return smooth.copy(to, at, this.hulls[layer.number][j - 1], i);
      return smooth.copy(to, at, this.turns[layer.number][j][this.isOld(line, active.length) ? this.old : move.number], i);
    }
    // What is read for the first `old` words in line together.
    putOld(chain, j, old, to, at, id) {
      const { smooth } = this;
      const layer = this.layer(id);
      const active = this.activeOf(id);
      if (active.length === 0) return this.putReference(to, at, id);
      if (layer.front) return this.firstOf(active, chain.order) >= old ? this.putReference(to, at, id) : this.putAll(to, at, id);
      if (this.chainOf[layer.number] !== chain) return this.putAll(to, at, id);
      if (active.length < old) refuse("a chain that reads an element without one of the old words");
      const turns = this.turns[layer.number][j];
      const hull = (key) => smooth.hull(to, at, turns[key], id - layer.first);
      const shared = this.oldOf(active.length);
      if (shared > 0) hull(this.old);
      for (let line = shared; line < old; line++) for (const move of this.movesAt(line, chain.order)) hull(move.number);
    }
    // All B_j and T_(j,m) of a layer of a chain.
    pass(layer, chain) {
      const { smooth, room, count } = this;
      const { order } = chain;
      const { number } = layer;
      const bySize = new Map(); // elements, by how many words there are in W(x)
      for (const i of layer.elements) {
        const active = this.activeOf(layer.first + i);
        const size = active.length;
        const last = order === 0 ? active[size - 1] : count - 1 - active[0];
        if (room > 0 && size > 0 && last !== size - 1) refuse("a chain that does not read in order");
        if (!bySize.has(size)) bySize.set(size, []);
        bySize.get(size).push(i);
        chain.hasElements = true;
        if (size === count) chain.hasAll = true;
      }
      const charge = (j, key, made, sizes) => {
        const byMove = (this.costs[order][j] ??= []);
        for (const size of sizes) {
          const amounts = ((byMove[key] ??= [])[size] ??= this.alone.map(() => 0n));
          for (const i of bySize.get(size)) this.charge(amounts, layer, i, made);
        }
      };
      const ruled = (sizes, put) => {
        const elements = sizes.flatMap((size) => bySize.get(size));
        this.held += elements.length;
        if (this.held > LIMIT.reached) lackOfMemory("intervals of so many moves");
        return smooth.rule(layer, elements, placesRead(layer, elements), put);
      };
      const sizes = [...bySize.keys()];
      const references = ruled(sizes, this.putReference);
      charge(0, 0, references, sizes);
      this.hulls[number] = [references.to];
      this.turns[number] = [];
      for (let j = 1; j <= room; j++) {
        const hull = emptyEnds(smooth.isKernel);
        const turns = [];
        for (const i of layer.elements) smooth.copy(hull, i, references.to, i);
        const keep = (key, made, its) => {
          charge(j, key, made, its);
          turns[key] ??= emptyEnds(smooth.isKernel);
          for (const i of its.flatMap((size) => bySize.get(size))) {
            smooth.copy(turns[key], i, made.to, i);
            smooth.hull(hull, i, made.to);
          }
        };
        for (let line = 0; line < count; line++) {
          const its = sizes.filter((size) => line < size && !this.isOld(line, size));
          if (its.length === 0) continue;
          for (const move of this.movesAt(line, order)) {
            lookAtClock();
            keep(move.number, ruled(its, (...place) => this.putMove(chain, j, line, move, ...place)), its);
          }
        }
        for (const size of sizes) {
          const old = this.oldOf(size);
          if (old > 0) keep(this.old, ruled([size], (...place) => this.putOld(chain, j, old, ...place)), [size]);
        }
        this.hulls[number][j] = hull;
        this.turns[number][j] = turns;
      }
      this.stores[number] = this.hulls[number][room];
    }

    // ---- Multipliers (18.2)

    // factors: lambda, by id; at kernel shares: M_x. total: what the bound has without costs, and changes: h of each
    // move, both over den.
    expand(label, rival) {
      const { network, smooth, n, q } = this;
      const { terms, den, constant } = marginOf(network, label, rival);
      let common = [den, constant.den, 1n << q].reduce(leastMultiple);
      for (const { kind, weightDen, alpha } of network.back) {
        if (kind === "affine") common = leastMultiple(common, weightDen);
        if (kind === "rectifier") common = leastMultiple(common, alpha.den);
      }
      // Over common. Several layers may read several values of one sum: at kernel what each adds counts apart.
      const slopes = new Array(network.size).fill(0n);
      const magnitudes = smooth.isKernel ? slopes.slice() : null;
      const give = (id, more) => {
        slopes[id] += more;
        if (magnitudes !== null) magnitudes[id] += absolute(more);
      };
      let total = (constant.num * (common / constant.den)) << (2n * q);
      for (const [id, k] of terms) {
        give(id, (k * (common / den)) << q);
        total += slopes[id] * n[id];
      }
      const [factors, isWhole] = [[], []];
      for (const layer of [...network.back].reverse()) {
        const { kind, first, ids } = layer;
        lookAtClock();
        for (const i of layer.elements) {
          const factor = floorDivide(slopes[first + i], common);
          factors[first + i] = factor;
          isWhole[first + i] = factor * common === slopes[first + i];
          if (kind === "curve") this.checkCurve(layer.curve, n[ids[i]]);
          if (factor === 0n) continue;
          spend(8);
          if (kind === "affine") {
            const { start, end, at } = rowOf(layer, i);
            const scale = factor * (common / layer.weightDen);
            spend(end - start);
            for (let k = 0; k < end - start; k++) give(ids[start + k], layer.weights[at + k] * scale);
          } else if (kind === "rectifier") {
            give(ids[i], n[ids[i]] >= 0n ? factor * common : factor * layer.alpha.num * (common / layer.alpha.den));
          } else if (kind === "maximum") {
            give(ids[this.greatestPlace(layer, i)], factor * common);
          } else if (kind === "product") {
            const [y, z] = [ids[2 * i], ids[2 * i + 1]];
            const scale = factor * (common >> q);
            const [ofY, ofZ] = [scale * n[z], scale * n[y]];
            give(y, ofY);
            give(z, ofZ);
          } else {
            give(ids[i], factor * slopeAt(layer.curve, n[ids[i]], q) * (common >> q));
          }
        }
      }
      const shares = magnitudes?.map((sum) => ceilDivide(sum, common));
      const { frontDen, constants } = network;
      const fine = leastMultiple(frontDen, constants.den);
      const allDen = common * fine;
      total *= fine;
      const add = (id, num, numDen) => {
        total += slopes[id] * ((num << q) * (fine / numDen) - n[id] * fine);
      };
      constants.num.forEach((x, id) => add(id, x, constants.den));
      const changes = this.moves.flat().map(() => 0n);
      for (const id of network.border) {
        if (smooth.isKernel) total -= shares[id] * smooth.front.error[id] * allDen; // also where what was added cancels
        if (slopes[id] === 0n) continue;
        add(id, this.border[id], frontDen);
        const factor = (slopes[id] * (fine / frontDen)) << q;
        for (const [word, { amounts }] of this.words.slots[id]) {
          const its = this.placeOf.has(word) ? this.moves[this.placeOf.get(word)] : [];
          spend(its.length);
          for (const { option, number } of its) changes[number] += factor * amounts[option - 1];
        }
      }
      return { label, rival, factors, isWhole, shares, total, changes, den: allDen };
    }
    checkCurve(number, n) {
      if ((number === INVERSE && n === 0n) || (number === ROOT && n <= 0n)) refuse("the expansion of 1/x or a root at 0");
      if (this.smooth.isKernel && (number === EXP || number >= INVERSE)) refuse("kernel: the expansion of exp, 1/x or a root");
    }
    // p: the place of ids with the first of the window that has the greatest n.
    greatestPlace({ ids, starts }, i) {
      let best = starts[i];
      for (let at = best + 1; at < starts[i + 1]; at++) if (this.n[ids[at]] > this.n[ids[best]]) best = at;
      return best;
    }

    // ---- Costs (18.3)

    // Adds those of element i, of which this was made of what it reads, for each rival.
    charge(amounts, layer, i, { input, to }) {
      const id = layer.first + i;
      const rest = this[layer.kind](layer, i, input).map((x) => x - this.n[id]);
      const below = smaller(0n, to.low[i] - this.n[id]);
      const widened = this.smooth.isKernel ? this.widening(layer, i, input, to) : 0n;
      spend(10 * amounts.length);
      this.margins.forEach(({ factors, isWhole, shares }, rival) => {
        const factor = factors[id];
        const lost = widened === 0n ? 0n : (layer.kind === "affine" ? shares[id] : absolute(factor)) * widened;
        amounts[rival] += smaller(factor * rest[0], factor * rest[1]) + (isWhole[id] ? 0n : below) - lost;
      });
    }
    widening(layer, i, input, to) {
      if (layer.kind === "affine") return ceilDivide(BigInt(to.n[i]) * 257n * to.size[i], 1n << 32n) + 1n;
      // The size is that of the widened interval.
      if (layer.kind === "product") return ceilDivide(2n * 257n * to.size[i], 1n << 32n) + 1n;
      return this.smooth[layer.kind](layer, i, input.low, input.high)[2];
    }
    // By kind: R and R', n of the element more, down and up. Of affine elements they are the same for all that is read.
    affine(layer, i) {
      const id = layer.first + i;
      if (!this.rests.has(id)) {
        const sums = sumsOfLayer(layer);
        const { start, end, at } = rowOf(layer, i);
        let sum = 0n;
        spend(end - start);
        for (let k = 0; k < end - start; k++) sum += layer.weights[at + k] * this.n[layer.ids[start + k]];
        sum = sum * 2n * sums.factor + (sums.biases[i] << this.q);
        this.rests.set(id, [downBy(sums, sum), upBy(sums, sum)]);
      }
      return this.rests.get(id);
    }
    rectifier({ ids, alpha: { num, den } }, i, { low, high }) {
      const n = this.n[ids[i]];
      const slope = n >= 0n ? den : num;
      const ends = [low[i], high[i], ...(low[i] < 0n && high[i] > 0n ? [0n] : [])].map((t) => t * (t >= 0n ? den : num) - slope * (t - n));
      return [floorDivide(ends.reduce(smaller), den), ceilDivide(ends.reduce(larger), den)];
    }
    maximum(layer, i, { low, high }) {
      const place = this.greatestPlace(layer, i);
      const n = this.n[layer.ids[place]];
      let most = 0n;
      for (let at = layer.starts[i]; at < layer.starts[i + 1]; at++) if (at !== place) most = larger(most, high[at] - low[place]);
      return [larger(0n, greatestOf(layer, i, (at) => low[at]) - high[place]) + n, most + n];
    }
    product({ ids }, i, { low, high }) {
      const [y, z] = [2 * i, 2 * i + 1];
      const [n, m] = [this.n[ids[y]], this.n[ids[z]]];
      const [a, b, c, d] = [low[y] - n, high[y] - n, low[z] - m, high[z] - m];
      let ends = [a * c, a * d, b * c, b * d];
      if (ids[y] === ids[z]) ends = [a * a, b * b, ...(a < 0n && b > 0n ? [0n] : [])];
      return [(ends.reduce(smaller) + n * m) >> this.q, -(-(ends.reduce(larger) + n * m) >> this.q)];
    }
    curve({ ids, curve: number }, i, { low, high }) {
      const { q } = this;
      const [l, u, n] = [low[i], high[i], this.n[ids[i]]];
      const slope = this.known(`slope ${number} ${n}`, () => slopeAt(number, n, q));
      const floorAt = (x) => this.known(`${number} ${x}`, () => EXACT_CURVES[number](x, q)[0]);
      const points = [[l, floorAt(l)], [u, floorAt(u)]];
      if (l <= n && n <= u) points.push([n, floorAt(n)]);
      if (number !== EXP && number !== ROOT && l <= -n && -n <= u) points.push([-n, (number === SIGMOID ? 1n << q : 0n) - floorAt(n) - 1n]);
      const [lows, highs] = [0n, 1n].map((more) => points.map(([t, value]) => ((value + more) << q) - slope * (t - n)));
      const lost = 16n * -(-larger(absolute(l - n), absolute(u - n)) >> q);
      return [(lows.reduce(smaller) >> q) - lost, -(-highs.reduce(larger) >> q) + lost];
    }
    known(key, make) {
      if (!this.curves.has(key)) {
        spend(100);
        if (this.curves.size > 2 ** 20) this.curves.clear();
        this.curves.set(key, make());
      }
      return this.curves.get(key);
    }

    // ---- The bound (18.4)

    // The least over all sets of moves of what they change and what elements of chains cost, over den.
    least(rival) {
      const { count, room, moves } = this;
      const { changes, den } = this.margins[rival];
      const [forwards, backwards] = this.costs.map((byJ) => {
        const at = (j, key, size) => byJ[j]?.[key]?.[size]?.[rival] ?? 0n;
        const sumsFrom = (start, costOf) => {
          const sums = new Array(start + 1).fill(0n);
          for (let size = start + 1; size <= count; size++) sums.push((sums[size - 1] ?? 0n) + den * costOf(size));
          return sums;
        };
        const known = new Map();
        return {
          // Of the elements with at most `size` words, none of which moves.
          still: sumsFrom(-1, (size) => at(0, 0, size)),
          // Of those with at most `size` words of which this word in line is the last that moves.
          moved: (j, line, { number }, size) => {
            if (byJ.length === 0) return 0n;
            const key = j * this.old + number;
            if (!known.has(key)) known.set(key, sumsFrom(line, (its) => at(j, this.isOld(line, its) ? this.old : number, its)));
            return known.get(key)[size];
          },
        };
      });
      const isOneWay = this.costs[1].length === 0; // what lies behind then depends on i alone
      let best = forwards.still[count] + backwards.still[count];
      for (let s = isOneWay ? room : 1; s <= room && s > 0; s++) {
        let before = null; // by move: the least of what i moves change and cost, it the last, but for elements behind it
        for (let i = 1; i <= s; i++) {
          const now = [];
          for (let place = i - 1; place < count; place++) {
            const line = count - 1 - place;
            const gaps = []; // with the place of the word before
            for (let other = i - 2; i > 1 && other < place; other++) {
              const sums = moves[other].map((move) => before[move.number] + forwards.moved(i - 1, other, move, place));
              spend(sums.length);
              gaps.push([sums.reduce(smaller), count - 1 - other]);
            }
            if (i === 1) gaps.push([forwards.still[place], count]);
            const least = isOneWay ? [[gaps.map(([sum]) => sum).reduce(smaller), count]] : gaps;
            for (const move of moves[place]) {
              spend(4 * least.length);
              const sums = least.map(([sum, size]) => sum + backwards.moved(s + 1 - i, line, move, size));
              now[move.number] = changes[move.number] + sums.reduce(smaller);
              if (i < s && !isOneWay) continue;
              best = smaller(best, now[move.number] + forwards.moved(i, place, move, count) + backwards.still[line]);
            }
          }
          before = now;
        }
      }
      return best;
    }
    shows(rival) {
      const { label, rival: loser, total, den } = this.margins[rival];
      const bound = total + this.alone[rival] * den + this.least(rival);
      if (!this.smooth.isKernel) return bound > 0n || (bound === 0n && label < loser);
      return bound > (this.smooth.lost(label, loser, (...place) => this.putAll(...place)) * den) << this.q;
    }
  }

  // Does the leaf show that in the whole region, which holds a sentence, the label stays before all these rivals?
  function expansionShows({ plan }, smooth, reach, chains, label, rivals) {
    const leaf = new Expansion(smooth, plan, reach, chains, label, rivals);
    return rivals.every((_, rival) => leaf.shows(rival));
  }

  // ---- Leaves (section 6) ----

  // Does the recipe show that in the whole region `winner` stays before `loser`, for each of these pairs?
  function recipeShows(space, region, level, pairs) {
    const { words, plan } = space;
    if (plan.free < 0) return true;
    const leaf = { words, network: words.network, plan, region, bounds: new Map(), inputs: new Map(), lines: new Map(), gains: new Map(), losses: new Map(), changeCount: 0 };
    findBounds(leaf);
    const judge = { words, level, closer: once(() => leafErrors(leaf)) };
    const { logits } = words.network;
    return pairs.every(([winner, loser]) => {
      const terms = logits[winner] === logits[loser] ? [] : [[logits[winner], 1n], [logits[loser], -1n]];
      return wins(judge, leastOf(leaf, terms, true), winner, loser);
    });
  }

  // One sentence is "robust", "broken", or, but for exact numbers, perhaps "neither".
  function judgeSentence(words, border, level, label, rivals, precision, swaps) {
    lookAtClock();
    if (words.network.isSmooth) {
      const smooth = words.smoothOf(level, precision);
      const put = smooth.sentence(border, swaps());
      if (rivals.every((rival) => smooth.wins(label, rival, put))) return "robust";
      return rivals.some((rival) => smooth.wins(rival, label, put)) ? "broken" : "neither";
    }
    const values = words.evaluate(border);
    const judge = { words, level, closer: once(() => sentenceErrors(words, values)) };
    if (rivals.every((rival) => wins(judge, words.difference(values, label, rival), label, rival))) return "robust";
    if (rivals.some((rival) => wins(judge, words.difference(values, rival, label), rival, label))) return "broken";
    return "neither";
  }

  // Calls visit(border, swaps) for every sentence of the region; swaps() gives pairs of a word and its option. Forced places come first, so that a sentence is complete once
  // they are passed; each further swap is at a later place than the one before.
  function forEachSentence({ words, plan }, visit) {
    const { forced, most } = plan;
    if (forced > most) return;
    const places = [...plan.places].sort((a, b) => Number(b.cell.forced) - Number(a.cell.forced));
    const border = words.original.slice();
    const stack = []; // a place, a swap there, and what it changed
    const swaps = () => stack.map(([at, its]) => [places[at].word, places[at].cell.swaps[its]]).sort(([a], [b]) => a - b);
    if (forced === 0) visit(border, swaps);
    let [place, option] = [0, 0];
    for (;;) {
      spend(1);
      // A forced place cannot be left out.
      const open = place < places.length && stack.length < most && (stack.length >= forced || place === stack.length);
      if (!open) {
        if (stack.length === 0) return;
        const [last, its, before] = stack.pop();
        words.undo(border, places[last].word, before);
        [place, option] = [last, its + 1];
      } else if (option >= places[place].cell.swaps.length) {
        [place, option] = [place + 1, 0];
      } else {
        const { word, cell } = places[place];
        stack.push([place, option, words.swap(border, word, cell.swaps[option])]);
        if (stack.length >= forced) visit(border, swaps);
        [place, option] = [place + 1, 0];
      }
    }
  }

  // ---- The tree (section 5) ----

  // Changes that can be taken back.
  function keep(object, key, value) {
    const before = object[key];
    object[key] = value;
    return () => (object[key] = before);
  }
  function keepIn(map, layer, entries) {
    if (!map.has(layer)) map.set(layer, new Map());
    const inside = map.get(layer);
    const before = entries.map(([element]) => [element, inside.get(element)]);
    for (const [element, value] of entries) inside.set(element, value);
    return () => before.forEach(([element, value]) => (value === undefined ? inside.delete(element) : inside.set(element, value)));
  }
  const undoAll = (undos) => () => undos.forEach((undo) => undo());

  function readLayer(reader, layers, kinds) {
    const number = reader.number();
    const layer = layers[number + 1];
    if (layer === undefined || !kinds.includes(layer.kind)) refuse(`layer ${number} of the network is no ${kinds.join(" or ")}`);
    return layer;
  }
  const atMost = (highest) => (value) => value <= highest;
  // Pairs of an element and a value that fits, the elements ascending.
  function readElements(reader, layer, fits) {
    const count = reader.number();
    if (count < 1) refuse("a layer without elements");
    const entries = [];
    let element = null;
    for (let i = 0; i < count; i++) {
      element = reader.after(element);
      const value = reader.number();
      if (element >= layer.size) refuse("an element beyond its layer");
      if (!fits(value, layer)) refuse("a value out of range");
      entries.push([element, value]);
    }
    return entries;
  }
  // Layers in ascending order, each with its elements; at least `fewest`.
  function readTable(reader, layers, fits, fewest, kinds = ["rectifier"]) {
    const count = reader.number();
    if (count < fewest) refuse("a table without layers");
    const entries = [];
    for (let i = 0; i < count; i++) {
      const layer = readLayer(reader, layers, kinds);
      if (i > 0 && layer.number <= entries[i - 1][0].number) refuse("the layers of a table do not ascend");
      entries.push([layer, readElements(reader, layer, fits)]);
    }
    return entries;
  }
  const asMaps = (table) => new Map(table.map(([layer, entries]) => [layer, new Map(entries)]));

  // A tree in preorder. One region is changed on the way down and changed back on the way up, so depth costs no more
  // than a list.
  class Walk {
    constructor(tree, nodes = { count: 0 }) {
      Object.assign(this, { tree, nodes, reader: new Reader(tree), above: [] });
    }
    // left, right (or null): make a child, and give what takes that back.
    split(left, right) {
      this.above.push({ undo: left(), right });
      if (this.above.length > LIMIT.treeDepth) refuse("the tree is too deep");
    }
    // kinds: by byte, what is done at a node; it is a leaf unless it splits.
    run(kinds, perNode = 0) {
      const { above, reader } = this;
      for (;;) {
        this.nodes.count += 1;
        if (this.nodes.count > LIMIT.treeNodes) refuse("the tree has too many nodes");
        const kind = reader.byte();
        if (!Object.hasOwn(kinds, kind)) refuse(`the tree has an unknown node (${kind})`);
        const depth = above.length;
        spend(perNode);
        kinds[kind]();
        if (above.length > depth) continue;
        // Up from a leaf to the nearest node whose right child is still to come.
        let top = above[above.length - 1];
        while (top !== undefined && top.right === null) {
          top.undo();
          above.pop();
          top = above[above.length - 1];
        }
        if (top === undefined) break;
        top.undo();
        top.undo = top.right();
        top.right = null;
      }
      if (reader.at !== this.tree.length) refuse("bytes after the tree");
    }
  }

  // Proves that in the root region no rival beats the label, except in sentences that are counted: those it shows to be
  // broken, and those it leaves open.
  function checkTree(words, tree, { level, swaps, label, rivals, counting }) {
    const walk = new Walk(tree);
    const { reader } = walk;
    const { layers } = words.network;
    const space = new Space(words, swaps);
    const region = {
      slopes: new Map(), // layer -> element -> value of node 8: slope, or height and stairs
      joint: new Map(), // layer -> groups: values (by element), and what is known of their patterns
      rivals,
      precision: 32,
    };
    const counts = { broken: 0n, open: 0n, enumerated: 0n };
    let narrowed = 0; // rivals nodes above, under which nothing is counted

    const inSpace = (undo) => {
      space.known = null;
      return () => {
        space.known = null;
        undo();
      };
    };
    const narrow = (undo) => {
      narrowed += 1;
      return () => {
        narrowed -= 1;
        undo();
      };
    };
    const split = (left, right) => walk.split(left, right);

    // The two parts of what is there now, by a mask over what was there at first.
    function halves(mask, now, what) {
      const inMask = new Set(mask);
      const left = now.filter((x) => inMask.has(x));
      const right = now.filter((x) => !inMask.has(x));
      if (left.length !== inMask.size) refuse(`a ${what} node with what is not in the region`);
      if (left.length === 0 || right.length === 0) refuse(`a ${what} node with an empty side`);
      return [left, right];
    }

    const NODES = {
      1() { // linear
        if (!recipeShows(space, region, level, region.rivals.map((rival) => [label, rival]))) {
          refuse("a linear leaf does not show that no rival beats the label");
        }
      },
      2() { // enumerate
        counts.enumerated += countSentences(space.plan);
        if (counts.enumerated > LIMIT.enumerated) refuse("too many enumerated sentences");
        forEachSentence(space, (border, chosen) => {
          const verdict = judgeSentence(words, border, level, label, region.rivals, region.precision, chosen);
          if (verdict === "robust") return;
          if (!counting || narrowed > 0) refuse("in an enumerated sentence a rival does not stay behind the label");
          counts[verdict === "broken" ? "broken" : "open"] += 1n;
        });
      },
      3() { // open
        counts.open += counted();
      },
      16() { // broken
        const rival = reader.number();
        if (!region.rivals.includes(rival)) refuse("a broken leaf for a class that is no rival");
        counts.broken += counted();
        if (!recipeShows(space, region, level, [[rival, label]])) refuse(`a broken leaf does not show that class ${rival} beats the label`);
      },
      4() { // words
        const word = reader.number();
        if (word >= words.sizes.length) refuse("a word beyond the text");
        if (words.sizes[word] < 2) refuse("a words node for a word of one option");
        const mask = reader.mask(words.sizes[word]);
        const parts = halves(mask, space.cells[word].chosen, "words");
        split(...parts.map((part) => () => inSpace(keep(space.cells, word, makeCell(part)))));
      },
      7() { // rivals
        const mask = reader.mask(rivals.length).map((place) => rivals[place]);
        split(...halves(mask, region.rivals, "rivals").map((part) => () => narrow(keep(region, "rivals", part))));
      },
      8() { // slopes
        const entries = readTable(reader, layers, isOfNode8, 1, ["rectifier", "maximum"]);
        for (const [layer, pairs] of entries) {
          const counted = layer.kind === "rectifier" ? pairs.filter(([, value]) => value > 64) : pairs;
          if (counted.some(([i]) => rootsOf(words.network, layer.first + i) === null)) refuse("a height of what does not count swaps");
        }
        split(() => undoAll(entries.map(([layer, pairs]) => keepIn(region.slopes, layer, pairs))), null);
      },
      10() { // joint
        const count = reader.number();
        const joint = new Map();
        for (let i = 0; i < count; i++) {
          const layer = readLayer(reader, layers, ["rectifier"]);
          if (!layer.ids.every((id) => words.layer(id).front || words.layer(id).kind === "constant")) refuse("a joint group behind a nonlinear layer");
          const values = new Map(readElements(reader, layer, atMost(64)));
          if (values.size > 8) refuse("a joint group of more than 8 elements");
          const others = joint.get(layer) || [];
          if (others.some((other) => [...values.keys()].some((element) => other.values.has(element)))) refuse("an element in two joint groups");
          joint.set(layer, [...others, { values, keeps: count * (words.sizes.length + words.swaps) <= LIMIT.kept, known: null }]);
        }
        for (const group of [...region.joint.values()].flat()) group.known = null;
        split(() => keep(region, "joint", joint), null);
      },
    };
    if (words.network.isSmooth) {
      for (const kind of [1, 8, 10, 16]) delete NODES[kind];
      NODES[11] = () => { // precision
        const precision = reader.number();
        if (precision < 16 || precision > 64) refuse("a precision that is not from 16 to 64");
        split(() => keep(region, "precision", precision), null);
      };
      NODES[24] = () => { // boxes
        const segments = readRuns("a segment", words.sizes.length, "a word beyond the text");
        if (space.plan.free >= 0 && !boxesShow(space, words.smoothOf(level, region.precision), segments, label, region.rivals)) {
          refuse("boxes do not show that no rival beats the label");
        }
      };
      NODES[25] = () => { // attention
        if (level !== "real") refuse("an attention leaf at another level than real");
        if (space.plan.free >= 0 && !attentionShows(space, words.smoothOf(level, region.precision), label, region.rivals)) {
          refuse("an attention leaf does not show that no rival beats the label");
        }
      };
      NODES[26] = () => { // expansion
        const reach = reader.number();
        const chains = readRuns("a chain", 2, "a chain in no order");
        if (space.plan.free >= 0 && !expansionShows(space, words.smoothOf(level, region.precision), reach, chains, label, region.rivals)) {
          refuse("an expansion leaf does not show that no rival beats the label");
        }
      };
    }
    // Segments and chains: layers first to end - 1, and a number below `most`, the word or the order.
    function readRuns(what, most, reason) {
      const runs = [];
      const count = reader.number();
      let first = 0;
      for (let i = 0; i < count; i++) {
        spend(1);
        first += reader.number();
        const length = reader.number();
        const last = reader.number();
        if (length < 1) refuse(`${what} without layers`);
        if (first + length >= words.network.layers.length) refuse(`${what} beyond the layers of the network`);
        if (last >= most) refuse(reason);
        runs.push({ first, end: first + length, word: last, order: last });
        first += length;
      }
      return runs;
    }
    // What a leaf counts that is not about robust sentences.
    function counted() {
      if (!counting) refuse("an open or broken leaf where nothing is counted");
      if (narrowed > 0) refuse("an open or broken leaf below a rivals node");
      return countSentences(space.plan);
    }

    walk.run(NODES, words.sizes.length);
    return counts;
  }

  // ---------------------------------------------------------------------------------------------------------------
  // Boxes and balls (sections 14 and 16): networks of numbers. Layer 0 of the page, the inputs, is layers[1].
  // ---------------------------------------------------------------------------------------------------------------

  // The exact elements where the inputs are num[i] / den: by id, over the denominator of their layer.
  function evaluateAt(network, { num, den }) {
    const values = new Array(network.size);
    const dens = [];
    for (const layer of network.layers) {
      lookAtClock();
      if (layer.kind === "constant" || layer.kind === "numbers") {
        const given = layer.kind === "constant" ? layer : { num, den };
        given.num.forEach((x, i) => (values[layer.first + i] = x));
        dens.push(given.den);
      } else {
        const made = denominators(layer, layersRead(network, layer), ({ number }) => dens[number]);
        forward(network, { ...layer, ...made }, values);
        dens.push(made.den);
      }
    }
    return { values, dens };
  }

  // ---- The network of a case (section 16.3)

  // Which elements move when these inputs do.
  function findMoving({ layers, size }, isFree) {
    const moves = new Uint8Array(size);
    for (const layer of layers) {
      const { kind, first, ids } = layer;
      spend(ids.length + layer.size);
      if (kind === "constant") continue;
      if (kind === "numbers") {
        moves.set(isFree, first);
        continue;
      }
      const someMoves = ([start, end]) => {
        for (let at = start; at < end; at++) if (moves[ids[at]] === 1) return 1;
        return 0;
      };
      if (kind === "affine") {
        const listMoves = range(layer.starts.length - 1).map((list) => someMoves([layer.starts[list], layer.starts[list + 1]]));
        for (let i = 0; i < layer.size; i++) moves[first + i] = listMoves[layer.listOf[i]];
      } else {
        for (let i = 0; i < layer.size; i++) moves[first + i] = someMoves(placesOf(layer, i));
      }
    }
    return moves;
  }
  // What does not move is a number: `values` over `dens`, see evaluateAt.
  function networkOfCase(network, isFree, { values, dens }) {
    const { layers, layerOf } = network;
    const moves = findMoving(network, isFree);
    const stays = new Uint8Array(network.size);
    for (const id of network.logits) stays[id] = 1;
    for (const layer of layers) {
      if (layer.kind !== "maximum") continue;
      for (let i = 0; i < layer.size; i++) {
        if (moves[layer.first + i] === 1) layer.ids.subarray(layer.starts[i], layer.starts[i + 1]).forEach((id) => (stays[id] = 1));
      }
    }
    const fixed = range(network.size).filter((id) => stays[id] === 1 && moves[id] === 0);
    const den = [...new Set(fixed.map((id) => layerOf[id]))].map((number) => dens[number]).reduce(leastMultiple, 1n);
    const numberOf = new Int32Array(network.size).fill(-1);
    fixed.forEach((id, i) => (numberOf[id] = i));
    const num = mapped(fixed, (id) => values[id] * (den / dens[layerOf[id]]));
    const made = [{ kind: "constant", first: 0, size: fixed.length, ids: [], num, den }];
    let size = fixed.length;
    for (const layer of layers.slice(1)) {
      lookAtClock();
      const first = size;
      const elements = range(layer.size).filter((i) => moves[layer.first + i] === 1);
      for (const i of elements) numberOf[layer.first + i] = size++;
      made.push({ kind: layer.kind, first, size: elements.length, ...RESTRICTED[layer.kind](layer, elements, { moves, numberOf, values, dens, layerOf }) });
    }
    const numbered = new Int32Array(size);
    made.forEach((layer, number) => numbered.fill(number, layer.first, layer.first + layer.size));
    const found = { layers: made, layerOf: numbered, size, logits: network.logits.map((id) => numberOf[id]) };
    made.forEach((layer, number) => {
      layer.number = number;
      layer.front = layer.kind !== "constant" && !isNonlinear(layer) && layersRead(found, layer).every((source) => source.front || source.kind === "constant");
    });
    return { ...found, nonlinear: made.filter(isNonlinear), scratch: { coefficients: new Array(size), touched: made.map(() => []) } };
  }
  const RESTRICTED = {
    numbers: () => ({ ids: [] }),
    rectifier: ({ ids, alpha }, elements, { numberOf }) => ({ ids: Int32Array.from(elements, (i) => numberOf[ids[i]]), alpha }),
    maximum({ ids, starts }, elements, { numberOf }) {
      const windows = [];
      const ends = [0];
      for (const i of elements) {
        const window = Array.from(ids.subarray(starts[i], starts[i + 1]), (id) => numberOf[id]);
        for (const id of window.sort((a, b) => a - b)) windows.push(id);
        ends.push(windows.length);
      }
      return { ids: Int32Array.from(windows), starts: ends };
    },
    // The fixed part of a row is the whole at the center, less what moves there.
    affine(layer, elements, { moves, numberOf, values, dens, layerOf }) {
      const biasDen = dens[layer.number];
      const [ids, weights, starts, bias] = [[], [], [0], []];
      for (const i of elements) {
        const { start, end, at } = rowOf(layer, i);
        let rest = values[layer.first + i];
        spend(end - start);
        for (let k = 0; k < end - start; k++) {
          const id = layer.ids[start + k];
          if (moves[id] === 0) continue;
          const weight = layer.weights[at + k];
          ids.push(numberOf[id]);
          weights.push(weight);
          if (weight !== 0n) rest -= weight * values[id] * (biasDen / (layer.weightDen * dens[layerOf[id]]));
        }
        starts.push(ids.length);
        bias.push(rest);
      }
      const own = Int32Array.from(elements, (_, i) => i);
      return { ids: Int32Array.from(ids), listOf: own, starts, weights, weightsOf: own, weightStarts: starts, weightDen: layer.weightDen, bias, biasDen };
    },
  };

  // ---- Affine functions: { terms: pairs of a place and a coefficient, constant, den }, in integers without common divisor

  function inLowestTerms(terms, den, constant) {
    const common = leastMultiple(den, constant.den);
    const factor = common / den;
    const scaled = [...terms.map(([, x]) => x * factor), constant.num * (common / constant.den)];
    let divisor = common;
    for (const x of scaled) {
      if (divisor === 1n) break;
      divisor = greatestDivisor(x, divisor);
    }
    return {
      terms: terms.map(([place], k) => [place, scaled[k] / divisor]), constant: scaled[terms.length] / divisor, den: common / divisor,
    };
  }
  const turned = ({ terms, constant, den }) => ({ terms: terms.map(([place, x]) => [place, -x]), constant: -constant, den });

  // ---- Regions (section 14.3). All about inputs is in units of 1 / scale; terms name inputs by their number.
  // A region is { low, high, phases: by rectifier and element, 1 (>= 0) or -1, plane: { normal, least } or null, kept:
  // bounds by id or null, found: what was last found of its bounds, or null }.

  class Corner {
    // ball: null, or of each input the center and the reach, in units.
    constructor(network, scale, ball) {
      Object.assign(this, { network, scale, ball, rows: new Map(), sums: new Map() });
    }
    // An element affine in the inputs as a function of them.
    row(id) {
      if (!this.rows.has(id)) this.rows.set(id, this.reduced([[id, 1n]], (sum) => this.toInputs(sum)));
      return this.rows.get(id);
    }
    // An affine element as a function of elements of nonlinear layers and of elements affine in the inputs.
    sum(id) {
      if (!this.sums.has(id)) {
        this.sums.set(id, this.reduced([[id, 1n]], (sum) => {
          const { layers, layerOf } = this.network;
          for (let number = layerOf[id]; number >= 0; number--) {
            if (layers[number].kind === "constant" || (layers[number].kind === "affine" && !layers[number].front)) sum.passLinear(layers[number], number);
          }
          return layers.flatMap((_, number) => sum.take(number));
        }));
      }
      return this.sums.get(id);
    }
    reduced(terms, pass) {
      const sum = new Combination(this.network, terms);
      try {
        return inLowestTerms(pass(sum), sum.den, sum.constant);
      } finally {
        sum.finish();
      }
    }
    toInputs(sum) {
      const { layers } = this.network;
      for (let number = layers.length - 1; number >= 0; number--) {
        if (number !== INPUTS && (layers[number].front || layers[number].kind === "constant")) sum.passLinear(layers[number], number);
      }
      return sum.take(INPUTS).map(([id, x]) => [id - layers[INPUTS].first, x]);
    }

    // Of a function of the inputs, in units of 1 / (den scale): its least and greatest value in a region.
    extremes({ low, high }, f) {
      let [least, most] = [0n, 0n];
      spend(2 * f.terms.length);
      for (const [i, x] of f.terms) {
        least += x * (x > 0n ? low[i] : high[i]);
        most += x * (x > 0n ? high[i] : low[i]);
      }
      if (this.ball !== null) {
        const { middle, reach } = this.inBall(f);
        least = larger(least, middle - reach);
        most = smaller(most, middle + reach);
      }
      const constant = f.constant * this.scale;
      return [least + constant, most + constant];
    }
    inBall(f) {
      if (f.round === undefined) {
        const { center, reach } = this.ball;
        let [middle, squares] = [0n, 0n];
        spend(2 * f.terms.length);
        for (const [i, x] of f.terms) {
          middle += x * center[i];
          squares += (x * reach[i]) ** 2n;
        }
        const root = squareRoot(squares);
        f.round = { middle, reach: root * root === squares ? root : root + 1n };
      }
      return f.round;
    }

    // The greatest value where the plane holds, as section 14.3 says: { num, den }, in the same units, or null.
    mostBesidePlane(region, f) {
      const { low, high, plane: { normal, least } } = region;
      const coefficients = new Array(normal.length).fill(0n);
      for (const [i, x] of f.terms) coefficients[i] = x;
      // The slope of the bound in u, from u = 0 on; where a coefficient of c + u s is 0, its input changes ends.
      let slope = -least;
      const turns = [];
      normal.forEach((s, i) => {
        const c = coefficients[i];
        const sign = c !== 0n ? c : s;
        slope += s * (sign > 0n ? high[i] : low[i]);
        if ((c > 0n && s < 0n) || (c < 0n && s > 0n)) turns.push({ i, u: nearestQuotient(absolute(c), absolute(s)) });
      });
      spend(4 * normal.length);
      if (turns.length === 0) return null;
      turns.sort((a, b) => a.u.float - b.u.float);
      let best = turns[0];
      for (const turn of turns) {
        best = turn;
        slope += absolute(normal[turn.i]) * (high[turn.i] - low[turn.i]);
        if (slope >= 0n) break;
      }
      const { num: p, den: r } = best.u;
      const terms = [];
      normal.forEach((s, i) => {
        const x = r * coefficients[i] + p * s;
        if (x !== 0n) terms.push([i, x]);
      });
      const [, most] = this.extremes(region, { terms, constant: f.constant * r, den: 1n });
      return { num: most - p * least, den: r };
    }

    // Bounds of an element, in units of 2^-64, in a leaf whose bounds of earlier elements are known.
    bounds(leaf, id) {
      const { network, scale } = this;
      const { region, clamps } = leaf;
      lookAtClock();
      const layer = network.layers[network.layerOf[id]];
      const known = region.kept === null || !(layer.front || layer.kind === "affine") ? undefined : region.kept.get(id);
      let found = known;
      if (known === undefined || hasBothSigns(known)) {
        found = this.anew(leaf, id, layer, known);
      }
      const phase = clamps.get(id);
      if (phase === undefined) return found;
      return [phase.atLeast ? larger(found[0], 0n) : found[0], phase.atMost ? smaller(found[1], 0n) : found[1]];
    }
    anew(leaf, id, layer, known) {
      const { region } = leaf;
      const both = ([l, u]) => (known === undefined ? [l, u] : [larger(l, known[0]), smaller(u, known[1])]);
      if (layer.front) {
        const f = this.row(id);
        const den = f.den * this.scale;
        let [least, most] = this.extremes(region, f);
        [least, most] = [floorDivide(least * ONE, den), ceilDivide(most * ONE, den)];
        if (region.plane !== null && least < 0n && most > 0n) {
          const [above, below] = [f, turned(f)].map((g) => this.mostBesidePlane(region, g));
          if (above !== null) most = smaller(most, ceilDivide(above.num * ONE, above.den * den));
          if (below !== null) least = larger(least, -ceilDivide(below.num * ONE, below.den * den));
        }
        return both([least, most]);
      }
      if (layer.kind !== "affine") return both(elementBounds(leaf, id));
      const { terms, constant, den } = this.sum(id);
      let [least, most] = [constant * ONE, constant * ONE];
      spend(2 * terms.length);
      for (const [element, x] of terms) {
        const [l, u] = boundsIn(leaf, element, leaf.boundsOf);
        least += x * (x > 0n ? l : u);
        most += x * (x > 0n ? u : l);
      }
      const summed = both([floorDivide(least, den), ceilDivide(most, den)]);
      if (!hasBothSigns(summed)) return summed;
      const [l, u] = [1n, -1n].map((sign) => {
        const f = this.reduced([[id, sign]], (sum) => {
          passBack(leaf, sum, false);
          return this.toInputs(sum);
        });
        return floorDivide(this.extremes(region, f)[0] * ONE, f.den * this.scale);
      });
      return [larger(summed[0], l), smaller(summed[1], -u)];
    }

    // The bounds of a region: found once, and kept directly below a cut.
    find(region) {
      if (region.found !== null) return region.found;
      const clamps = new Map();
      for (const [layer, phases] of region.phases) {
        for (const [i, sign] of phases) {
          const clamp = clamps.get(layer.ids[i]) ?? { atLeast: false, atMost: false };
          clamp[sign > 0 ? "atLeast" : "atMost"] = true;
          clamps.set(layer.ids[i], clamp);
        }
      }
      const leaf = { network: this.network, region, clamps, bounds: new Map(), inputs: new Map(), lines: new Map(), gains: new Map(), losses: new Map(), changeCount: 0 };
      leaf.boundsOf = (...given) => this.bounds(...given);
      findBounds(leaf, leaf.boundsOf);
      region.found = leaf;
      return leaf;
    }
    holdsNothing(region) {
      const { low, high } = region;
      if (low.some((end, i) => end > high[i])) return true;
      return [...this.find(region).inputs.values()].some((ends) => ends.low.some((l, at) => l > ends.high[at]));
    }

    // What multipliers make of the constraints, as a function of the inputs that is not above their weighted sum.
    functionOf(region, { facts, den }, { weights, slopes, betas, shift }) {
      const leaf = { ...this.find(region), region: { slopes, joint: new Map(), betas, shift, phases: region.phases } };
      return this.reduced([], (sum) => {
        sum.den = den;
        weights.forEach((weight, k) => {
          if (weight === 0) return;
          const by = BigInt(weight);
          for (const [id, x] of facts[k].terms) sum.add(id, by * x);
          sum.addConstant(by * facts[k].constant, den);
        });
        passBack(leaf, sum, true);
        return this.toInputs(sum);
      });
    }
  }
  // The float64 number nearest to a / b, for positive integers: as a float, and as a fraction.
  function nearestQuotient(a, b) {
    const shift = BigInt(Math.max(0, b.toString(2).length - a.toString(2).length + 64));
    const whole = (a << shift) / b;
    // At least 63 bits; the last one says whether something is left, so that nothing looks like half a step that is none.
    const float = Number(whole * b === a << shift ? whole : whole | 1n);
    return { float: float / 2 ** Number(shift), num: BigInt(float), den: 1n << shift };
  }
  const INPUTS = 1;
  const hasBothSigns = ([l, u]) => l < 0n && u > 0n;

  // ---- Nodes (section 14.4)

  // What a cut makes of r - the sum of s_i X_i, which is not above 0 at answers.
  function planeOf({ terms, constant }, { low, high }, scale) {
    const s = new Array(low.length).fill(0n);
    for (const [i, x] of terms) s[i] = -x;
    const most = s.reduce((all, x) => larger(all, absolute(x)), 0n);
    const k = BigInt(Math.max(0, most.toString(2).length - 128));
    let rest = constant * scale;
    const normal = s.map((x, i) => {
      const q = x >> k;
      rest -= (x - (q << k)) * high[i];
      return q;
    });
    return { normal, least: rest >> k };
  }
  function closerEnds({ normal, least }, { low, high }) {
    let room = -least;
    normal.forEach((q, i) => (room += q * (q > 0n ? high[i] : low[i])));
    return {
      low: low.map((l, i) => (normal[i] > 0n ? larger(l, high[i] - ceilDivide(room, normal[i])) : l)),
      high: high.map((u, i) => (normal[i] < 0n ? smaller(u, low[i] + ceilDivide(room, -normal[i])) : u)),
    };
  }

  // Proves that no point between the ends (and in the ball) meets all facts. nodes counts those of all trees.
  function checkNumericTree(corner, facts, ends, tree, nodes) {
    const { layers } = corner.network;
    const region = { ...ends, phases: new Map(), plane: null, kept: null, found: null };
    const walk = new Walk(tree, nodes);
    const { reader } = walk;
    let held = 0;

    const changed = (...undos) => undoAll([keep(region, "found", null), ...undos]);
    function multipliers() {
      const weights = facts.facts.map(() => reader.number());
      const slopes = readTable(reader, layers, atMost(64), 0);
      const shift = reader.number();
      if (shift > 30) refuse("betas finer than 2^-30");
      const betas = readTable(reader, layers, atMost(2 ** 31), 0);
      return { weights, slopes: asMaps(slopes), shift: BigInt(shift), betas: asMaps(betas) };
    }
    const atEnd = (list, i, x, choose) => keep(list, i, choose(list[i], x));
    const phased = (layer, i, sign) => changed(keepIn(region.phases, layer, [[i, sign]]));

    walk.run({
      1() { // linear
        const given = multipliers();
        if (corner.holdsNothing(region)) return;
        const f = corner.functionOf(region, facts, given);
        const [least] = corner.extremes(region, f);
        const isStrict = given.weights.some((weight, k) => weight > 0 && facts.facts[k].strict);
        if (!(least > 0n || (least === 0n && isStrict))) refuse("a linear leaf does not show that there is no answer");
      },
      2() { // cut
        const given = multipliers();
        if (corner.holdsNothing(region)) return walk.split(() => () => {}, null);
        const plane = planeOf(corner.functionOf(region, facts, given), region, corner.scale);
        const { low, high } = closerEnds(plane, region);
        held += 3 * low.length;
        if (held > LIMIT.held) lackOfMemory("the ends of so many regions");
        return walk.split(() => undoAll([
          keep(region, "low", low), keep(region, "high", high), keep(region, "plane", plane), keep(region, "kept", region.found.bounds),
          () => (held -= 3 * low.length),
        ]), null);
      },
      3() { // renew
        walk.split(() => changed(), null);
      },
      4() { // input
        const i = reader.number();
        const e = reader.number();
        if (i >= region.low.length || e > 64) refuse("an input node out of range");
        const x = reader.integer() * (corner.scale >> BigInt(e));
        walk.split(() => changed(atEnd(region.high, i, x, smaller)), () => changed(atEnd(region.low, i, x, larger)));
      },
      5() { // phase
        const layer = readLayer(reader, layers, ["rectifier"]);
        const i = reader.number();
        if (i >= layer.size) refuse("a phase of an element beyond its layer");
        if (region.phases.get(layer)?.has(i)) refuse("a phase of an element that has one");
        walk.split(() => phased(layer, i, -1), () => phased(layer, i, 1));
      },
    });
  }

  // ---- Forms (section 16.6): balls of networks that may be smooth, by no trees. Integers in units of 2^-q

  // floor(n / d + 1/2)
  const roundDivide = (n, d) => floorDivide(2n * n + d, 2n * d);
  const ceilRoot = (n) => {
    const root = squareRoot(n);
    return root * root === n ? root : root + 1n;
  };

  // A form is { f, g, e, reach }; g is null where all is 0. m: the number of free inputs that it is about.
  class Forms {
    constructor(network, { norm, q }, m) {
      Object.assign(this, { network, norm, q, m, one: 1n << q, limit: 1n << (40n + q) });
      this.s = m === 0 ? 1n : this.norm === "linf" ? BigInt(m) : ceilRoot(BigInt(m));
    }
    reachOf(g) {
      if (g === null) return 0n;
      spend(g.length);
      let sum = 0n;
      for (const x of g) sum += this.norm === "linf" ? absolute(x) : x * x;
      return this.norm === "linf" ? sum : ceilRoot(sum);
    }
    made(f, g, e, known) {
      const own = g === null || g.every((x) => x === 0n) ? null : g;
      const reach = known ?? this.reachOf(own);
      if (absolute(f) + reach + e >= this.limit) refuse("a form of a number of 2^40 or more");
      return { f, g: own, e, reach };
    }
    // The number num / den.
    constant(num, den) {
      return this.made(roundDivide(num * this.one, den), null, (num * this.one) % den === 0n ? 0n : 1n);
    }
    // A free input, the place-th: besides its way from there.
    free(num, den, place, reach) {
      const { f, e } = this.constant(num, den);
      const g = new Array(this.m).fill(0n);
      g[place] = roundDivide(reach.num * this.one, reach.den);
      return this.made(f, g, e + ((reach.num * this.one) % reach.den === 0n ? 0n : 1n));
    }
    // times: g by a fraction, rounded.
    scaled(g, num, den) {
      if (g === null) return null;
      spend(g.length);
      return g.map((x) => roundDivide(x * num, den));
    }

    affine(layer, i, forms) {
      const { start, end, at } = rowOf(layer, i);
      const { ids, weights, weightDen, bias, biasDen } = layer;
      let [sum, errors, reaches, g] = [0n, 0n, 0n, null];
      spend(end - start);
      for (let k = 0; k < end - start; k++) {
        const form = forms[ids[start + k]];
        const weight = weights[at + k];
        reaches += form.reach;
        if (weight === 0n) continue;
        sum += weight * form.f;
        errors += absolute(weight) * form.e;
        if (form.g === null) continue;
        const rounded = roundDivide(weight * this.one, weightDen);
        if (g === null) g = new Array(this.m).fill(0n);
        spend(this.m);
        if (rounded !== 0n) for (let j = 0; j < this.m; j++) if (form.g[j] !== 0n) g[j] += rounded * form.g[j];
      }
      const f = roundDivide(sum * biasDen + bias[i] * this.one * weightDen, weightDen * biasDen);
      const e = ceilDivide(errors, weightDen) + ceilDivide(reaches, 2n * this.one) + this.s;
      return this.made(f, this.scaled(g, 1n, this.one), e);
    }
    rectifier({ alpha: { num, den } }, x) {
      const v = x.reach + x.e;
      const [l, u] = [x.f - v, x.f + v];
      if (l >= 0n) return x;
      // a and alpha over den 2^q
      const alpha = num * this.one;
      const over = den * this.one;
      let [a, more] = [alpha, 0n];
      if (u > 0n) {
        a = larger(alpha, floorDivide((u * den - num * l) * this.one, (u - l) * den) * den);
        more = ceilDivide(larger((alpha - a) * l, (over - a) * u), over);
      }
      const half = floorDivide(more, 2n);
      return this.made(roundDivide(a * x.f, over) + half, this.scaled(x.g, a, over), ceilDivide(a * x.e, over) + more - half + this.s);
    }
    difference(x, y) {
      if (y.g === null) return x.reach;
      if (x.g === null) return y.reach;
      return this.reachOf(x.g.map((a, j) => a - y.g[j]));
    }
    maximum(window) {
      const first = window.reduce((best, x) => (x.f > best.f ? x : best));
      let more = 0n;
      for (const x of window) if (x !== first) more = larger(more, x.f - first.f + this.difference(x, first) + x.e + first.e);
      const half = floorDivide(more, 2n);
      return this.made(first.f + half, first.g, first.e + more - half, first.reach);
    }
    product(x, y, isSame) {
      const both = x.reach * y.reach;
      // Twice B, and all over twice 2^q.
      const twiceB = isSame ? both : 0n;
      const over = 2n * this.one;
      const g = x.g === null && y.g === null ? null : range(this.m).map((j) => {
        const [a, b] = [x, y].map((form) => (form.g === null ? 0n : form.g[j]));
        return roundDivide(x.f * b + y.f * a, this.one);
      });
      spend(2 * this.m);
      const error = 2n * ((absolute(x.f) + x.reach + x.e) * y.e + (absolute(y.f) + y.reach) * x.e + both) - twiceB;
      return this.made(roundDivide(2n * x.f * y.f + twiceB, over), g, ceilDivide(error, over) + this.s);
    }
    floorOf(number, x) {
      return EXACT_CURVES[number](x, this.q)[0];
    }
    curve(number, x) {
      const { one } = this;
      const v = x.reach + x.e;
      const [l, u] = [x.f - v, x.f + v];
      if (number >= INVERSE && l <= 0n) refuse("a form of 1/x or a root that may not be above 0");
      if (number === EXP && u > 28n * one) refuse("exp of a number above 28");
      const F = (at) => this.floorOf(number, at);
      const y = F(x.f);
      let [a, c, error] = [0n, y, 0n];
      if ([TANH, SIGMOID, ERF].includes(number) && l < 0n && u > 0n) {
        const steepest = number === TANH ? one : number === SIGMOID ? one / 4n : slopeAt(ERF, 0n, this.q) + 8n;
        a = floorDivide(smaller(slopeAt(number, l, this.q), slopeAt(number, u, this.q)) - 8n + steepest, 2n);
        error = ceilDivide((steepest - a) * v, one) + 1n;
      } else {
        a = slopeAt(number, x.f, this.q);
        // Over 2^q.
        const z = 8n * v;
        const A = (F(l) - y) * one + a * v;
        const B = (F(u) - y) * one - a * v;
        const isConvex = number === EXP || number === INVERSE || (number !== ROOT && u <= 0n);
        const b = isConvex ? floorDivide(-z, one) : floorDivide(smaller(smaller(A, B), 0n), one) - 1n;
        const t = isConvex ? ceilDivide(larger(larger(A, B), 0n), one) + 1n : ceilDivide(z, one);
        const width = t + 1n - b;
        const half = floorDivide(width, 2n);
        c = y + b + half;
        error = width - half;
      }
      const [lowest, highest] = number === INVERSE ? [F(u), F(l)] : [F(l), F(u)];
      const width = highest + 1n - lowest;
      const half = floorDivide(width, 2n);
      if (width - half <= error) return this.made(lowest + half, null, width - half);
      return this.made(c, this.scaled(x.g, a, one), ceilDivide(absolute(a) * x.e, one) + error + this.s);
    }
    // By the rule of its layer.
    element(layer, i, forms) {
      const { kind, ids, starts } = layer;
      if (kind === "affine") return this.affine(layer, i, forms);
      if (kind === "rectifier") return this.rectifier(layer, forms[ids[i]]);
      if (kind === "product") return this.product(forms[ids[2 * i]], forms[ids[2 * i + 1]], ids[2 * i] === ids[2 * i + 1]);
      if (kind === "curve") return this.curve(layer.curve, forms[ids[i]]);
      return this.maximum(Array.from(ids.subarray(starts[i], starts[i + 1]), (id) => forms[id]));
    }
  }

  // z_y - z_r: { terms of elements that are no affine ones, constant, den }, in integers.
  function formMargin(network, label, rival) {
    const [y, r] = [network.logits[label], network.logits[rival]];
    const sum = new Combination(network, y === r ? [] : [[y, 1n], [r, -1n]]);
    try {
      for (let number = network.layers.length - 1; number > 0; number--) {
        if (network.layers[number].kind === "affine") sum.passLinear(network.layers[number], number);
      }
      return inLowestTerms(network.layers.flatMap((_, number) => sum.take(number)), sum.den, sum.constant);
    } finally {
      sum.finish();
    }
  }
  function formsShow(network, forms, made, label, rival) {
    const { terms, constant, den } = formMargin(network, label, rival);
    // The least D that makes 2^q b D and all k D integers.
    const divisor = terms.reduce((all, [, x]) => greatestDivisor(x, all), greatestDivisor(constant * made.one, den));
    let [middle, error, g] = [(constant * made.one) / divisor, 0n, new Array(made.m).fill(0n)];
    for (const [id, x] of terms) {
      const k = x / divisor;
      const form = forms[id];
      middle += k * form.f;
      error += absolute(k) * form.e;
      if (form.g !== null) g = g.map((all, j) => all + k * form.g[j]);
    }
    const rest = middle - made.reachOf(g) - error;
    return rest > 0n || (rest === 0n && label < rival);
  }
  function checkForms(network, { center, widths, label, rivals, norm, cases, precision }) {
    const { layers, size } = network;
    const still = new Array(size);
    const setting = { norm, q: BigInt(precision) };
    const alone = new Forms(network, setting, 0);
    for (const { free, radius } of cases) {
      const isFree = new Uint8Array(center.num.length);
      for (const [first, count] of free) isFree.fill(1, first, first + count);
      const moves = findMoving(network, isFree);
      const made = new Forms(network, setting, isFree.reduce((all, one) => all + one, 0));
      const forms = new Array(size);
      let place = 0;
      for (const layer of layers) {
        for (let i = 0; i < layer.size; i++) {
          const id = layer.first + i;
          lookAtClock();
          if (moves[id] === 0) {
            if (still[id] === undefined) {
              still[id] = layer.kind === "constant" ? alone.constant(layer.num[i], layer.den)
                : layer.kind === "numbers" ? alone.constant(center.num[i], center.den) : alone.element(layer, i, still);
            }
            forms[id] = still[id];
          } else if (layer.kind === "numbers") {
            const reach = { num: widths.num[i % widths.num.length] * radius.num, den: widths.den * radius.den };
            forms[id] = made.free(center.num[i], center.den, place++, reach);
          } else {
            forms[id] = made.element(layer, i, forms);
          }
        }
      }
      for (const rival of rivals) if (!formsShow(network, forms, made, label, rival)) refuse("the forms do not show that no rival beats the label");
    }
  }

  // ---- The certificate (sections 1 and 3) ----

  const HASH = /^[0-9a-f]{64}$/;
  const LEVELS = ["real", "float32", "kernel", "replay"];

  const isInteger = (value, low, high) => typeof value === "number" && Number.isInteger(value) && value >= low && value <= high;
  const isHash = (value) => typeof value === "string" && HASH.test(value);
  const isFileName = (value) => typeof value === "string" && FILE_NAME.test(value);
  const isAscending = (list) => list.every((x, i) => i === 0 || list[i - 1] < x);
  function record(value, keys, what) {
    if (!(value instanceof Map)) refuse(`${what} is not an object`);
    if (value.size !== keys.length || !keys.every((key) => value.has(key))) refuse(`${what} has other keys than it must have`);
    return Object.fromEntries(keys.map((key) => [key, value.get(key)]));
  }

  // The inputs and words of a certificate, as the network needs them: of each input its role, its first position and its
  // integers; of each word its first position and its options; and by position what may stand there (the original first,
  // then one for each option) and the number of the word that stands there, or -1.
  function readStatement(inputs, words) {
    const areTokens = (list) => Array.isArray(list) && list.length > 0 && list.every((token) => isInteger(token, 0, 2 ** 31 - 1));
    const isInput = (input) => Array.isArray(input) && input.length === 2 && ["words", "constant"].includes(input[0]) && areTokens(input[1]);
    if (!Array.isArray(inputs) || inputs.length === 0 || !inputs.every(isInput)) refuse("the inputs");
    if (!inputs.some(([role]) => role === "words")) refuse("no input holds words");
    const standing = inputs.flatMap(([, original]) => original.map((token) => [token]));
    if (standing.length > LIMIT.positions) refuse("too many positions");
    let first = 0;
    const parts = inputs.map(([role, original]) => {
      first += original.length;
      return { role, original, first: first - original.length, end: first };
    });

    if (!Array.isArray(words)) refuse("the words");
    const wordAt = new Int32Array(standing.length).fill(-1);
    let [end, total] = [0, 0];
    const read = words.map((word, number) => {
      if (!Array.isArray(word) || word.length !== 2) refuse("a word that is not a position and options");
      const [start, options] = word;
      if (!isInteger(start, end, standing.length - 1)) refuse("words that do not ascend, overlap, or stand beyond the text");
      if (!Array.isArray(options) || options.length === 0 || options.length > LIMIT.options || !options.every(areTokens)) refuse("the options of a word");
      const { length } = options[0];
      if (options.some((option) => option.length !== length)) refuse("options of different lengths");
      if (new Set(options.map((option) => option.join())).size !== options.length) refuse("an option twice");
      total += options.length * length;
      if (total > LIMIT.integers) refuse("too many integers in the options");
      end = start + length;
      if (!parts.some((part) => part.role === "words" && part.first <= start && end <= part.end)) refuse("a word that is not inside one input of words");
      for (let i = 0; i < length; i++) {
        if (options[0][i] !== standing[start + i][0]) refuse("a word whose first option is not what stands there");
        standing[start + i] = options.map((option) => option[i]);
        wordAt[start + i] = number;
      }
      return { start, options };
    });
    return { inputs: parts, words: read, standing, wordAt };
  }

  // The model of a certificate.
  function readFiles(value) {
    const model = record(value, ["file", "sha256", "tensors"], "model");
    if (!isFileName(model.file) || !isHash(model.sha256)) refuse("the name or hash of the model");
    const isTensor = (entry) => Array.isArray(entry) && entry.length === 2 && isFileName(entry[0]) && isHash(entry[1]);
    if (!Array.isArray(model.tensors) || !model.tensors.every(isTensor)) refuse("the external tensors");
    if (!isAscending(model.tensors.map(([file]) => file))) refuse("external tensors not in ascending order");
    return model;
  }

  // The shape of a certificate; everything else is checked against the model.
  function readCertificate(parsed, name) {
    const certificate = record(parsed, [
      "format", "version", "id", "model", "network", "vocabulary", "text", "synonyms", "inputs", "words", "label", "rivals", "lower", "count", "upper",
    ], "the certificate");
    const { format, version, id, network, text, synonyms, label, rivals } = certificate;
    if (format !== "swapproof certificate") refuse("another format");
    if (version !== 2) refuse("another version of the format");
    const isBig = typeof id === "bigint" && id >= 0n && id < 1n << 63n;
    if (!isBig && !isInteger(id, 0, Number.MAX_SAFE_INTEGER)) refuse("the id is not an integer from 0 to 2^63 - 1");
    const numbered = /^([0-9]{6})\.json$/.exec(name);
    if (numbered && id !== Number(numbered[1])) refuse("the id is not that of the file name");
    if (!isHash(network)) refuse("the hash of the network");
    if (!isHash(text)) refuse("the hash of the text");
    if (synonyms !== null && !isHash(synonyms)) refuse("the hash of the synonyms");

    const model = readFiles(certificate.model);
    const part = (key, keys) => (certificate[key] === null ? null : record(certificate[key], keys, key));
    const vocabulary = part("vocabulary", ["file", "sha256"]);
    if (vocabulary !== null && !(isFileName(vocabulary.file) && isHash(vocabulary.sha256))) refuse("the name or hash of the vocabulary");

    const statement = readStatement(certificate.inputs, certificate.words);
    const { words } = statement;

    const isClass = (c) => isInteger(c, 0, LIMIT.classes - 1);
    if (!isClass(label)) refuse("the label");
    if (!Array.isArray(rivals) || rivals.length === 0 || !rivals.every((rival) => isClass(rival) && rival !== label)) refuse("the rivals");
    if (!isAscending(rivals)) refuse("rivals not in ascending order");

    const treeKeys = ["level", "recipe", "swaps", "tree"];
    const lower = part("lower", treeKeys);
    const count = part("count", [...treeKeys, "robust", "broken", "total"]);
    for (const claim of [lower, count]) {
      if (claim === null) continue;
      if (!["real", "float32", "kernel"].includes(claim.level)) refuse("the level of a tree");
      if (claim.recipe !== "linear-2" && claim.recipe !== "smooth-1") refuse("another recipe");
      if (!isInteger(claim.swaps, 0, 1000000)) refuse("the number of swaps of a tree");
      if (typeof claim.tree !== "string") refuse("the tree is not a string");
      claim.bytes = decodeBase64(claim.tree);
    }
    const isDecimal = (number) => typeof number === "string" && /^(0|[1-9][0-9]*)$/.test(number);
    if (count !== null && ![count.robust, count.broken, count.total].every(isDecimal)) refuse("a number of sentences");
    const upper = part("upper", ["levels", "swaps"]);
    if (upper !== null) {
      const { levels, swaps } = upper;
      if (!Array.isArray(levels) || levels.length === 0 || !levels.every((level) => LEVELS.includes(level))) refuse("the levels of the high end");
      if (!isAscending(levels.map((level) => LEVELS.indexOf(level)))) refuse("the order of the levels of the high end");
      const isPair = (swap) => Array.isArray(swap) && swap.length === 2 && isInteger(swap[0], 0, words.length - 1);
      if (!Array.isArray(swaps) || !swaps.every(isPair)) refuse("the swaps of the high end");
      if (!isAscending(swaps.map(([word]) => word))) refuse("the swaps of the high end do not ascend");
      // The original is option 0.
      if (!swaps.every(([word, option]) => isInteger(option, 1, words[word].options.length - 1))) refuse("a swap to what is not an option, or the original");
    }
    if (lower === null && count === null && upper === null) refuse("nothing is claimed");
    if (lower !== null && count !== null && count.swaps <= lower.swaps) refuse("the count adds nothing to the low end");
    if (lower !== null && upper !== null && upper.swaps.length <= lower.swaps) refuse("the low end contradicts the high end");
    return { id, model, network, vocabulary, statement, label, rivals, lower, count, upper };
  }

  // ---- The certificates of boxes and balls (sections 14.2 and 16.2)

  // An exact number as a fraction.
  function readRational(text, what) {
    const parts = typeof text === "string" ? /^(-?(?:0|[1-9][0-9]{0,1999}))(?:\/([1-9][0-9]{0,1999}))?$/.exec(text) : null;
    if (parts === null || parts[1] === "-0") refuse(`${what} is no number`);
    const [num, den] = [BigInt(parts[1]), BigInt(parts[2] ?? 1)];
    if (parts[2] !== undefined && (den === 1n || greatestDivisor(num, den) !== 1n)) refuse(`${what} is not in lowest terms`);
    return { num, den };
  }
  function readNumericHead(parsed, version, recipe, more) {
    const keys = ["format", "version", "recipe", "model", "network", "inputs", "outputs", "cases", ...more];
    const certificate = record(parsed, keys, "the certificate");
    if (certificate.version !== version || certificate.recipe !== recipe) refuse("another version or recipe");
    if (!isHash(certificate.network)) refuse("the hash of the network");
    const { cases, inputs, outputs } = certificate;
    if (!isInteger(outputs, 1, LIMIT.outputs)) refuse("the number of outputs");
    if (!isInteger(inputs, 1, LIMIT.inputs)) refuse("the number of inputs");
    if (!Array.isArray(cases) || cases.length > LIMIT.cases) refuse("the cases");
    return { ...certificate, model: readFiles(certificate.model) };
  }
  function readTree(text) {
    if (typeof text !== "string") refuse("a tree that is not a string");
    return decodeBase64(text);
  }

  function readBoxes(parsed) {
    const certificate = readNumericHead(parsed, 2, "box-2", ["query"]);
    const { inputs, outputs } = certificate;
    if (inputs > LIMIT.outputs || inputs + outputs > LIMIT.inputsAndOutputs) refuse("too many inputs and outputs");
    const query = record(certificate.query, ["file", "sha256"], "query");
    if (!isFileName(query.file) || !isHash(query.sha256)) refuse("the name or hash of the query");
    const end = (text) => {
      const x = readRational(text, "an end");
      if (absolute(x.num) >= LIMIT.input * x.den) refuse("an end of 2^128 or more");
      return x;
    };
    const cases = mapped(certificate.cases, (value) => {
      const { box, constraints, tree } = record(value, ["box", "constraints", "tree"], "a case");
      if (!Array.isArray(box) || box.length !== inputs) refuse("a box of another size");
      const ends = box.map((pair) => {
        if (!Array.isArray(pair) || pair.length !== 2) refuse("ends that are no pair");
        const [low, high] = pair.map(end);
        if (low.num * high.den > high.num * low.den) refuse("crossed ends");
        return [low, high];
      });
      if (!Array.isArray(constraints) || constraints.length > LIMIT.constraints) refuse("the constraints");
      return { ends, facts: constraints.map((fact) => readConstraint(fact, inputs, outputs)), tree: readTree(tree) };
    });
    return { ...certificate, query, cases };
  }
  function readConstraint(value, inputs, outputs) {
    const { coefficients, constant, strict } = record(value, ["coefficients", "constant", "strict"], "a constraint");
    if (!isInteger(strict, 0, 1)) refuse("a constraint that is neither strict nor not");
    if (!(coefficients instanceof Map)) refuse("coefficients that are no object");
    const terms = [...coefficients].map(([name, text]) => {
      const place = /^([XY])_(0|[1-9][0-9]{0,6})$/.exec(name);
      if (place === null || Number(place[2]) >= (place[1] === "X" ? inputs : outputs)) refuse("a coefficient of neither an input nor an output");
      const x = readRational(text, "a coefficient");
      if (x.num === 0n) refuse("a coefficient 0");
      return { isInput: place[1] === "X", number: Number(place[2]), x };
    });
    return { terms, constant: readRational(constant, "a constant"), strict: strict === 1 };
  }
  // Over one denominator, with ids of elements.
  function numberedFacts(network, facts) {
    const den = facts.flatMap(({ terms, constant }) => [...terms.map(({ x }) => x.den), constant.den]).reduce(leastMultiple, 1n);
    const whole = ({ num, den: own }) => num * (den / own);
    const idOf = ({ isInput, number }) => (isInput ? network.layers[INPUTS].first + number : network.logits[number]);
    return {
      den,
      facts: facts.map(({ terms, constant, strict }) => ({ terms: terms.map((term) => [idOf(term), whole(term.x)]), constant: whole(constant), strict })),
    };
  }

  // Numbers as bytes in form 1 or 2, as numerators over one denominator.
  function readNumbers(value, what) {
    const { form, numbers } = record(value, ["form", "numbers"], what);
    if (!isInteger(form, 1, 2)) refuse(`${what} in another form`);
    const bytes = readTree(numbers);
    const size = 4 * form;
    if (bytes.length % size !== 0) refuse(`${what} of a broken length`);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const data = Array.from({ length: bytes.length / size }, (_, i) => (form === 1 ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true)));
    if (!data.every(Number.isFinite)) refuse(`${what} with what is no number`);
    const parts = mapped(data, fractionOf);
    const den = parts.reduce((most, part) => larger(most, part.den), 1n);
    return { num: parts.map((part) => part.num * (den / part.den)), den };
  }
  // A float64 number over a power of two.
  function fractionOf(x) {
    let [whole, shift] = [x, 0];
    // Each step is exact: the last bit of what is not whole is far above the least number.
    while (!Number.isInteger(whole)) {
      whole *= 2;
      shift += 1;
    }
    return { num: BigInt(whole), den: 1n << BigInt(shift) };
  }

  function readBalls(parsed) {
    const isOfForms = parsed.get("recipe") === "forms-1";
    const keys = ["center", "widths", "label", "rivals", "norm", ...(isOfForms ? ["precision"] : [])];
    const certificate = readNumericHead(parsed, 1, isOfForms ? "forms-1" : "ball-1", keys);
    if (isOfForms && !isInteger(certificate.precision, 16, 256)) refuse("a precision that is not from 16 to 256");
    const { inputs, outputs, label, rivals, norm } = certificate;
    const center = readNumbers(certificate.center, "the center");
    if (center.num.length !== inputs) refuse("a center of another size");
    const widths = readNumbers(certificate.widths, "the widths");
    if (widths.num.length === 0 || inputs % widths.num.length !== 0) refuse("widths whose number does not divide the inputs");
    if (widths.num.some((x) => x <= 0n)) refuse("a width that is not above 0");
    if (!isInteger(label, 0, outputs - 1)) refuse("the label");
    if (!Array.isArray(rivals) || rivals.length === 0 || !rivals.every((rival) => isInteger(rival, 0, outputs - 1) && rival !== label)) refuse("the rivals");
    if (!isAscending(rivals)) refuse("rivals not in ascending order");
    if (norm !== "l2" && norm !== "linf") refuse("another norm");
    if (certificate.cases.length === 0) refuse("no case");
    const cases = mapped(certificate.cases, (value) => {
      const { free, radius, trees } = record(value, ["free", "radius", ...(isOfForms ? [] : ["trees"])], "a case");
      const isRun = (run) => Array.isArray(run) && run.length === 2 && isInteger(run[0], 0, inputs - 1) && isInteger(run[1], 1, inputs - run[0]);
      if (!Array.isArray(free) || free.length === 0 || !free.every(isRun)) refuse("the free inputs");
      if (!free.every(([first], k) => k === 0 || free[k - 1][0] + free[k - 1][1] < first)) refuse("runs of free inputs without a gap");
      const reach = readRational(radius, "a radius");
      if (reach.num <= 0n) refuse("a radius that is not above 0");
      if (isOfForms) return { free, radius: reach };
      if (!Array.isArray(trees) || trees.length !== rivals.length) refuse("another number of trees than of rivals");
      return { free, radius: reach, trees: trees.map(readTree) };
    });
    return { ...certificate, center, widths, cases };
  }

  function scaleOf(dens) {
    return [...new Set(dens)].reduce(leastMultiple, ONE);
  }
  function checkBoxes(network, { cases }) {
    const nodes = { count: 0 };
    const scale = scaleOf(cases.flatMap(({ ends }) => ends.flat().map(({ den }) => den)));
    const corner = new Corner(network, scale, null);
    for (const { ends, facts, tree } of cases) {
      const [low, high] = [0, 1].map((side) => ends.map((pair) => pair[side].num * (scale / pair[side].den)));
      checkNumericTree(corner, numberedFacts(network, facts), { low, high }, tree, nodes);
    }
    return nodes.count;
  }
  function checkBalls(network, { center, widths, label, rivals, norm, cases }) {
    const nodes = { count: 0 };
    const whole = evaluateAt(network, center);
    for (const { free, radius, trees } of cases) {
      const isFree = new Uint8Array(center.num.length);
      for (const [first, count] of free) isFree.fill(1, first, first + count);
      const own = networkOfCase(network, isFree, whole);
      const inputs = range(isFree.length).filter((i) => isFree[i] === 1);
      const reachDen = widths.den * radius.den;
      const reaches = widths.num.map((width) => width * radius.num);
      // Of the denominators in lowest terms, of all c_i and all R w_i.
      const dens = [
        ...[...new Set(center.num)].map((x) => center.den / greatestDivisor(x, center.den)),
        ...reaches.map((x) => reachDen / greatestDivisor(x, reachDen)),
      ];
      const scale = scaleOf(dens);
      const middle = inputs.map((i) => (center.num[i] * scale) / center.den);
      const reach = inputs.map((i) => (reaches[i % reaches.length] * scale) / reachDen);
      const ends = { low: middle.map((x, i) => x - reach[i]), high: middle.map((x, i) => x + reach[i]) };
      const corner = new Corner(own, scale, norm === "l2" ? { center: middle, reach } : null);
      rivals.forEach((rival, k) => {
        const fact = { terms: [[own.logits[label], 1n], [own.logits[rival], -1n]], constant: 0n, strict: label < rival };
        checkNumericTree(corner, { den: 1n, facts: [fact] }, { low: [...ends.low], high: [...ends.high] }, trees[k], nodes);
      });
    }
    return nodes.count;
  }

  function checkUpper(words, { label, rivals, upper }) {
    const border = words.original.slice();
    for (const [word, option] of upper.swaps) words.swap(border, word, option);
    if (words.network.isSmooth) {
      for (const level of upper.levels.filter((other) => other !== "replay")) {
        const smooth = words.smoothOf(level, 64);
        const put = smooth.sentence(border, upper.swaps);
        if (!rivals.some((rival) => smooth.wins(rival, label, put))) {
          refuse(`in the sentence of the high end no rival beats the label for certain (${level})`);
        }
      }
      return;
    }
    const values = words.evaluate(border);
    const closer = once(() => sentenceErrors(words, values));
    for (const level of upper.levels) {
      const beats = (rival) => wins({ words, level, closer }, words.difference(values, rival, label), rival, label);
      if (level !== "replay" && !rivals.some(beats)) refuse(`in the sentence of the high end no rival beats the label for sure (${level})`);
    }
  }

  function checkCount(words, { label, rivals, count }) {
    const total = countSentences(new Space(words, count.swaps).plan);
    if (total.toString() !== count.total) refuse("the total number of sentences is another");
    const { broken, open } = checkTree(words, count.bytes, { ...count, label, rivals, counting: true });
    if (broken.toString() !== count.broken) refuse("the number of broken sentences is another");
    if ((total - broken - open).toString() !== count.robust) refuse("the number of robust sentences is another");
  }

  // ---- A run (sections 2 and 9) ----

  // What the world outside throws for a file that is there but cannot be read, as what it means here.
  function bytesOf(name, open) {
    try {
      return open();
    } catch (error) {
      return unusable(`${name} cannot be read: ${error.message}`);
    }
  }

  // The canonical network of a model that was read, for the inputs and words of a certificate.
  function networkOf(model, { inputs, standing }) {
    if (model.inputs.length !== inputs.length) refuse("the model has another number of inputs");
    model.inputs.forEach(({ length }, i) => {
      if (length !== null && length !== BigInt(inputs[i].original.length)) refuse("the model takes another number of positions");
    });
    // Of a text a network depends on the lengths of its inputs, on constants, and on what is computed from tokens.
    const form = JSON.stringify(inputs.map(({ role, original }) => (role === "words" ? original.length : original)));
    const isFor = ({ looks }) => looks.every(({ look, found }) => sameShape(look(standing), found));
    let known = model.networks.find((other) => other.form === form && isFor(other.network));
    if (known === undefined) {
      known = { form, network: buildNetwork(model, inputs, standing) };
      model.networks.push(known);
    }
    for (const { rows, positions } of known.network.lookups) {
      for (const position of positions) {
        spend(standing[position].length);
        if (standing[position].some((token) => token >= rows)) refuse("a token id beyond the rows of its table");
      }
    }
    return known.network;
  }

  // read(name, limit) gives the bytes of a file of the run folder, at most limit + 1 of them, or null if there is none.
  // isFolder: of a run folder, and not of one certificate; beside: as read, from the folder of that certificate.
  class Run {
    constructor({ read, beside, isFolder }) {
      this.read = read;
      this.beside = beside;
      this.isFolder = isFolder;
      this.files = new Map();
      this.models = new Map();
    }

    file(name, hash) {
      if (!this.files.has(name)) {
        const bytes = bytesOf(name, () => this.read(name, LIMIT.file));
        if (bytes === null) unusable(`${name} is missing`);
        if (bytes.length > LIMIT.file) unusable(`${name} is too large`);
        this.files.set(name, { bytes, hash: hex(sha256(bytes, lookAtClock)) });
      }
      const { bytes, hash: own } = this.files.get(name);
      if (own !== hash) refuse(`${name} is another file than the certificate speaks of`);
      return bytes;
    }

    // The model, read for words or for numbers.
    parsed(model, takesNumbers) {
      const key = JSON.stringify([model.file, model.tensors, takesNumbers]);
      const bytes = this.file(model.file, model.sha256);
      const tensors = new Map(model.tensors.map(([name, hash]) => [name, this.file(name, hash)]));
      if (!this.models.has(key)) {
        const opened = new Set();
        const parsed = readModel(bytes, (name) => {
          if (!tensors.has(name)) refuse(`the external tensor file ${name} is not bound`);
          opened.add(name);
          return tensors.get(name);
        }, takesNumbers);
        if (opened.size !== tensors.size) refuse("an external tensor file is bound that the model does not refer to");
        this.models.set(key, parsed);
      }
      return this.models.get(key);
    }

    // Checks one certificate and gives what it claims in a plain sentence.
    check(name, bytes) {
      if (bytes.length > LIMIT.certificate) refuse("the certificate is too large");
      const parsed = parseCanonical(bytes);
      const format = parsed instanceof Map ? parsed.get("format") : undefined;
      if (format === "swapproof box certificate") return this.checkBoxes(readBoxes(parsed));
      if (format === "swapproof ball certificate") return this.checkBalls(readBalls(parsed));
      return this.checkWords(readCertificate(parsed, name));
    }
    numericNetwork({ model, network: hash, inputs, outputs, recipe }) {
      const parsed = this.parsed(model, true);
      if (parsed.numeric === undefined) parsed.numeric = buildNumeric(parsed);
      const network = parsed.numeric;
      if (network.layers[INPUTS].size !== inputs) refuse("the model has another number of inputs");
      if (network.logits.length !== outputs) refuse("the model has another number of outputs");
      if (network.isSmooth && recipe === "box-2") unusable("a smooth network, of which only forms speak");
      if (network.hash !== hash) refuse("the canonical network is another");
      if (network.isSmooth && recipe !== "forms-1") unusable("a smooth network, of which only forms speak");
      return network;
    }
    checkBoxes(certificate) {
      if (this.isFolder) refuse("a box certificate stands alone, and in no run");
      // Its files lie beside it.
      this.read = this.beside;
      const { model, query, cases } = certificate;
      const network = this.numericNetwork(certificate);
      const isThere = bytesOf(query.file, () => this.read(query.file, LIMIT.file)) !== null;
      if (isThere) this.file(query.file, query.sha256);
      const count = checkBoxes(network, certificate);
      lookAtClock();
      const about = cases.length === 1 ? "the case stated here" : `any of the ${cases.length} cases stated here`;
      const bound = isThere ? `that ${query.file} says the same is not checked here` : `${query.file} is not here to be compared`;
      return `${model.file} has no input that meets ${about} (real; ${bound}); ${count} nodes`;
    }
    checkBalls(certificate) {
      const { model, label, rivals, norm, cases } = certificate;
      const network = this.numericNetwork(certificate);
      const isOfForms = certificate.recipe === "forms-1";
      const count = isOfForms ? checkForms(network, certificate) : checkBalls(network, certificate);
      lookAtClock();
      const balls = cases.length === 1 ? "the ball" : `any of the ${cases.length} balls`;
      return `${model.file}: no class of ${rivals.join(", ")} beats class ${label} at any point of ${balls} (${norm}, real; whose point the center is, is not checked here); ${isOfForms ? `forms of ${certificate.precision} bits` : `${count} nodes`}`;
    }
    checkWords(certificate) {
      const { label, rivals, statement, vocabulary, lower, count, upper } = certificate;
      if (vocabulary !== null) this.file(vocabulary.file, vocabulary.sha256);
      const network = networkOf(this.parsed(certificate.model, false), statement);
      if (network.hash !== certificate.network) refuse("the canonical network is another");
      const classes = network.logits.length;
      if (label >= classes || rivals[rivals.length - 1] >= classes) refuse("a class beyond those of the model");
      const claims = [lower, count].filter((claim) => claim !== null);
      const levels = [...claims.map(({ level }) => level), ...(upper === null ? [] : upper.levels)];
      if (claims.some(({ recipe }) => recipe !== (network.isSmooth ? "smooth-1" : "linear-2"))) refuse("the recipe of another kind of network");
      if (levels.includes(network.isSmooth ? "float32" : "kernel")) refuse("a level of another kind of network");
      const words = new Words(network, statement);
      if (levels.includes("kernel") && !network.canBeFloat) refuse("the model cannot carry kernel claims");
      if (levels.includes("float32")) {
        if (!network.canBeFloat) refuse("the model cannot carry float32 claims");
        wholeErrors(words);
      }
      if (upper !== null) checkUpper(words, certificate);
      if (lower !== null) checkTree(words, lower.bytes, { ...lower, label, rivals, counting: false });
      if (count !== null) checkCount(words, certificate);
      lookAtClock();
      return sentenceOf(certificate, classes);
    }
  }

  // What has been proved, for a reader.
  function sentenceOf({ id, statement, label, rivals, lower, count, upper }, classes) {
    const swapsText = (number) => (number === 1 ? "1 swap" : `${number} swaps`);
    const all = rivals.length === classes - 1;
    const change = all ? "changes the class" : `lets class ${rivals.join(" or ")} win`;
    const parts = [];
    if (lower !== null) {
      const unbreakable = lower.swaps >= statement.words.filter(({ options }) => options.length > 1).length;
      parts.push(`no sentence with ${unbreakable ? "however many swaps" : `at most ${swapsText(lower.swaps)}`} ${change} (${lower.level})`);
    }
    if (count !== null) {
      const of = `of the ${count.total} sentences with at most ${swapsText(count.swaps)}`;
      const others = all ? "to keep the class" : `to let no class ${rivals.join(" or ")} win`;
      const some = all ? "to change it" : "to let one win";
      parts.push(`${of}, at least ${count.robust} are proved ${others} and at least ${count.broken} ${some} (${count.level})`);
    }
    if (upper !== null) {
      const levels = upper.levels.map((level) => (level === "replay" ? "replay as recorded, not checked" : level)).join(", ");
      const [low, high] = [lower === null ? 0 : lower.swaps + 1, upper.swaps.length];
      const broken = high === 0 ? "the text itself is answered wrongly" : `a sentence with ${swapsText(high)} ${change}`;
      parts.push(`${broken} (${levels})`);
      // Whichever rival wins, an answer without swaps is wrong. What is only recorded bounds nothing.
      const isShown = upper.levels.some((level) => level !== "replay");
      if (isShown && (all || high === 0) && low === high) parts.push(`min_swaps = ${high}`);
      else if (isShown && all && lower !== null) parts.push(`min_swaps is between ${low} and ${high}`);
    }
    return `text ${id}, class ${label}: ${parts.join("; ")}`;
  }

  // certificates: pairs of a name and a function that gives the bytes. strangers: names of other files that end in
  // .json beside them. root: gives the bytes of certificates/root, or null. All these functions take a limit, as `read`
  // does, and throw if a file cannot be read. isFolder: a whole run is checked. seconds: for each certificate.
  // say(line, kind) gets every line as it is known: kind is "accepted", "refused" or "root", and of the last line
  // "last", or "unusable" if there is no verdict. Gives the exit code. "accepted N of N" is the last act.
  function checkAll({ certificates, root, read, beside, isFolder, strangers, seconds }, say) {
    const run = new Run({ read, beside, isFolder });
    const leaves = [];
    let accepted = 0;
    let refused = 0;
    try {
      const sorted = [...certificates].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      if (sorted.length === 0) unusable("there is no certificate");
      if (strangers.length > 0) unusable("a file in certificates ends in .json and is not called like a certificate");
      const wanted = bytesOf("certificates/root", () => root(65));
      for (const [name, open] of sorted) {
        let claim = null;
        let reason = "";
        try {
          clock.end = Date.now() + 1000 * seconds;
          const bytes = bytesOf(name, () => open(LIMIT.certificate));
          if (isFolder) leaves.push(merkleLeaf(name, bytes));
          claim = run.check(name, bytes);
        } catch (error) {
          if (error instanceof Unusable) throw error;
          // Whatever else happens, for lack of memory or by a fault of this program, is never an acceptance.
          reason = error instanceof Refused ? error.message : `this checker could not finish: ${error.message}`;
        }
        if (claim !== null) {
          accepted += 1;
          say(`${name}: ${claim}`, "accepted");
        } else {
          refused += 1;
          say(`refused ${name}: ${reason}`, "refused");
        }
      }
      if (isFolder && refused === 0) {
        const digest = hex(merkleRoot(leaves));
        if (wanted === null || String.fromCharCode(...wanted) === `${digest}\n`) {
          say(`Merkle root ${digest}`, "root");
        } else {
          say("refused root: certificates/root is another Merkle root", "refused");
          refused += 1;
        }
      }
    } catch (error) {
      if (!(error instanceof Unusable)) throw error;
      say(`not checked: ${error.message}`, "unusable");
      return 2;
    }
    if (refused > 0 || accepted !== certificates.length) {
      say(`refused ${refused} of ${certificates.length}`, "last");
      return 4;
    }
    say(`accepted ${accepted} of ${certificates.length}`, "last");
    return 0;
  }

  // The hash of the canonical network of an ONNX file, and its bytes. open(name) gives the bytes of an external file.
  function lowered(model, { inputs, words }, open) {
    clock.end = Infinity;
    const { hash, bytes } = inputs === undefined ? buildNumeric(readModel(model, open, true)) : networkOf(readModel(model, open, false), readStatement(inputs, words));
    return { hash, bytes };
  }

  // What is inside is for tests only.
  const inside = { Attention, Words, Space, makeCell, greatestSum, greatestOverPatterns, EXACT_CURVES };
  return { checkAll, lowered, sha256, hex, SECONDS: 3600, inside };
}

// -----------------------------------------------------------------------------------------------------------------
// The command line
// -----------------------------------------------------------------------------------------------------------------

if (typeof module !== "undefined" && typeof require === "function") {
  module.exports = { swapproofChecker };
  if (require.main === module) commandLine(process.argv.slice(2));
}

// The exit code is 2 until all is done and said: no error, of files or of what is written to, is an acceptance.
function commandLine(args) {
  process.exitCode = 2;
  try {
    process.exitCode = checkArguments(args);
  } catch (error) {
    try {
      writeLine(2, `check.js: ${error.message}`);
    } catch {
      // There is nobody to tell; the exit code stays.
    }
  }
}

// Writes one line of ASCII, whatever names it holds, to a descriptor: all of it, or this throws, as console.log does not.
function writeLine(descriptor, line) {
  const fs = require("node:fs");
  const plain = line.replace(/[^ -~]/gu, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
  const bytes = Buffer.from(`${plain}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += fs.writeSync(descriptor, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw new Error(`the verdict could not be written: ${error.message}`);
      // A full pipe that does not wait by itself: look again in a hundredth of a second.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

// At most limit + 1 bytes of a file, so that one that is too large shows it. Only regular files, also behind links, are
// opened: others, pipes and devices, may never end. Not to wait is asked for in case it became a pipe after the look.
function readRegular(file, limit) {
  const fs = require("node:fs");
  const found = fs.statSync(file);
  if (!found.isFile()) throw new Error("it is not a regular file");
  const bytes = Buffer.alloc(Math.min(found.size, limit + 1));
  const descriptor = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    for (let at = 0; at < bytes.length; ) {
      const count = fs.readSync(descriptor, bytes, at, Math.min(bytes.length - at, 2 ** 30), null);
      if (count === 0) throw new Error("it became shorter while it was read");
      at += count;
    }
  } finally {
    fs.closeSync(descriptor);
  }
  return bytes;
}

// Gives the exit code, or throws an error whose message is for the reader.
function checkArguments(args) {
  const fs = require("node:fs");
  const path = require("node:path");
  const checker = swapproofChecker();
  const stop = (reason) => {
    throw new Error(reason);
  };
  if (args[0] === "--network" && args.length === 3) return printNetwork(checker, ...args.slice(1));
  let seconds = checker.SECONDS;
  if (args[0] === "--seconds") {
    seconds = /^[0-9]{1,9}$/.test(args[1]) ? Number(args[1]) : NaN;
    args = args.slice(2);
  }
  if (args.length !== 1 || args[0].startsWith("-") || Number.isNaN(seconds)) stop("usage: node check.js [--seconds S] RUN_OR_CERTIFICATE, or node check.js --network MODEL STATEMENT");
  const [target] = args;
  const found = (file) => fs.statSync(file, { throwIfNoEntry: false });
  const stat = found(target);
  if (stat === undefined) stop(`${target} does not exist`);

  // null only if there is no such name: a link that leads nowhere is a file that cannot be read.
  const inFolder = (folder) => (name, limit) => {
    const file = path.join(folder, name);
    return fs.lstatSync(file, { throwIfNoEntry: false }) === undefined ? null : readRegular(file, limit);
  };
  const job = { root: () => null, isFolder: stat.isDirectory(), strangers: [], seconds };
  if (job.isFolder) {
    const folder = path.join(target, "certificates");
    const inside = found(folder);
    if (inside === undefined) stop(`${folder} does not exist`);
    if (!inside.isDirectory()) stop(`${folder} is not a folder`);
    const names = fs.readdirSync(folder).filter((name) => name.endsWith(".json"));
    const isCertificate = (name) => /^[0-9]{6}\.json$/.test(name);
    job.strangers = names.filter((name) => !isCertificate(name));
    job.certificates = names.filter(isCertificate).map((name) => [name, (limit) => readRegular(path.join(folder, name), limit)]);
    job.root = (limit) => inFolder(folder)("root", limit);
    job.read = inFolder(target);
  } else {
    const folder = path.dirname(path.resolve(target));
    job.certificates = [[path.basename(target), (limit) => readRegular(target, limit)]];
    job.beside = inFolder(folder);
    job.read = path.basename(folder) === "certificates" ? inFolder(path.dirname(folder)) : job.beside;
  }
  return checker.checkAll(job, (line, kind) => (kind === "unusable" ? writeLine(2, `check.js: ${line}`) : writeLine(1, line)));
}

// Gives the exit code. External tensor files are looked for beside the model.
function printNetwork(checker, model, statement) {
  const path = require("node:path");
  const read = (file) => readRegular(file, 2 ** 31);
  const open = (name) => read(path.join(path.dirname(model), name));
  const { hash, bytes } = checker.lowered(read(model), JSON.parse(read(statement).toString()), open);
  writeLine(1, hash);
  writeLine(1, checker.hex(bytes));
  return 0;
}
