/*
 * check.js: checks swap certificates with exact arithmetic. Nothing is trusted but this file and a JavaScript engine.
 *
 *     node check.js RUN              every certificate of a run folder
 *     node check.js CERTIFICATE      one certificate
 *
 * It is written from FORMAT.md alone, as a second opinion beside check.py; section numbers below are those of FORMAT.md.
 * check.html loads the same file in a browser. It needs no package and no network.
 *
 * All numbers that matter are integers (BigInt) over a known common denominator. No floating point result is ever used,
 * except x * 2^s in reading stored floats, which is exact.
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
    certificate: 2 ** 26,
    modelFile: 2 ** 31,
    positions: 65536,
    choices: 1000000,
    choicesPerPosition: 65536,
    elements: 2 ** 22,
    stored: 2 ** 28,
    windows: 2 ** 22,
    convolution: 2 ** 26,
    allElements: 2 ** 23,
    nodes: 100000,
    rank: 8,
    layers: 64,
    classes: 1024,
    treeNodes: 5000000,
    treeDepth: 100000,
    enumerated: 20000000n,
    counting: 10000000,
    count: 1n << 16000n,
  };

  // ---------------------------------------------------------------------------------------------------------------
  // SHA-256 (FIPS 180-4) and the Merkle root
  // ---------------------------------------------------------------------------------------------------------------

  const SHA_CONSTANTS = new Uint32Array([
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  ]);

  function sha256(bytes) {
    const state = new Uint32Array([
      0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    ]);
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
        for (let t = 0; t < 16; t++) {
          const i = start + 4 * t;
          w[t] = (part[i] << 24) | (part[i + 1] << 16) | (part[i + 2] << 8) | part[i + 3];
        }
        for (let t = 16; t < 64; t++) {
          const x = w[t - 15];
          const y = w[t - 2];
          const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
          const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
          w[t] = w[t - 16] + s0 + w[t - 7] + s1;
        }
        let [a, b, c, d, e, f, g, h] = state;
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
        [a, b, c, d, e, f, g, h].forEach((x, i) => (state[i] += x));
      }
    }
    const digest = new Uint8Array(32);
    const view = new DataView(digest.buffer);
    state.forEach((word, i) => view.setUint32(4 * i, word));
    return digest;
  }

  function hex(bytes) {
    return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  }

  function ascii(text) {
    return Uint8Array.from(text, (character) => character.charCodeAt(0));
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
  function merkleLeaf(name, bytes) {
    return sha256(joined([0], ascii(name), [10], bytes));
  }

  function merkleRoot(leaves) {
    if (leaves.length === 1) return leaves[0];
    let left = 1;
    while (left * 2 < leaves.length) left *= 2;
    return sha256(joined([1], merkleRoot(leaves.slice(0, left)), merkleRoot(leaves.slice(left))));
  }

  // ---------------------------------------------------------------------------------------------------------------
  // Canonical JSON (section 2), base64 and the numbers of a tree (section 5)
  // ---------------------------------------------------------------------------------------------------------------

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
      for (let i = start; i < at; i += 4096) {
        parts.push(String.fromCharCode(...bytes.subarray(i, Math.min(at, i + 4096))));
      }
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
      if (depth > 6) stop("nested too deep");
      const first = peek();
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
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const digitOf = new Map(Array.from(alphabet, (character, digit) => [character, digit]));
    const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
    if (text.length % 4 !== 0) refuse("the tree is not base64: its length");
    const bytes = new Uint8Array((text.length / 4) * 3 - padding);
    for (let i = 0, out = 0; i < text.length; i += 4) {
      let group = 0;
      for (let j = i; j < i + 4; j++) {
        const digit = j >= text.length - padding ? 0 : digitOf.get(text[j]);
        if (digit === undefined) refuse("the tree is not base64: a character");
        group = group * 64 + digit;
      }
      for (const byte of [group >> 16, (group >> 8) & 255, group & 255]) {
        if (out < bytes.length) bytes[out++] = byte;
        else if (byte !== 0) refuse("the tree is not base64: bits beyond its end");
      }
    }
    return bytes;
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

  // ---------------------------------------------------------------------------------------------------------------
  // Exact numbers: numerators over a common positive denominator
  // ---------------------------------------------------------------------------------------------------------------

  function absolute(x) {
    return x < 0n ? -x : x;
  }
  function greatestDivisor(a, b) {
    while (b !== 0n) [a, b] = [b, a % b];
    return absolute(a);
  }
  function leastMultiple(a, b) {
    if (a === b || a % b === 0n) return a;
    if (b % a === 0n) return b;
    return (a / greatestDivisor(a, b)) * b;
  }
  // Both for a positive divisor.
  function floorDivide(a, b) {
    const q = a / b;
    return a < 0n && q * b !== a ? q - 1n : q;
  }
  function ceilDivide(a, b) {
    return -floorDivide(-a, b);
  }
  function squareRoot(x) {
    if (x < 2n) return x;
    let guess = 1n << (BigInt(x.toString(2).length + 1) / 2n);
    for (;;) {
      const next = (guess + x / guess) / 2n;
      if (next >= guess) return guess;
      guess = next;
    }
  }

  // A constant of the network: integers, or reals as get(i) / den.
  function integers(shape, data) {
    return { kind: "integers", shape, size: data.length, data };
  }
  function reals(shape, num, den) {
    return { kind: "reals", shape, size: num.length, den, num, get: (i) => num[i], computed: false };
  }
  // Stored floats stay as they are until they are needed: embedding tables are large. x * 2^s is exact.
  function storedReals(shape, raw) {
    let scale = 1;
    for (let i = 0; i < raw.length; i++) {
      const x = raw[i];
      if (!Number.isFinite(x)) unusable("a constant is not a finite number");
      if (Math.abs(x) >= 2 ** 128) unusable("a constant is not below 2^128");
      while (!Number.isInteger(x * scale)) {
        scale *= 2;
        if (scale > 2 ** 200) unusable("a constant is not a multiple of 2^-200");
      }
    }
    const get = (i) => BigInt(raw[i] * scale);
    return { kind: "reals", shape, size: raw.length, den: BigInt(scale), num: null, get, computed: false };
  }
  function numerators(constant) {
    if (constant.num === null) {
      constant.num = new Array(constant.size);
      for (let i = 0; i < constant.size; i++) constant.num[i] = constant.get(i);
    }
    return constant.num;
  }

  // ---------------------------------------------------------------------------------------------------------------
  // The ONNX file (section 4.1)
  // ---------------------------------------------------------------------------------------------------------------

  // A field is [name, type, repeated]; null is a field that is read over.
  const NUMBER = "number";
  const BYTES = "bytes";
  const FLOAT = "float";
  const DOUBLE = "double";
  const WIRE = { number: 0, double: 1, bytes: 2, float: 5 };
  const MODEL = {
    1: ["irVersion", NUMBER], 2: null, 3: null, 4: null, 5: null, 6: null,
    7: ["graph", BYTES], 8: ["opsets", BYTES, true], 14: null,
  };
  const OPSET = { 1: ["domain", BYTES], 2: ["version", NUMBER] };
  const GRAPH = {
    1: ["nodes", BYTES, true], 2: null, 5: ["initializers", BYTES, true], 10: null,
    11: ["inputs", BYTES, true], 12: ["outputs", BYTES, true], 13: null, 16: null,
  };
  const NODE = {
    1: ["inputs", BYTES, true], 2: ["outputs", BYTES, true], 3: null, 4: ["operator", BYTES],
    5: ["attributes", BYTES, true], 6: null, 7: ["domain", BYTES], 9: null,
  };
  const ATTRIBUTE = {
    1: ["name", BYTES], 2: ["float", FLOAT], 3: ["int", NUMBER], 4: ["string", BYTES], 5: ["tensor", BYTES],
    7: ["floats", FLOAT, true], 8: ["ints", NUMBER, true], 13: null, 20: ["type", NUMBER],
  };
  const TENSOR = {
    1: ["dims", NUMBER, true], 2: ["type", NUMBER], 4: ["floats", FLOAT, true], 5: ["int32s", NUMBER, true],
    7: ["int64s", NUMBER, true], 8: ["name", BYTES], 9: ["raw", BYTES], 10: ["doubles", DOUBLE, true], 12: null,
    13: ["external", BYTES, true], 14: ["location", NUMBER], 16: null,
  };
  const PAIR = { 1: ["key", BYTES], 2: ["value", BYTES] };
  const VALUE_INFO = { 1: ["name", BYTES], 2: ["type", BYTES], 3: null, 4: null };
  const TYPE = { 1: ["tensor", BYTES], 6: null };
  const TENSOR_TYPE = { 1: ["element", NUMBER], 2: ["shape", BYTES] };
  const SHAPE = { 1: ["dims", BYTES, true] };
  const DIMENSION = { 1: ["value", NUMBER], 2: ["name", BYTES], 3: null };

  function message(bytes, fields) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const result = Object.create(null);
    for (const field of Object.values(fields)) if (field !== null && field[2]) result[field[0]] = [];
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
      const number = tag / 8n;
      if (![0, 1, 2, 5].includes(wire) || number === 0n) unusable("the ONNX file has a field of no known kind");
      if (!(number.toString() in fields)) unusable(`the ONNX file has a field (${number}) outside the format`);
      const field = fields[number.toString()];
      const start = at;
      const value = read(wire);
      if (field === null) continue;
      const [name, type, repeated] = field;
      if (repeated && type !== BYTES && wire === 2) {
        const end = at;
        at = start;
        varint();
        while (at < end) result[name].push(read(WIRE[type]));
        if (at !== end) unusable("the ONNX file has numbers cut short");
      } else {
        if (wire !== WIRE[type]) unusable("the ONNX file has a field of the wrong kind");
        if (repeated) result[name].push(value);
        else if (name in result) unusable("the ONNX file has a field twice");
        else result[name] = value;
      }
    }
    return result;
  }

  // Names are compared byte by byte; so each byte is one character here.
  function text(bytes) {
    if (bytes === undefined) return "";
    let result = "";
    for (const byte of bytes) result += String.fromCharCode(byte);
    return result;
  }

  const FILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;
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
    if (exponent === 31) return NaN;
    return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
  }

  // openTensor(name) gives the bytes of an external file. reals notes the type of every floating tensor.
  function readTensor(bytes, openTensor, realTypes) {
    const tensor = message(bytes, TENSOR);
    const element = ELEMENT[String(tensor.type)];
    if (element === undefined) unusable("a tensor has a type outside the format");
    if (tensor.dims.length > LIMIT.rank) unusable("a tensor has too many dimensions");
    let size = 1n;
    for (const dim of tensor.dims) {
      if (dim < 0n) unusable("a tensor has a negative dimension");
      size *= dim;
    }
    if (size > BigInt(LIMIT.stored)) unusable("a tensor is too large");
    size = Number(size);
    const shape = tensor.dims.map(Number);
    if (!shape.every(Number.isSafeInteger)) unusable("a tensor is too large");

    let places = ["floats", "int32s", "int64s", "doubles"].filter((place) => tensor[place].length > 0);
    if (tensor.raw !== undefined) places.push("raw");
    const location = tensor.location === undefined ? 0n : tensor.location;
    if (location !== 0n && location !== 1n) unusable("a tensor is stored in an unknown place");
    if (location === 1n) places.push("external");
    else if (tensor.external.length > 0) unusable("a tensor has external data but is not stored there");
    if (places.length > 1) unusable("a tensor has data in two places");
    if (places.length === 0 && size > 0) unusable("a tensor has no data");

    let values;
    if (places[0] === "raw" || places[0] === "external") {
      const raw = places[0] === "raw" ? tensor.raw : externalBytes(tensor.external, openTensor);
      if (raw.length !== size * element.size) unusable("a tensor's data does not fit its dimensions");
      const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
      values = element.real ? new Float64Array(size) : new Array(size);
      for (let i = 0; i < size; i++) values[i] = element.read(view, i * element.size);
    } else {
      if (places.length === 1 && places[0] !== element.place) unusable("a tensor's data is of another type");
      values = tensor[element.place];
      if (values.length !== size) unusable("a tensor's data does not fit its dimensions");
      if (tensor.type === 10n) {
        if (values.some((bits) => bits < 0n || bits > 65535n)) unusable("a half float has more than 16 bits");
        values = values.map((bits) => halfFloat(Number(bits)));
      }
      if (element.real) values = Float64Array.from(values);
      else if (tensor.type === 6n && values.some((x) => x !== BigInt.asIntN(32, x))) unusable("an INT32 is too large");
    }
    if (tensor.type === 9n && values.some((x) => x !== 0n && x !== 1n)) unusable("a BOOL is neither 0 nor 1");
    if (!element.real) return { name: text(tensor.name), value: integers(shape, values) };
    realTypes.add(Number(tensor.type));
    return { name: text(tensor.name), value: storedReals(shape, values) };
  }

  function externalBytes(entries, openTensor) {
    const values = new Map();
    for (const entry of entries) {
      const pair = message(entry, PAIR);
      const key = text(pair.key);
      if (!["location", "offset", "length", "checksum"].includes(key)) unusable("external data with an unknown key");
      if (values.has(key)) unusable("external data with a key twice");
      values.set(key, text(pair.value));
    }
    const decimal = (key, otherwise) => {
      if (!values.has(key)) return otherwise;
      if (!/^[0-9]{1,15}$/.test(values.get(key))) unusable(`external data with a ${key} that is no number`);
      return Number(values.get(key));
    };
    const location = values.get("location");
    if (location === undefined || !FILE_NAME.test(location)) unusable("external data without a plain file name");
    const bytes = openTensor(location);
    const offset = decimal("offset", 0);
    const length = decimal("length", bytes.length - offset);
    if (length < 0 || offset + length > bytes.length) unusable("external data beyond the end of its file");
    return bytes.subarray(offset, offset + length);
  }

  const TYPE_FLOAT = 1;
  const ATTRIBUTE_TYPES = { 1: "float", 2: "int", 3: "string", 4: "tensor", 6: "floats", 7: "ints" };

  function readAttribute(bytes, openTensor, realTypes) {
    const raw = message(bytes, ATTRIBUTE);
    const type = ATTRIBUTE_TYPES[String(raw.type)];
    if (type === undefined) unusable("an attribute has a type outside the format");
    for (const other of Object.values(ATTRIBUTE_TYPES)) {
      const present = Array.isArray(raw[other]) ? raw[other].length > 0 : raw[other] !== undefined;
      if (other !== type && present) unusable("an attribute has values of two types");
    }
    let value = raw[type];
    if (type === "float" && value === undefined) value = 0;
    if (type === "int" && value === undefined) value = 0n;
    if (type === "string") value = text(value);
    if (type === "tensor") {
      if (value === undefined) unusable("an attribute lacks its tensor");
      value = readTensor(value, openTensor, realTypes).value;
    }
    return { name: text(raw.name), type, value };
  }

  function readModel(bytes, openTensor) {
    const model = message(bytes, MODEL);
    if (model.graph === undefined) unusable("the ONNX file has no graph");
    let version = null;
    for (const entry of model.opsets) {
      const opset = message(entry, OPSET);
      if (!["", "ai.onnx"].includes(text(opset.domain))) continue;
      if (version !== null) unusable("the ONNX file names its opset twice");
      version = opset.version === undefined ? 0n : opset.version;
    }
    if (version === null || version < 13n || version > 22n) unusable("the opset must be from 13 to 22");

    const graph = message(model.graph, GRAPH);
    const realTypes = new Set();
    const initializers = new Map();
    for (const entry of graph.initializers) {
      const { name, value } = readTensor(entry, openTensor, realTypes);
      if (name === "" || initializers.has(name)) unusable("an initializer has no name, or a name twice");
      initializers.set(name, value);
    }
    if (graph.nodes.length > LIMIT.nodes) unusable("too many nodes");
    const nodes = graph.nodes.map((entry, number) => {
      const node = message(entry, NODE);
      if (!["", "ai.onnx"].includes(text(node.domain))) unusable("a node of an unknown domain");
      const attributes = new Map();
      for (const part of node.attributes) {
        const attribute = readAttribute(part, openTensor, realTypes);
        if (attributes.has(attribute.name)) unusable("an attribute twice");
        attributes.set(attribute.name, attribute);
      }
      const operator = text(node.operator);
      return { number, operator, inputs: node.inputs.map(text), outputs: node.outputs.map(text), attributes };
    });

    const inputs = graph.inputs.map(readValueInfo).filter((input) => !initializers.has(input.name));
    if (inputs.length !== 1) unusable("the model must have exactly one input");
    const [input] = inputs;
    if (input.element !== 6n && input.element !== 7n) unusable("the input must be INT32 or INT64");
    if (input.dims === null || input.dims.length !== 2) unusable("the input must have rank 2");
    if (input.dims[0] !== null && input.dims[0] !== 1n) unusable("the input's first dimension must be 1 or free");
    if (graph.outputs.length !== 1) unusable("the model must have exactly one output");
    const output = readValueInfo(graph.outputs[0]);
    // value_float and value_floats are FLOAT tensors.
    for (const node of nodes) {
      const isFloat = node.attributes.has("value_float") || node.attributes.has("value_floats");
      if (node.operator === "Constant" && isFloat) realTypes.add(TYPE_FLOAT);
    }
    if (realTypes.size > 1) unusable("floating tensors of two types");
    return { initializers, nodes, input, output, realType: [...realTypes][0], byPositions: new Map() };
  }

  function readValueInfo(bytes) {
    const info = message(bytes, VALUE_INFO);
    const name = text(info.name);
    if (name === "") unusable("an input or output without a name");
    const result = { name, element: undefined, dims: null };
    if (info.type === undefined) return result;
    const type = message(info.type, TYPE);
    if (type.tensor === undefined) return result;
    const tensor = message(type.tensor, TENSOR_TYPE);
    result.element = tensor.element;
    if (tensor.shape === undefined) return result;
    result.dims = message(tensor.shape, SHAPE).dims.map((entry) => {
      const dim = message(entry, DIMENSION);
      if (dim.value !== undefined && dim.name !== undefined) unusable("a dimension with a number and a name");
      return dim.value === undefined ? null : dim.value;
    });
    return result;
  }

  // ---------------------------------------------------------------------------------------------------------------
  // The network (sections 4.2 and 4.3): operators become steps of six kinds
  //
  //   embed      rows of a table                 move     the elements of other tensors and constants, rearranged
  //   matrix     windows times columns, + bias   each     element by element: sum of weight * input, + bias
  //   rectifier  max(x, alpha x)                 maximum  the greatest of each window
  //
  // A step makes one tensor, a flat array. A tensor is in *front* when no rectifier or maximum comes before it: its
  // elements are affine functions of the words. All elements of a tensor have one known denominator, `den`.
  // ---------------------------------------------------------------------------------------------------------------

  function product(numbers) {
    return numbers.reduce((a, b) => a * b, 1);
  }
  function range(n) {
    return Array.from({ length: n }, (_, i) => i);
  }
  function stridesOf(shape) {
    return shape.map((_, axis) => product(shape.slice(axis + 1)));
  }
  function checkShape(shape) {
    if (shape.length > LIMIT.rank) unusable("a shape of too high a rank");
    if (product(shape) > LIMIT.elements) unusable("a shape of too many elements");
  }
  // Sums of one offset from each axis, in row-major order.
  function grid(offsets) {
    let result = new Int32Array(1);
    for (const axis of offsets) {
      const next = new Int32Array(result.length * axis.length);
      let at = 0;
      for (const start of result) for (const offset of axis) next[at++] = start + offset;
      result = next;
    }
    return result;
  }
  function broadcastShape(a, b) {
    const rank = Math.max(a.length, b.length);
    const left = [...Array(rank - a.length).fill(1), ...a];
    const right = [...Array(rank - b.length).fill(1), ...b];
    return left.map((n, axis) => {
      if (n !== right[axis] && n !== 1 && right[axis] !== 1) unusable("shapes that do not broadcast");
      return n === 1 ? right[axis] : n;
    });
  }
  function broadcastIndex(from, to) {
    const padded = [...Array(to.length - from.length).fill(1), ...from];
    const strides = stridesOf(padded);
    return grid(to.map((n, axis) => range(n).map((i) => (padded[axis] === 1 ? 0 : i * strides[axis]))));
  }
  function sameShape(a, b) {
    return a.length === b.length && a.every((n, axis) => n === b[axis]);
  }
  function axisOf(axis, rank) {
    const number = Number(axis);
    if (number < -rank || number >= rank) unusable("an axis out of range");
    return number < 0 ? number + rank : number;
  }
  function axesOf(axes, rank) {
    const result = axes.map((axis) => axisOf(axis, rank));
    if (new Set(result).size !== result.length) unusable("an axis twice");
    return result;
  }
  function small(value, lowest) {
    if (value < BigInt(lowest) || value > 2n ** 31n) unusable("a number out of range");
    return Number(value);
  }

  // The windows a kernel sees: for each output place the input places in row-major kernel order, -1 for padding.
  function kernelWindows(spatial, kernel, strides, dilations, pads, copies) {
    const rank = spatial.length;
    const out = spatial.map((n, axis) => {
      const reach = dilations[axis] * (kernel[axis] - 1) + 1;
      return Math.floor((n + pads[axis] + pads[axis + rank] - reach) / strides[axis]) + 1;
    });
    if (out.some((n) => n < 1)) unusable("a kernel larger than its input");
    if (product(out) * product(kernel) * copies > LIMIT.windows) unusable("windows of too many elements");
    const inputStrides = stridesOf(spatial);
    let windows = [[0]];
    for (let axis = 0; axis < rank; axis++) {
      // Each window so far, for each output place on this axis, with each kernel place on this axis.
      windows = windows.flatMap((window) =>
        range(out[axis]).map((place) =>
          window.flatMap((start) =>
            range(kernel[axis]).map((k) => {
              const at = place * strides[axis] + k * dilations[axis] - pads[axis];
              return start < 0 || at < 0 || at >= spatial[axis] ? -1 : start + at * inputStrides[axis];
            }),
          ),
        ),
      );
    }
    return { out, windows };
  }

  const RECTIFIERS = ["Relu", "LeakyRelu"];

  class Builder {
    constructor(model, positions) {
      this.model = model;
      this.tensors = [];
      this.values = new Map(model.initializers);
      this.makers = new Map();
      this.elements = 0;
      this.computed = false;
      this.head = null;
      const { name } = model.input;
      const tokens = { kind: "tokens", shape: [1, positions], at: Int32Array.from(range(positions)), size: positions };
      checkShape(tokens.shape);
      this.values.set(name, tokens);
    }

    build() {
      const { model } = this;
      const defined = new Set(this.values.keys());
      for (const node of model.nodes) {
        const made = this.run(node);
        node.outputs.forEach((name, place) => {
          if (name === "" && place > 0) return;
          if (name === "" || defined.has(name)) unusable("an output has no name, or a name twice");
          defined.add(name);
          if (place === 0) this.values.set(name, made);
        });
        if (node.outputs.length === 0) unusable("a node without output");
        this.makers.set(node.outputs[0], node);
        if (made.kind === "variable") this.elements += made.size;
        if (this.elements > LIMIT.allElements) unusable("layers of too many elements");
      }
      const logits = this.values.get(model.output.name);
      if (logits === undefined || logits.kind !== "variable") unusable("the output does not depend on the tokens");
      if (logits.shape.length !== 2 || logits.shape[0] !== 1) unusable("the output's shape is not (1, classes)");
      if (logits.shape[1] < 2 || logits.shape[1] > LIMIT.classes) unusable("too few or too many classes");
      return new Network(this.tensors, logits, model.realType === TYPE_FLOAT && !this.head && !this.computed);
    }

    // ---- values

    step(kind, node, inputs, size, details) {
      const step = { kind, node: node.number, operator: node.operator, inputs, size, ...details };
      const dens = inputs.map((id) => this.tensors[id].den);
      if (kind === "embed") step.den = step.table.den;
      if (kind === "move") step.den = [step.constant.den, ...dens].reduce(leastMultiple);
      if (kind === "matrix" || kind === "each") {
        step.den = dens.map((den) => den * step.weightDen).reduce(leastMultiple, step.biasDen);
      }
      if (kind === "rectifier") step.den = dens[0] * step.alpha.den;
      if (kind === "maximum") [step.den] = dens;
      step.front = !["rectifier", "maximum"].includes(kind) && inputs.every((id) => this.tensors[id].front);
      step.id = this.tensors.length;
      this.tensors.push(step);
      return step.id;
    }

    variable(shape, tensor) {
      checkShape(shape);
      return { kind: "variable", shape, size: product(shape), tensor };
    }

    // The elements of a value in another order and shape; without an index, in the same order.
    rearrange(node, value, shape, index) {
      checkShape(shape);
      const size = product(shape);
      if (index === null) return { ...value, shape };
      if (value.kind === "integers") return integers(shape, Array.from(index, (i) => value.data[i]));
      if (value.kind === "tokens") return { kind: "tokens", shape, at: index.map((i) => value.at[i]), size };
      if (value.kind === "reals") return reals(shape, Array.from(index, (i) => value.get(i)), value.den);
      return this.mix(node, [value], shape, new Int32Array(size), index);
    }

    // Element i is element index[i] of the value number which[i]: variables and real constants.
    mix(node, values, shape, which, index) {
      checkShape(shape);
      const size = product(shape);
      const variables = values.filter((value) => value.kind === "variable");
      const constants = values.filter((value) => value.kind === "reals");
      const den = constants.map((value) => value.den).reduce(leastMultiple, 1n);
      const num = [];
      const source = new Map();
      const start = new Map();
      variables.forEach((value, number) => source.set(value, number));
      for (const value of constants) {
        source.set(value, variables.length);
        start.set(value, num.length);
        const factor = den / value.den;
        for (const x of numerators(value)) num.push(x * factor);
      }
      const details = { which: new Int32Array(size), index: new Int32Array(size), constant: { num, den } };
      for (let i = 0; i < size; i++) {
        const value = values[which[i]];
        details.which[i] = source.get(value);
        details.index[i] = index[i] + (start.has(value) ? start.get(value) : 0);
      }
      return this.variable(shape, this.step("move", node, variables.map((value) => value.tensor), size, details));
    }

    broadcast(node, value, shape) {
      if (sameShape(value.shape, shape)) return value;
      checkShape(shape);
      return this.rearrange(node, value, shape, broadcastIndex(value.shape, shape));
    }

    // Output i is columns[column[i]] times the window number window[i] of x, plus bias[i].
    matrix(node, x, shape, windows, columns, weightDen, window, column, bias) {
      const total = windows.reduce((sum, places) => sum + places.length, 0);
      if (total > LIMIT.windows) unusable("windows of too many elements");
      const details = { windows, columns, weightDen, window, column, bias: bias && bias.num, biasDen: bias ? bias.den : 1n };
      return this.variable(shape, this.step("matrix", node, [x.tensor], product(shape), details));
    }

    // weights: for each input one number or one per element, over weightDen.
    each(node, inputs, shape, weights, weightDen, bias) {
      const details = { weights, weightDen, bias: bias && bias.num, biasDen: bias ? bias.den : 1n };
      return this.variable(shape, this.step("each", node, inputs.map((x) => x.tensor), product(shape), details));
    }

    // ---- operators

    run(node) {
      const values = node.inputs.map((name) => {
        if (name === "") return undefined;
        if (!this.values.has(name)) unusable("a node reads what no earlier node has made");
        return this.values.get(name);
      });
      while (values.length > 0 && values[values.length - 1] === undefined) values.pop();
      const operator = OPERATORS.get(node.operator);
      if (operator === undefined) unusable(`the operator ${node.operator.replace(/[^A-Za-z0-9_]/g, "?")}`);
      const given = new Given(node, values);
      const result = operator(this, node, given);
      given.finish();
      return result;
    }

    // Both operands of an arithmetic operator.
    arithmetic(node, given) {
      const a = given.value(0, "integers", "reals", "variable");
      const b = given.value(1, "integers", "reals", "variable");
      const shape = broadcastShape(a.shape, b.shape);
      checkShape(shape);
      if (a.kind === "variable" || b.kind === "variable") {
        if (a.kind === "integers" || b.kind === "integers") unusable("arithmetic of integers and reals");
        return this.arithmeticOfVariables(node, this.broadcast(node, a, shape), this.broadcast(node, b, shape), shape);
      }
      if (a.kind !== b.kind) unusable("arithmetic of integers and reals");
      const left = this.rearrange(node, a, shape, broadcastIndex(a.shape, shape));
      const right = this.rearrange(node, b, shape, broadcastIndex(b.shape, shape));
      const { operator } = node;
      if (a.kind === "integers") {
        return integers(shape, left.data.map((x, i) => {
          const y = right.data[i];
          if (operator === "Div" && (x < 0n || y <= 0n)) unusable("an integer division of negative numbers or by zero");
          return operator === "Add" ? x + y : operator === "Sub" ? x - y : operator === "Mul" ? x * y : x / y;
        }));
      }
      this.computed = true;
      const x = numerators(left);
      const y = numerators(right);
      if (operator === "Mul") return reals(shape, x.map((_, i) => x[i] * y[i]), a.den * b.den);
      if (operator === "Div") {
        const inverse = inverses(right);
        return reals(shape, x.map((_, i) => x[i] * inverse.num[i]), a.den * inverse.den);
      }
      const den = leastMultiple(a.den, b.den);
      const sign = operator === "Sub" ? -1n : 1n;
      return reals(shape, x.map((_, i) => x[i] * (den / a.den) + sign * y[i] * (den / b.den)), den);
    }

    arithmeticOfVariables(node, a, b, shape) {
      const { operator } = node;
      const sign = operator === "Sub" ? -1n : 1n;
      if (a.kind === "variable" && b.kind === "variable") {
        if (operator !== "Add" && operator !== "Sub") unusable(`${operator} of two variables`);
        return this.each(node, [a, b], shape, [1n, sign], 1n, null);
      }
      const [variable, constant] = a.kind === "variable" ? [a, b] : [b, a];
      const num = numerators(constant);
      if (operator === "Mul") return this.each(node, [variable], shape, [num], constant.den, null);
      if (operator === "Div") {
        if (a.kind !== "variable") unusable("division by a variable");
        if (num.some((x) => x !== num[0])) unusable("division by different numbers");
        const inverse = inverses(constant);
        return this.each(node, [variable], shape, [inverse.num], inverse.den, null);
      }
      if (b.kind === "variable") return this.each(node, [b], shape, [sign], 1n, constant);
      return this.each(node, [a], shape, [1n], 1n, { num: num.map((x) => sign * x), den: constant.den });
    }

    // Windows of reduced axes, in row-major order, and the shape that is left.
    reduction(node, given) {
      const x = given.value(0, "variable");
      const rank = x.shape.length;
      const keep = given.flag("keepdims", 1);
      const noop = given.flag("noop_with_empty_axes", 0);
      let axes = given.axes(1);
      if (axes === null || axes.length === 0) axes = noop ? [] : range(rank);
      axes = axesOf(axes, rank);
      return { x, ...reduceWindows(x.shape, axes, keep) };
    }

    // Spatial attributes of Conv and pools.
    spatial(given, shape, kernel) {
      const rank = shape.length - 2;
      const list = (name, length, lowest) => {
        const values = given.ints(name);
        if (values === null) return null;
        if (values.length !== length) unusable(`${name} of the wrong length`);
        return values.map((value) => small(value, lowest));
      };
      const automatic = given.string("auto_pad", "NOTSET");
      if (!["NOTSET", "VALID"].includes(automatic)) unusable("automatic padding");
      const shapeOfKernel = list("kernel_shape", rank, 1) || kernel;
      if (!shapeOfKernel) unusable("a pool without kernel_shape");
      if (kernel && !sameShape(kernel, shapeOfKernel)) unusable("a kernel_shape that is not the kernel's");
      let pads = list("pads", 2 * rank, 0);
      if (pads === null || automatic === "VALID") pads = Array(2 * rank).fill(0);
      return {
        kernel: shapeOfKernel,
        strides: list("strides", rank, 1) || Array(rank).fill(1),
        dilations: list("dilations", rank, 1) || Array(rank).fill(1),
        pads,
      };
    }

    // Windows of a pool for every channel, padding left out.
    pool(node, given) {
      const x = given.value(0, "variable");
      if (![3, 4].includes(x.shape.length)) unusable("a pool of another rank than 3 or 4");
      const [batch, channels, ...spatial] = x.shape;
      const { kernel, strides, dilations, pads } = this.spatial(given, x.shape, null);
      if (given.flag("ceil_mode", 0)) unusable("ceil_mode");
      const { out, windows } = kernelWindows(spatial, kernel, strides, dilations, pads, batch * channels);
      const place = product(spatial);
      const all = range(batch * channels).flatMap((copy) =>
        windows.map((window) => Int32Array.from(window.filter((i) => i >= 0), (i) => copy * place + i)),
      );
      return { x, windows: all, shape: [batch, channels, ...out], full: product(kernel), dilations };
    }

    // The sum over each window, then one number for each.
    sum(node, x, shape, windows) {
      const lengths = [...new Set(windows.map((window) => window.length))];
      const columns = lengths.map((length) => Array(length).fill(1n));
      const column = Int32Array.from(windows, (window) => lengths.indexOf(window.length));
      return this.matrix(node, x, shape, windows, columns, 1n, Int32Array.from(range(windows.length)), column, null);
    }

    mean(node, x, shape, windows, counts) {
      if (windows.some((window) => window.length === 0)) unusable("a mean of nothing");
      const den = counts.map(BigInt).reduce(leastMultiple, 1n);
      const weights = counts.map((count) => den / BigInt(count));
      return this.each(node, [this.sum(node, x, shape, windows)], shape, [weights], den, null);
    }

    maximum(node, x, shape, windows) {
      if (windows.some((window) => window.length === 0)) unusable("a maximum of nothing");
      const total = windows.reduce((sum, window) => sum + window.length, 0);
      if (total > LIMIT.windows) unusable("windows of too many elements");
      return this.variable(shape, this.step("maximum", node, [x.tensor], product(shape), { windows }));
    }

    rectifier(node, x, alpha) {
      return this.variable(x.shape, this.step("rectifier", node, [x.tensor], x.size, { alpha }));
    }

    product(node, x, rows, inner, outer, columns, weightDen, shape, bias) {
      const windows = range(rows).map((row) => Int32Array.from(range(inner), (k) => row * inner + k));
      const window = grid([range(rows), new Int32Array(outer)]);
      const column = grid([new Int32Array(rows), range(outer)]);
      return this.matrix(node, x, shape, windows, columns, weightDen, window, column, bias);
    }
  }

  function inverses(constant) {
    const num = numerators(constant);
    if (num.some((x) => x === 0n)) unusable("division by zero");
    const den = [...new Set(num.map(absolute))].reduce(leastMultiple, 1n);
    return { num: num.map((x) => (constant.den * den) / x), den };
  }

  function exactFloat(x) {
    const { den, get } = storedReals([], Float64Array.of(x));
    return { num: get(0), den };
  }

  function reduceWindows(shape, axes, keep) {
    const strides = stridesOf(shape);
    const steps = (axis) => range(shape[axis]).map((i) => i * strides[axis]);
    const kept = range(shape.length).filter((axis) => !axes.includes(axis));
    const inside = grid(range(shape.length).filter((axis) => axes.includes(axis)).map(steps));
    const windows = Array.from(grid(kept.map(steps)), (start) => inside.map((offset) => start + offset));
    const left = shape.map((n, axis) => (axes.includes(axis) ? 1 : n));
    return { windows, shape: keep ? left : kept.map((axis) => shape[axis]) };
  }

  // What a node was given; every attribute must be asked for, and no input may be left over.
  class Given {
    constructor(node, values) {
      this.values = values;
      this.attributes = new Map(node.attributes);
      this.taken = 0;
    }
    optional(place, ...kinds) {
      this.taken = Math.max(this.taken, place + 1);
      const value = this.values[place];
      if (value !== undefined && !kinds.includes(value.kind)) unusable("an input of a kind the operator does not take");
      return value;
    }
    value(place, ...kinds) {
      const value = this.optional(place, ...kinds);
      if (value === undefined) unusable("an input is missing");
      return value;
    }
    attribute(name, type) {
      const attribute = this.attributes.get(name);
      this.attributes.delete(name);
      if (attribute === undefined) return null;
      if (attribute.type !== type) unusable(`the attribute ${name} is of another type`);
      return attribute.value;
    }
    int(name, otherwise) {
      const value = this.attribute(name, "int");
      return value === null ? otherwise : value;
    }
    flag(name, otherwise) {
      const value = this.int(name, BigInt(otherwise));
      if (value !== 0n && value !== 1n) unusable(`the attribute ${name} is neither 0 nor 1`);
      return value === 1n;
    }
    ints(name) {
      return this.attribute(name, "ints");
    }
    real(name, otherwise) {
      const value = this.attribute(name, "float");
      return exactFloat(value === null ? otherwise : value);
    }
    string(name, otherwise) {
      const value = this.attribute(name, "string");
      return value === null ? otherwise : value;
    }
    ignore(...names) {
      names.forEach((name) => this.attributes.delete(name));
    }
    list(place) {
      const value = this.optional(place, "integers");
      if (value === undefined) return null;
      if (value.shape.length !== 1) unusable("a list must have rank 1");
      return value.data;
    }
    // From the attribute or from the input, never both; null if neither.
    axes(place) {
      const attribute = this.ints("axes");
      const input = this.list(place);
      if (attribute !== null && input !== null) unusable("axes twice");
      return attribute !== null ? attribute : input;
    }
    finish() {
      if (this.attributes.size > 0) unusable("an attribute that the operator does not take");
      if (this.values.length > this.taken) unusable("an input that the operator does not take");
    }
  }

  const ALL = ["integers", "reals", "tokens", "variable"];
  const OPERATORS = new Map(Object.entries({
    Constant(builder, node, given) {
      if (node.attributes.size !== 1) unusable("a Constant must have one attribute");
      const [{ name }] = node.attributes.values();
      if (name === "value") return given.attribute(name, "tensor");
      if (name === "value_int") return integers([], [given.int(name)]);
      if (name === "value_float") return storedReals([], Float64Array.of(given.attribute(name, "float")));
      if (name === "value_ints") {
        const list = given.ints(name);
        return integers([list.length], list);
      }
      if (name !== "value_floats") unusable("a Constant of another kind");
      const list = given.attribute(name, "floats");
      return storedReals([list.length], Float64Array.from(list));
    },

    Identity(builder, node, given) {
      return given.value(0, ...ALL);
    },

    Dropout(builder, node, given) {
      given.ignore("ratio", "seed");
      given.optional(1, "integers", "reals");
      const training = given.optional(2, "integers");
      if (training !== undefined && training.data.some((x) => x !== 0n)) unusable("Dropout in training mode");
      return given.value(0, ...ALL);
    },

    Cast(builder, node, given) {
      const x = given.value(0, ...ALL);
      const to = given.int("to", 0n);
      if (x.kind === "integers" || x.kind === "tokens") {
        if (to !== 6n && to !== 7n) unusable("a Cast of integers to another type");
        const bits = to === 6n ? 32 : 64;
        if (x.kind === "integers" && x.data.some((n) => n !== BigInt.asIntN(bits, n))) unusable("a Cast that does not fit");
      } else if (to !== BigInt(builder.model.realType)) {
        unusable("a Cast of reals to another type");
      }
      return x;
    },

    Shape(builder, node, given) {
      const { shape } = given.value(0, ...ALL);
      const bound = (value) => {
        const at = value < 0n ? value + BigInt(shape.length) : value;
        return at < 0n ? 0 : at > BigInt(shape.length) ? shape.length : Number(at);
      };
      const part = shape.slice(bound(given.int("start", 0n)), bound(given.int("end", BigInt(shape.length))));
      return integers([part.length], part.map(BigInt));
    },

    Flatten(builder, node, given) {
      const x = given.value(0, ...ALL);
      const axis = given.int("axis", 1n);
      const rank = x.shape.length;
      const at = axis === BigInt(rank) ? rank : axisOf(axis, rank);
      return builder.rearrange(node, x, [product(x.shape.slice(0, at)), product(x.shape.slice(at))], null);
    },

    Reshape(builder, node, given) {
      const x = given.value(0, ...ALL);
      const wanted = given.list(1);
      if (wanted === null) unusable("a Reshape without shape");
      if (given.flag("allowzero", 0) && wanted.includes(0n)) unusable("allowzero");
      if (wanted.length > LIMIT.rank) unusable("a shape of too high a rank");
      const shape = wanted.map((n, axis) => {
        if (n === 0n && axis >= x.shape.length) unusable("a Reshape that copies what is not there");
        return n === 0n ? x.shape[axis] : small(n, -1);
      });
      const free = shape.indexOf(-1);
      if (free >= 0) {
        shape[free] = 1;
        const rest = product(shape);
        if (rest <= 0 || x.size % rest !== 0) unusable("a Reshape that does not fit");
        shape[free] = x.size / rest;
      }
      if (product(shape) !== x.size) unusable("a Reshape that does not fit");
      return builder.rearrange(node, x, shape, null);
    },

    Squeeze(builder, node, given) {
      const x = given.value(0, ...ALL);
      const given1 = given.axes(1);
      const axes = given1 === null ? range(x.shape.length).filter((axis) => x.shape[axis] === 1) : axesOf(given1, x.shape.length);
      if (axes.some((axis) => x.shape[axis] !== 1)) unusable("a Squeeze of an axis that is not 1");
      return builder.rearrange(node, x, x.shape.filter((_, axis) => !axes.includes(axis)), null);
    },

    Unsqueeze(builder, node, given) {
      const x = given.value(0, ...ALL);
      const axes = given.axes(1);
      if (axes === null) unusable("an Unsqueeze without axes");
      const rank = x.shape.length + axes.length;
      const places = axesOf(axes, rank);
      const rest = [...x.shape];
      return builder.rearrange(node, x, range(rank).map((axis) => (places.includes(axis) ? 1 : rest.shift())), null);
    },

    Transpose(builder, node, given) {
      const x = given.value(0, ...ALL);
      const rank = x.shape.length;
      const perm = given.ints("perm") || range(rank).reverse().map(BigInt);
      const axes = perm.map((axis) => small(axis, 0));
      if (axes.length !== rank || new Set(axes).size !== rank || axes.some((axis) => axis >= rank)) unusable("no permutation");
      const strides = stridesOf(x.shape);
      const index = grid(axes.map((axis) => range(x.shape[axis]).map((i) => i * strides[axis])));
      return builder.rearrange(node, x, axes.map((axis) => x.shape[axis]), index);
    },

    Gather(builder, node, given) {
      const x = given.value(0, ...ALL);
      const rows = given.value(1, "integers", "tokens");
      const axis = axisOf(given.int("axis", 0n), x.shape.length);
      const shape = [...x.shape.slice(0, axis), ...rows.shape, ...x.shape.slice(axis + 1)];
      checkShape(shape);
      if (rows.kind === "tokens") {
        if (x.kind !== "reals" || x.shape.length !== 2 || axis !== 0) unusable("a Gather by tokens that is no embedding");
        return builder.variable(shape, builder.step("embed", node, [], product(shape), { table: x, at: rows.at }));
      }
      const length = BigInt(x.shape[axis]);
      const picked = rows.data.map((row) => {
        if (row < -length || row >= length) unusable("a Gather out of range");
        return Number(row < 0n ? row + length : row);
      });
      const inner = product(x.shape.slice(axis + 1));
      const outer = range(product(x.shape.slice(0, axis))).map((i) => i * x.shape[axis] * inner);
      return builder.rearrange(node, x, shape, grid([outer, picked.map((row) => row * inner), range(inner)]));
    },

    Slice(builder, node, given) {
      const x = given.value(0, ...ALL);
      const rank = x.shape.length;
      const starts = given.list(1);
      const ends = given.list(2);
      if (starts === null || ends === null) unusable("a Slice without starts or ends");
      const axes = axesOf(given.list(3) || range(starts.length), rank);
      const steps = given.list(4) || starts.map(() => 1n);
      if ([ends, axes, steps].some((list) => list.length !== starts.length)) unusable("a Slice with lists of different lengths");
      const places = x.shape.map(range);
      axes.forEach((axis, number) => {
        const length = BigInt(x.shape[axis]);
        const step = steps[number];
        if (step === 0n) unusable("a Slice with step 0");
        // As numpy: negative numbers count from the end, then both are cut to what can be reached.
        const [lowest, highest] = step > 0n ? [0n, length] : [-1n, length - 1n];
        const cut = (value) => {
          const at = value < 0n ? value + length : value;
          return at < lowest ? lowest : at > highest ? highest : at;
        };
        const end = cut(ends[number]);
        const picked = [];
        for (let at = cut(starts[number]); step > 0n ? at < end : at > end; at += step) picked.push(Number(at));
        if (picked.length === 0) unusable("an empty Slice");
        places[axis] = picked;
      });
      const strides = stridesOf(x.shape);
      const index = grid(places.map((list, axis) => list.map((i) => i * strides[axis])));
      return builder.rearrange(node, x, places.map((list) => list.length), index);
    },

    Concat(builder, node, given) {
      const values = given.values.map((_, place) => given.value(place, "integers", "reals", "variable"));
      if (values.length === 0) unusable("a Concat of nothing");
      const rank = values[0].shape.length;
      const wanted = given.int("axis", null);
      if (wanted === null) unusable("a Concat without axis");
      const axis = axisOf(wanted, rank);
      const rest = (shape) => shape.map((n, other) => (other === axis ? 1 : n));
      if (values.some((value) => !sameShape(rest(value.shape), rest(values[0].shape)))) unusable("a Concat that does not fit");
      const shape = [...values[0].shape];
      shape[axis] = values.reduce((sum, value) => sum + value.shape[axis], 0);
      checkShape(shape);
      // Row by row of what comes before the axis: the block of each value.
      const which = new Int32Array(product(shape));
      const index = new Int32Array(product(shape));
      let at = 0;
      for (let row = 0; row < product(shape.slice(0, axis)); row++) {
        values.forEach((value, number) => {
          const block = product(value.shape.slice(axis));
          for (let i = 0; i < block; i++) {
            which[at] = number;
            index[at++] = row * block + i;
          }
        });
      }
      const kinds = new Set(values.map((value) => value.kind));
      if (kinds.has("integers")) {
        if (kinds.size > 1) unusable("a Concat of integers and reals");
        return integers(shape, Array.from(index, (i, place) => values[which[place]].data[i]));
      }
      if (kinds.has("variable")) return builder.mix(node, values.map((value) => ({ ...value })), shape, which, index);
      const den = values.map((value) => value.den).reduce(leastMultiple);
      return reals(shape, Array.from(index, (i, place) => {
        const value = values[which[place]];
        return value.get(i) * (den / value.den);
      }), den);
    },

    Pad(builder, node, given) {
      if (given.string("mode", "constant") !== "constant") unusable("a Pad of another mode");
      const x = given.value(0, "variable");
      const pads = given.list(1);
      if (pads === null) unusable("a Pad without pads");
      const filler = given.optional(2, "reals") || reals([], [0n], 1n);
      if (filler.size !== 1) unusable("a Pad with several values");
      const rank = x.shape.length;
      const axes = axesOf(given.list(3) || range(rank), rank);
      if (pads.length !== 2 * axes.length) unusable("a Pad with pads of the wrong length");
      const before = Array(rank).fill(0);
      const shape = [...x.shape];
      axes.forEach((axis, number) => {
        before[axis] = small(pads[number], 0);
        shape[axis] += before[axis] + small(pads[number + axes.length], 0);
      });
      checkShape(shape);
      // Places outside get an offset so low that no sum with it is a place.
      const strides = stridesOf(x.shape);
      const outside = -(2 ** 26);
      const index = grid(shape.map((n, axis) => range(n).map((i) => {
        const from = i - before[axis];
        return from < 0 || from >= x.shape[axis] ? outside : from * strides[axis];
      })));
      const which = index.map((i) => (i < 0 ? 1 : 0));
      return builder.mix(node, [x, filler], shape, which, index.map((i) => (i < 0 ? 0 : i)));
    },

    Add(builder, node, given) {
      const result = builder.arithmetic(node, given);
      if (result.kind !== "variable") return result;
      // A MatMul directly followed by the Add of one constant row is one layer with bias (section 8).
      for (const [place, other] of [[0, 1], [1, 0]]) {
        const maker = builder.makers.get(node.inputs[place]);
        const x = given.values[place];
        const constant = given.values[other];
        if (maker === undefined || maker.operator !== "MatMul" || x.kind !== "variable" || constant.kind !== "reals") continue;
        const last = x.shape[x.shape.length - 1];
        const own = constant.shape[constant.shape.length - 1];
        if (constant.size === last && own === last) builder.tensors[result.tensor].product = builder.tensors[x.tensor];
      }
      return result;
    },

    Sub(builder, node, given) {
      return builder.arithmetic(node, given);
    },
    Mul(builder, node, given) {
      return builder.arithmetic(node, given);
    },
    Div(builder, node, given) {
      return builder.arithmetic(node, given);
    },

    Neg(builder, node, given) {
      const x = given.value(0, "variable");
      return builder.each(node, [x], x.shape, [-1n], 1n, null);
    },

    MatMul(builder, node, given) {
      const x = given.value(0, "variable");
      const w = given.value(1, "reals");
      const rank = x.shape.length;
      if (rank < 2 || w.shape.length !== 2 || w.shape[0] !== x.shape[rank - 1]) unusable("a MatMul that does not fit");
      const [inner, outer] = w.shape;
      const num = numerators(w);
      const columns = range(outer).map((j) => range(inner).map((k) => num[k * outer + j]));
      const shape = [...x.shape.slice(0, -1), outer];
      return builder.product(node, x, product(x.shape.slice(0, -1)), inner, outer, columns, w.den, shape, null);
    },

    Gemm(builder, node, given) {
      const alpha = given.real("alpha", 1);
      const beta = given.real("beta", 1);
      if (given.int("transA", 0n) !== 0n) unusable("transA");
      const transposed = given.flag("transB", 0);
      const x = given.value(0, "variable");
      const w = given.value(1, "reals");
      const c = given.optional(2, "reals");
      if (x.shape.length !== 2 || w.shape.length !== 2) unusable("a Gemm of another rank than 2");
      if (x.shape[0] !== 1) unusable("a Gemm of several rows");
      const [inner, outer] = transposed ? [w.shape[1], w.shape[0]] : w.shape;
      const [rows] = x.shape;
      if (x.shape[1] !== inner) unusable("a Gemm that does not fit");
      const num = numerators(w);
      const columns = range(outer).map((j) =>
        range(inner).map((k) => alpha.num * num[transposed ? j * inner + k : k * outer + j]),
      );
      const shape = [rows, outer];
      let bias = null;
      if (c !== undefined) {
        if (!sameShape(broadcastShape(c.shape, shape), shape)) unusable("a Gemm whose C does not fit");
        const spread = builder.rearrange(node, c, shape, broadcastIndex(c.shape, shape));
        bias = { num: spread.num.map((value) => value * beta.num), den: c.den * beta.den };
      }
      return builder.product(node, x, rows, inner, outer, columns, w.den * alpha.den, shape, bias);
    },

    Conv(builder, node, given) {
      const x = given.value(0, "variable");
      const w = given.value(1, "reals");
      const b = given.optional(2, "reals");
      if (![3, 4].includes(x.shape.length) || w.shape.length !== x.shape.length) unusable("a Conv of another rank than 3 or 4");
      const [batch, channels, ...spatial] = x.shape;
      const [outer, inner, ...kernel] = w.shape;
      const groups = small(given.int("group", 1n), 1);
      if (inner * groups !== channels || outer % groups !== 0) unusable("a Conv whose groups do not fit");
      if (b !== undefined && !sameShape(b.shape, [outer])) unusable("a Conv whose bias does not fit");
      if (kernel.some((n) => n < 1)) unusable("a Conv without kernel");
      const { strides, dilations, pads } = builder.spatial(given, x.shape, kernel);
      const { out, windows } = kernelWindows(spatial, kernel, strides, dilations, pads, batch * channels);
      const place = product(spatial);
      const places = product(out);
      // Windows: batch, group, output place. Inside: channel of the group, kernel place.
      const all = range(batch * groups).flatMap((copy) =>
        windows.map((window) =>
          Int32Array.from(range(inner).flatMap((channel) =>
            window.map((i) => (i < 0 ? -1 : (copy * inner + channel) * place + i)),
          )),
        ),
      );
      const num = numerators(w);
      const width = inner * product(kernel);
      const columns = range(outer).map((j) => num.slice(j * width, (j + 1) * width));
      const shape = [batch, outer, ...out];
      if (product(shape) * width > LIMIT.convolution) unusable("a Conv that applies too many weights");
      const window = new Int32Array(product(shape));
      const column = new Int32Array(product(shape));
      for (let i = 0; i < window.length; i++) {
        const channel = Math.floor(i / places) % outer;
        const copy = Math.floor(i / (places * outer)) * groups + Math.floor(channel / (outer / groups));
        window[i] = copy * places + (i % places);
        column[i] = channel;
      }
      const bias = b && { num: Array.from(column, (channel) => b.get(channel)), den: b.den };
      return builder.matrix(node, x, shape, all, columns, w.den, window, column, bias || null);
    },

    BatchNormalization(builder, node, given) {
      const x = given.value(0, "variable");
      const [scale, shift, mean, variance] = [1, 2, 3, 4].map((place) => given.value(place, "reals"));
      const epsilon = given.real("epsilon", Math.fround(0.00001));
      given.ignore("momentum");
      if (given.flag("training_mode", 0)) unusable("BatchNormalization in training mode");
      if (node.outputs.length !== 1) unusable("BatchNormalization with several outputs");
      if (x.shape.length < 2) unusable("BatchNormalization of too low a rank");
      const channels = x.shape[1];
      if ([scale, shift, mean, variance].some((c) => !sameShape(c.shape, [channels]))) unusable("BatchNormalization that does not fit");
      builder.computed = true;
      // scale r x + (B - mean scale r), with r = floor(2^64 / sqrt(var + epsilon)) / 2^64.
      const weightDen = scale.den * ONE;
      const biasDen = leastMultiple(shift.den, mean.den * weightDen);
      const weights = [];
      const biases = [];
      for (let c = 0; c < channels; c++) {
        const sum = variance.get(c) * epsilon.den + epsilon.num * variance.den;
        if (sum <= 0n) unusable("BatchNormalization with a variance that is not positive");
        const weight = scale.get(c) * squareRoot((ONE * ONE * variance.den * epsilon.den) / sum);
        weights.push(weight);
        biases.push(shift.get(c) * (biasDen / shift.den) - mean.get(c) * weight * (biasDen / (mean.den * weightDen)));
      }
      const inner = product(x.shape.slice(2));
      const channelOf = Array.from({ length: x.size }, (_, i) => Math.floor(i / inner) % channels);
      const bias = { num: channelOf.map((c) => biases[c]), den: biasDen };
      return builder.each(node, [x], x.shape, [channelOf.map((c) => weights[c])], weightDen, bias);
    },

    ReduceSum(builder, node, given) {
      const { x, windows, shape } = builder.reduction(node, given);
      return builder.sum(node, x, shape, windows);
    },
    ReduceMean(builder, node, given) {
      const { x, windows, shape } = builder.reduction(node, given);
      return builder.mean(node, x, shape, windows, windows.map((window) => window.length));
    },
    ReduceMax(builder, node, given) {
      const { x, windows, shape } = builder.reduction(node, given);
      return builder.maximum(node, x, shape, windows);
    },

    AveragePool(builder, node, given) {
      const padded = given.flag("count_include_pad", 0);
      const { x, windows, shape, full, dilations } = builder.pool(node, given);
      if (dilations.some((n) => n !== 1)) unusable("AveragePool with dilations");
      return builder.mean(node, x, shape, windows, windows.map((window) => (padded ? full : window.length)));
    },
    MaxPool(builder, node, given) {
      if (given.int("storage_order", 0n) !== 0n) unusable("storage_order");
      const { x, windows, shape } = builder.pool(node, given);
      return builder.maximum(node, x, shape, windows);
    },
    GlobalAveragePool(builder, node, given) {
      const { x, windows, shape } = globalPool(given);
      return builder.mean(node, x, shape, windows, windows.map((window) => window.length));
    },
    GlobalMaxPool(builder, node, given) {
      const { x, windows, shape } = globalPool(given);
      return builder.maximum(node, x, shape, windows);
    },

    Max(builder, node, given) {
      const values = given.values.map((_, place) => given.value(place, "reals", "variable"));
      if (values.length < 2 || values.every((value) => value.kind !== "variable")) unusable("a Max of fewer than two, or of constants");
      const shape = values.map((value) => value.shape).reduce(broadcastShape);
      checkShape(shape);
      const size = product(shape);
      if (size * values.length > LIMIT.windows) unusable("windows of too many elements");
      const which = grid([range(values.length), new Int32Array(size)]);
      const index = Int32Array.from(values.flatMap((value) => Array.from(broadcastIndex(value.shape, shape))));
      const all = builder.mix(node, values.map((value) => ({ ...value })), [values.length * size], which, index);
      const windows = range(size).map((i) => Int32Array.from(range(values.length), (number) => number * size + i));
      return builder.maximum(node, all, shape, windows);
    },

    Relu(builder, node, given) {
      return builder.rectifier(node, given.value(0, "variable"), { num: 0n, den: 1n });
    },
    LeakyRelu(builder, node, given) {
      const alpha = given.real("alpha", Math.fround(0.01));
      if (alpha.num < 0n || alpha.num > alpha.den) unusable("LeakyRelu with alpha outside 0 to 1");
      return builder.rectifier(node, given.value(0, "variable"), alpha);
    },

    Softmax: head,
    LogSoftmax: head,
    Sigmoid: head,
    Tanh: head,
  }));

  function globalPool(given) {
    const x = given.value(0, "variable");
    if (![3, 4].includes(x.shape.length)) unusable("a pool of another rank than 3 or 4");
    return { x, ...reduceWindows(x.shape, range(x.shape.length).slice(2), true) };
  }

  // Strictly increasing in each logit against the others: the logits are its input.
  function head(builder, node, given) {
    const x = given.value(0, "variable");
    if (["Softmax", "LogSoftmax"].includes(node.operator)) {
      const rank = x.shape.length;
      if (axisOf(given.int("axis", -1n), rank) !== rank - 1) unusable("a head over another axis than the last");
    }
    const { model } = builder;
    if (node.number !== model.nodes.length - 1 || node.outputs[0] !== model.output.name) unusable("a head that is not last");
    builder.head = node.operator;
    return x;
  }

  class Network {
    constructor(tensors, logits, canBeFloat) {
      this.tensors = tensors;
      this.logits = logits.tensor;
      this.classes = logits.size;
      this.canBeFloat = canBeFloat;
      // Only what the logits depend on plays a part.
      const live = new Set([this.logits]);
      for (let id = this.logits; id >= 0; id--) if (live.has(id)) tensors[id].inputs.forEach((input) => live.add(input));
      this.steps = tensors.filter((step) => live.has(step.id));
      this.front = this.steps.filter((step) => step.front);
      this.back = this.steps.filter((step) => !step.front);
      this.layers = this.back.filter((step) => step.kind === "rectifier" || step.kind === "maximum");
      this.byNode = new Map(this.layers.map((step) => [step.node, step]));
      if (this.layers.length > LIMIT.layers) unusable("too many nonlinear layers");
      // Where the front ends: what later steps read, or the logits themselves.
      const read = new Set(this.back.flatMap((step) => step.inputs));
      this.border = this.front.filter((step) => read.has(step.id) || step.id === this.logits);
      this.embeddings = tensors.filter((step) => step.kind === "embed");
      for (const step of this.steps) this.prepare(step);
    }

    // What stays the same for every certificate: weights and biases brought to the denominator of the result.
    prepare(step) {
      const inputs = step.inputs.map((id) => this.tensors[id]);
      if (step.kind === "move") {
        step.factors = inputs.map((input) => step.den / input.den);
        step.scaled = step.constant.num.map((x) => x * (step.den / step.constant.den));
      }
      if (step.kind === "matrix" || step.kind === "each") {
        step.factors = inputs.map((input) => step.den / (input.den * step.weightDen));
        step.scaled = step.bias && step.bias.map((x) => x * (step.den / step.biasDen));
      }
      if (step.kind === "maximum") step.used = [...new Set(step.windows.flatMap((window) => [...window]))];
    }

    // The exact elements of one step from those of its inputs.
    forward(step, values) {
      const inputs = step.inputs.map((id) => values[id]);
      const out = new Array(step.size);
      const [x] = inputs;
      if (step.kind === "move") {
        const all = [...inputs.map((input, number) => scaledBy(input, step.factors[number])), step.scaled];
        for (let i = 0; i < step.size; i++) out[i] = all[step.which[i]][step.index[i]];
      } else if (step.kind === "matrix") {
        const [factor] = step.factors;
        for (let i = 0; i < step.size; i++) {
          const places = step.windows[step.window[i]];
          const weights = step.columns[step.column[i]];
          let sum = 0n;
          for (let k = 0; k < places.length; k++) {
            if (places[k] < 0) continue;
            const value = x[places[k]];
            if (value !== 0n) sum += weights[k] * value;
          }
          out[i] = step.scaled === null ? sum * factor : sum * factor + step.scaled[i];
        }
      } else if (step.kind === "each") {
        for (let i = 0; i < step.size; i++) {
          let sum = step.scaled === null ? 0n : step.scaled[i];
          inputs.forEach((input, number) => (sum += weightAt(step, number, i) * input[i] * step.factors[number]));
          out[i] = sum;
        }
      } else if (step.kind === "rectifier") {
        for (let i = 0; i < step.size; i++) out[i] = x[i] * (x[i] < 0n ? step.alpha.num : step.alpha.den);
      } else {
        for (let i = 0; i < step.size; i++) out[i] = greatest(step.windows[i], (place) => x[place]);
      }
      return out;
    }

    // Adds to `changes` what changes in a step when element `index` of its input number `number` grows by `amount`.
    spread(step, number, index, amount, changes) {
      if (step.readers === undefined) step.readers = readersOf(step, step.inputs.map((id) => this.tensors[id].size));
      const add = (i, x) => changes.set(i, (changes.get(i) || 0n) + x);
      const scaled = amount * step.factors[number];
      if (step.kind === "each") {
        add(index, scaled * weightAt(step, number, index));
      } else if (step.kind === "move") {
        for (const i of step.readers[number][index]) add(i, scaled);
      } else {
        for (const [window, k] of step.readers[index]) {
          for (const i of step.outputsOf[window]) {
            const weight = step.columns[step.column[i]][k];
            if (weight !== 0n) add(i, scaled * weight);
          }
        }
      }
    }

    // Follows an element back through steps that only move elements, until the front begins.
    origin(id, index) {
      let step = this.tensors[id];
      while (step.kind === "move" && !step.front) {
        const number = step.which[index];
        index = step.index[index];
        if (number === step.inputs.length) return { constant: step.constant.num[index], den: step.constant.den };
        step = this.tensors[step.inputs[number]];
      }
      return { step, index };
    }
  }

  function weightAt(step, number, i) {
    const weights = step.weights[number];
    return typeof weights === "bigint" ? weights : weights[i];
  }
  function scaledBy(values, factor) {
    return factor === 1n ? values : values.map((x) => x * factor);
  }
  function greatest(items, of) {
    let best = of(items[0]);
    for (let i = 1; i < items.length; i++) {
      const value = of(items[i]);
      if (value > best) best = value;
    }
    return best;
  }
  function readersOf(step, sizes) {
    const lists = (size) => Array.from({ length: size }, () => []);
    if (step.kind === "move") {
      const readers = sizes.map(lists);
      step.which.forEach((number, i) => number < sizes.length && readers[number][step.index[i]].push(i));
      return readers;
    }
    if (step.kind !== "matrix") return null;
    step.outputsOf = lists(step.windows.length);
    step.window.forEach((window, i) => step.outputsOf[window].push(i));
    const readers = lists(sizes[0]);
    step.windows.forEach((places, window) => places.forEach((place, k) => place >= 0 && readers[place].push([window, k])));
    return readers;
  }

  // ---------------------------------------------------------------------------------------------------------------
  // The words of one certificate: what each swap changes where the front of the network ends
  // ---------------------------------------------------------------------------------------------------------------

  class Words {
    constructor(network, choices) {
      this.network = network;
      this.choices = choices;
      // Swaps are numbered over all positions: choice c > 0 of position p is swap number firstOf[p] + c - 1.
      this.firstOf = [];
      this.count = 0;
      for (const list of choices) {
        this.firstOf.push(this.count);
        this.count += list.length - 1;
      }
      for (const step of network.embeddings) {
        const rows = step.table.shape[0];
        for (const position of step.at) {
          if (choices[position].some((token) => token >= rows)) refuse("a token id beyond the rows of its table");
        }
      }
      // The original sentence, up to the border.
      const values = [];
      for (const step of network.front) values[step.id] = step.kind === "embed" ? this.embed(step) : network.forward(step, values);
      this.original = new Map(network.border.map((step) => [step.id, values[step.id]]));
      // columns: swap number -> border tensor -> its changed elements. rows: the same by element.
      this.columns = [];
      choices.forEach((list, position) => {
        for (let choice = 1; choice < list.length; choice++) this.columns.push(this.changes(position, list[0], list[choice]));
      });
      this.rows = new Map();
      for (const step of network.border) {
        const rows = Array.from({ length: step.size }, () => ({ swaps: [], amounts: [] }));
        this.columns.forEach((column, swap) => {
          const { places, amounts } = column.get(step.id);
          places.forEach((place, i) => {
            rows[place].swaps.push(swap);
            rows[place].amounts.push(amounts[i]);
          });
        });
        this.rows.set(step.id, rows);
      }
      this.rounding = null;
    }

    embed(step) {
      const width = step.table.shape[1];
      const out = [];
      for (const position of step.at) {
        for (let i = 0; i < width; i++) out.push(step.table.get(this.choices[position][0] * width + i));
      }
      return out;
    }

    changes(position, original, token) {
      const changed = new Map();
      for (const step of this.network.front) {
        const changes = new Map();
        if (step.kind === "embed") {
          const width = step.table.shape[1];
          step.at.forEach((at, place) => {
            if (at !== position) return;
            for (let i = 0; i < width; i++) {
              const amount = step.table.get(token * width + i) - step.table.get(original * width + i);
              if (amount !== 0n) changes.set(place * width + i, amount);
            }
          });
        } else {
          step.inputs.forEach((id, number) => {
            for (const [index, amount] of changed.get(id)) this.network.spread(step, number, index, amount, changes);
          });
        }
        changed.set(step.id, changes);
      }
      return new Map(this.network.border.map((step) => {
        const entries = [...changed.get(step.id)].filter(([, amount]) => amount !== 0n);
        return [step.id, { places: entries.map(([place]) => place), amounts: entries.map(([, amount]) => amount) }];
      }));
    }

    // The border of a sentence, given that of another one and one more swap.
    withSwap(border, swap) {
      const result = new Map();
      for (const [id, values] of border) {
        const copy = values.slice();
        const { places, amounts } = this.columns[swap].get(id);
        for (let i = 0; i < places.length; i++) copy[places[i]] += amounts[i];
        result.set(id, copy);
      }
      return result;
    }

    // All tensors from the border on.
    evaluate(border) {
      const values = [];
      for (const [id, elements] of border) values[id] = elements;
      for (const step of this.network.back) values[step.id] = this.network.forward(step, values);
      return values;
    }
  }

  // ---------------------------------------------------------------------------------------------------------------
  // Regions (section 5)
  // ---------------------------------------------------------------------------------------------------------------

  class Region {
    constructor(choices, swaps, rivals) {
      this.choices = choices.map((list) => range(list.length));
      this.groups = [{ positions: range(choices.length), low: 0, high: swaps }];
      this.phases = new Map(); // node -> element -> "low" (<= 0) or "high" (>= 0)
      this.slopes = new Map(); // node -> element -> value
      this.betas = new Map(); // node -> element -> { value, exponent }
      this.joint = new Map(); // node -> groups of { element -> value }
      this.rivals = rivals;
    }

    // What a region can do: the places where a word can be swapped, and the groups, smallest first. A unit is a place
    // or a group before; each group takes the units of its positions that no smaller group has taken.
    plan() {
      const places = [];
      const unitOf = new Map();
      this.choices.forEach((chosen, position) => {
        const swaps = chosen.filter((choice) => choice > 0);
        if (swaps.length === 0) return;
        unitOf.set(position, places.length);
        places.push({ position, swaps, forced: chosen[0] !== 0 });
      });
      const groups = [...this.groups].sort((a, b) => a.positions.length - b.positions.length);
      const steps = groups.map((group, number) => {
        const units = new Set();
        for (const position of group.positions) {
          if (!unitOf.has(position)) continue;
          units.add(unitOf.get(position));
          unitOf.set(position, places.length + number);
        }
        return { units: [...units], low: group.low, high: group.high };
      });
      return { places, steps };
    }
  }

  // The walk over a plan: ofPlace for each place, join for the units of a group, cut to its range.
  function walk({ places, steps }, ofPlace, join, cut) {
    const units = places.map(ofPlace);
    for (const { units: inside, low, high } of steps) units.push(cut(join(inside.map((unit) => units[unit])), low, high));
    return units[units.length - 1];
  }

  // Does any number of swaps fit all groups?
  function canBe(plan) {
    let possible = true;
    walk(
      plan,
      (place) => [place.forced ? 1 : 0, 1],
      (parts) => parts.reduce(([low, high], part) => [low + part[0], high + part[1]], [0, 0]),
      ([low, high], lowest, highest) => {
        const both = [Math.max(low, lowest), Math.min(high, highest)];
        if (both[0] > both[1]) possible = false;
        return both;
      },
    );
    return possible;
  }

  // The number of sentences: polynomials in the number of swaps, never longer than the budget.
  function countSentences(plan) {
    const budget = Math.min(plan.places.length, plan.steps[plan.steps.length - 1].high);
    if (plan.places.length * budget > LIMIT.counting) refuse("too many sentences to count them");
    const times = (a, b) => {
      const length = Math.min(a.length + b.length - 1, budget + 1);
      const result = Array(Math.max(length, 0)).fill(0n);
      a.forEach((x, i) => {
        if (x === 0n) return;
        for (let j = 0; j < b.length && i + j < length; j++) result[i + j] += x * b[j];
      });
      return result;
    };
    const counts = walk(
      plan,
      ({ forced, swaps }) => [forced ? 0n : 1n, BigInt(swaps.length)],
      (parts) => parts.reduce(times, [1n]),
      (counts, low, high) => counts.map((count, swaps) => (swaps < low || swaps > high ? 0n : count)),
    );
    const total = counts.reduce((sum, count) => sum + count, 0n);
    if (total >= LIMIT.count) refuse("too many sentences to count them");
    return total;
  }

  function byValueDescending(a, b) {
    return a > b ? -1 : a < b ? 1 : 0;
  }

  // The best total of `amounts` (one per place) over the sets of places the plan allows. For each unit: the fewest
  // swaps, the best total with so many, and what each further swap adds, which never grows.
  function bestTotal(plan, amounts) {
    if (plan.steps.length === 1 && plan.steps[0].low === 0) return bestTotalWithoutGroups(plan, amounts);
    const best = walk(
      plan,
      (place, i) => (place.forced ? { fewest: 1, total: amounts[i], more: [] } : { fewest: 0, total: 0n, more: [amounts[i]] }),
      (parts) => {
        const all = { fewest: 0, total: 0n, more: [] };
        for (const part of parts) {
          all.fewest += part.fewest;
          all.total += part.total;
          for (const amount of part.more) all.more.push(amount);
        }
        return all;
      },
      ({ fewest, total, more }, low, high) => {
        // What is allowed before the least number of swaps is reached must be taken, best first.
        const must = Math.max(low - fewest, 0);
        const may = Math.min(high - fewest, more.length);
        if (must === 0 && may === more.length) return { fewest, total, more };
        more.sort(byValueDescending);
        for (let i = 0; i < must; i++) total += more[i];
        return { fewest: fewest + must, total, more: more.slice(must, may) };
      },
    );
    return best.more.reduce((sum, amount) => (amount > 0n ? sum + amount : sum), best.total);
  }

  // The same where only the budget counts: all forced places, and the greatest of the others that are positive.
  function bestTotalWithoutGroups({ places, steps }, amounts) {
    let left = steps[0].high;
    let total = 0n;
    let gains = [];
    for (let i = 0; i < places.length; i++) {
      if (places[i].forced) {
        total += amounts[i];
        left -= 1;
      } else if (amounts[i] > 0n) {
        gains.push(amounts[i]);
      }
    }
    if (gains.length > left) gains = gains.sort(byValueDescending).slice(0, left);
    for (const gain of gains) total += gain;
    return total;
  }

  // What one leaf works with. Its swaps are those its places allow, numbered place by place: those of place i are from
  // ends[i - 1] to ends[i].
  class Leaf {
    constructor(words, region, plan) {
      this.words = words;
      this.region = region;
      this.plan = plan;
      this.bounds = new Map(); // nonlinear step -> bounds of its inputs
      this.lines = new Map(); // nonlinear step -> its relaxations
      this.count = 0;
      this.numberOf = new Int32Array(words.count).fill(-1);
      this.ends = plan.places.map(({ position, swaps }) => {
        for (const choice of swaps) this.numberOf[words.firstOf[position] + choice - 1] = this.count++;
        return this.count;
      });
      this.rows = new Map();
    }

    // What the swaps of this leaf change in one element of the border.
    row(id, i) {
      if (!this.rows.has(id)) this.rows.set(id, []);
      const rows = this.rows.get(id);
      if (rows[i] === undefined) {
        const all = this.words.rows.get(id)[i];
        const kept = range(all.swaps.length).filter((j) => this.numberOf[all.swaps[j]] >= 0);
        rows[i] = { swaps: kept.map((j) => this.numberOf[all.swaps[j]]), amounts: kept.map((j) => all.amounts[j]) };
      }
      return rows[i];
    }
  }

  // An affine function of the words is (base + amounts of the swaps taken) / den, with one amount for each swap of the
  // leaf. Its least (sign -1) or greatest (sign 1) value in the region.
  function extreme({ plan, ends }, { base, amounts }, sign) {
    const best = new Array(ends.length);
    let swap = 0;
    for (let place = 0; place < ends.length; place++) {
      let most = amounts[swap++];
      for (; swap < ends[place]; swap++) {
        const amount = amounts[swap];
        if (sign > 0 ? amount > most : amount < most) most = amount;
      }
      best[place] = sign > 0 ? most : -most;
    }
    const total = bestTotal(plan, best);
    return sign > 0 ? base + total : base - total;
  }

  // ---------------------------------------------------------------------------------------------------------------
  // The linear recipe (section 7)
  // ---------------------------------------------------------------------------------------------------------------

  // A sparse vector of coefficients of a tensor's elements, over one denominator that may grow.
  class Coefficients {
    constructor(size, den) {
      this.num = new Array(size);
      this.touched = [];
      this.den = den;
    }
    // What numbers over `den` must be multiplied with before they are added.
    factor(den) {
      if (this.den % den !== 0n) {
        const common = leastMultiple(this.den, den);
        for (const i of this.touched) this.num[i] *= common / this.den;
        this.den = common;
      }
      return this.den / den;
    }
    add(i, x) {
      if (this.num[i] === undefined) {
        this.num[i] = x;
        this.touched.push(i);
      } else {
        this.num[i] += x;
      }
    }
  }

  // A linear combination of elements of several tensors, and a constant, on its way back to the words.
  class Combination {
    constructor(network) {
      this.network = network;
      this.parts = new Map();
      this.constant = { num: 0n, den: 1n };
    }
    to(id, den) {
      if (!this.parts.has(id)) this.parts.set(id, new Coefficients(this.network.tensors[id].size, den));
      return this.parts.get(id);
    }
    add(id, i, num, den) {
      const part = this.to(id, den);
      part.add(i, num * part.factor(den));
    }
    addConstant(num, den) {
      const common = leastMultiple(this.constant.den, den);
      this.constant = { num: this.constant.num * (common / this.constant.den) + num * (common / den), den: common };
    }

    // Replaces a linear step by its definition.
    passLinear(step) {
      const from = this.parts.get(step.id);
      if (from === undefined) return;
      this.parts.delete(step.id);
      const used = from.touched.filter((i) => from.num[i] !== 0n);
      let constant = 0n;
      if (step.kind === "move") {
        const parts = step.inputs.map((id) => this.to(id, from.den));
        const factors = parts.map((part) => part.factor(from.den));
        for (const i of used) {
          const number = step.which[i];
          if (number === parts.length) constant += from.num[i] * step.constant.num[step.index[i]];
          else parts[number].add(step.index[i], from.num[i] * factors[number]);
        }
        this.addConstant(constant, from.den * step.constant.den);
        return;
      }
      const den = from.den * step.weightDen;
      step.inputs.forEach((id, number) => {
        const part = this.to(id, den);
        const factor = part.factor(den);
        for (const i of used) {
          const x = from.num[i] * factor;
          if (step.kind === "each") {
            part.add(i, x * weightAt(step, number, i));
            continue;
          }
          const places = step.windows[step.window[i]];
          const weights = step.columns[step.column[i]];
          for (let k = 0; k < places.length; k++) {
            if (places[k] >= 0 && weights[k] !== 0n) part.add(places[k], x * weights[k]);
          }
        }
      });
      if (step.bias !== null) {
        for (const i of used) constant += from.num[i] * step.bias[i];
        this.addConstant(constant, from.den * step.biasDen);
      }
    }

    // What remains once only elements of the border are left: an affine function of the words.
    function(leaf) {
      const { words } = leaf;
      const dens = [...this.parts].map(([id, part]) => part.den * this.network.tensors[id].den);
      const den = dens.reduce(leastMultiple, this.constant.den);
      const amounts = new Array(leaf.count).fill(0n);
      let base = this.constant.num * (den / this.constant.den);
      for (const [id, part] of this.parts) {
        const factor = den / (part.den * this.network.tensors[id].den);
        const original = words.original.get(id);
        for (const i of part.touched) {
          const x = part.num[i] * factor;
          if (x === 0n) continue;
          base += x * original[i];
          const row = leaf.row(id, i);
          for (let j = 0; j < row.swaps.length; j++) amounts[row.swaps[j]] += x * row.amounts[j];
        }
      }
      return { base, amounts, den };
    }
  }

  // Bounds of one element, l down and u up to multiples of 2^-64 (so they are integers here).
  function elementBounds(leaf, id, index) {
    const { words } = leaf;
    const { network } = words;
    const { step, index: at, constant, den } = network.origin(id, index);
    if (constant !== undefined) return [floorDivide(constant * ONE, den), ceilDivide(constant * ONE, den)];
    if (step.kind === "rectifier") {
      const { low, high } = leaf.bounds.get(step.id);
      const { alpha } = step;
      const rectified = (x) => (x >= 0n ? x * alpha.den : x * alpha.num);
      return [floorDivide(rectified(low[at]), alpha.den), ceilDivide(rectified(high[at]), alpha.den)];
    }
    if (step.kind === "maximum") {
      const { low, high } = leaf.bounds.get(step.id);
      return [greatest(step.windows[at], (place) => low[place]), greatest(step.windows[at], (place) => high[place])];
    }
    if (step.front) {
      // The row of the element is its function of the words.
      const row = leaf.row(step.id, at);
      const amounts = new Array(leaf.count).fill(0n);
      for (let j = 0; j < row.swaps.length; j++) amounts[row.swaps[j]] = row.amounts[j];
      const f = { base: words.original.get(step.id)[at], amounts };
      return [floorDivide(extreme(leaf, f, -1) * ONE, step.den), ceilDivide(extreme(leaf, f, 1) * ONE, step.den)];
    }
    const [low, high] = [1n, -1n].map((sign) => {
      const combination = new Combination(network);
      combination.add(step.id, at, sign, 1n);
      substitute(leaf, combination, null);
      const f = combination.function(leaf);
      return floorDivide(extreme(leaf, f, -1) * ONE, f.den);
    });
    return [low, -high];
  }

  // Bounds of the inputs of every nonlinear layer, in file order. False if no sentence has the phases of the region.
  function findBounds(leaf) {
    const { network } = leaf.words;
    for (const step of network.layers) {
      const [input] = step.inputs;
      const { size } = network.tensors[input];
      const low = new Array(size);
      const high = new Array(size);
      const phases = leaf.region.phases.get(step.node);
      const elements = step.kind === "maximum" ? step.used : range(size);
      for (const i of elements) {
        [low[i], high[i]] = elementBounds(leaf, input, i);
        const phase = phases && phases.get(i);
        if (phase === "low" && high[i] > 0n) high[i] = 0n;
        if (phase === "high" && low[i] < 0n) low[i] = 0n;
        if (low[i] > high[i]) return false;
      }
      leaf.bounds.set(step.id, { low, high });
      leaf.lines.set(step.id, step.kind === "maximum" ? maximumLines(step, low, high) : rectifierLines(step, low, high));
    }
    return true;
  }

  // For each element: exact slope, or upper slope and constant, and lower slope. Slopes are over alpha.den 2^16,
  // constants over alpha.den 2^80.
  function rectifierLines({ alpha }, low, high) {
    const whole = alpha.den << 16n;
    const leak = alpha.num << 16n;
    return low.map((l, i) => {
      const u = high[i];
      if (l >= 0n) return { exact: whole };
      if (u <= 0n) return { exact: leak };
      const width = (u - l) * alpha.den;
      const s = floorDivide(((u * alpha.den - l * alpha.num) << 17n) + width, 2n * width) * alpha.den;
      const left = (leak - s) * l;
      const right = (whole - s) * u;
      return { exact: null, upper: s, constant: left > right ? left : right, lower: u > -l ? whole : leak };
    });
  }

  // For each window: the element with the greatest l, and whether it is the maximum for sure; else the greatest u.
  function maximumLines(step, low, high) {
    return step.windows.map((window) => {
      let best = window[0];
      for (const place of window) if (low[place] > low[best]) best = place;
      const exact = window.every((place) => place === best || high[place] <= low[best]);
      return { best, exact, constant: greatest(window, (place) => high[place]) };
    });
  }

  // Backward substitution for a lower bound, down to the border. `margin` is null for bounds of elements; for margins
  // it turns on slopes, betas and joint groups.
  function substitute(leaf, combination, margin) {
    const { back } = leaf.words.network;
    for (let i = back.length - 1; i >= 0; i--) {
      const step = back[i];
      if (step.kind === "rectifier") passRectifier(leaf, combination, step, margin);
      else if (step.kind === "maximum") passMaximum(leaf, combination, step);
      else combination.passLinear(step);
    }
  }

  function passMaximum(leaf, combination, step) {
    const from = combination.parts.get(step.id);
    if (from === undefined) return;
    combination.parts.delete(step.id);
    const lines = leaf.lines.get(step.id);
    let constant = 0n;
    for (const i of from.touched) {
      const x = from.num[i];
      if (x === 0n) continue;
      const { best, exact, constant: top } = lines[i];
      if (x > 0n || exact) combination.add(step.inputs[0], best, x, from.den);
      else constant += x * top;
    }
    combination.addConstant(constant, from.den * ONE);
  }

  function passRectifier(leaf, combination, step, margin) {
    const from = combination.parts.get(step.id);
    combination.parts.delete(step.id);
    const { region } = leaf;
    const { alpha } = step;
    const [input] = step.inputs;
    const phases = region.phases.get(step.node);
    if (from !== undefined) {
      const lines = leaf.lines.get(step.id);
      const slopes = margin && region.slopes.get(step.node);
      const done = margin ? passJointGroups(leaf, combination, step, from) : new Set();
      const den = from.den * (alpha.den << 16n);
      const part = combination.to(input, den);
      const factor = part.factor(den);
      let constant = 0n;
      for (const i of from.touched) {
        const x = from.num[i];
        if (x === 0n || done.has(i)) continue;
        const line = lines[i];
        let slope = line.exact;
        if (slope === null && x < 0n) {
          slope = line.upper;
          constant += x * line.constant;
        } else if (slope === null) {
          slope = line.lower;
          if (slopes && slopes.has(i)) {
            // a = max(alpha, value / 64)
            const wanted = (BigInt(slopes.get(i)) * alpha.den) << 10n;
            const least = alpha.num << 16n;
            slope = wanted > least ? wanted : least;
          }
        }
        part.add(i, x * slope * factor);
      }
      combination.addConstant(constant, den * ONE);
    }
    const betas = margin && region.betas.get(step.node);
    if (!betas || !phases) return;
    for (const [i, { value, exponent }] of betas) {
      if (!phases.has(i) || value === 0) continue;
      const beta = BigInt(value);
      combination.add(input, i, phases.get(i) === "high" ? -beta : beta, 1n << BigInt(exponent));
    }
  }

  // Replaces sum c_j y_j by sum c_j a_j x_j - T for the elements of each joint group with c_j < 0 and no phase.
  function passJointGroups(leaf, combination, step, from) {
    const done = new Set();
    const { region } = leaf;
    const { network } = leaf.words;
    const phases = region.phases.get(step.node);
    const [input] = step.inputs;
    for (const group of region.joint.get(step.node) || []) {
      const members = [...group].filter(([i]) => {
        const hasPhase = phases !== undefined && phases.has(i);
        return from.num[i] !== undefined && from.num[i] < 0n && !hasPhase;
      });
      if (members.length === 0) continue;
      const worst = greatestOverPatterns(leaf, step, members.map(([i, value]) => ({ i, value, size: -from.num[i], den: from.den })));
      combination.addConstant(-worst.num, worst.den);
      for (const [i, value] of members) {
        combination.add(input, i, from.num[i] * BigInt(value), from.den * 64n);
        done.add(i);
      }
    }
    return done;
  }

  // T of a joint group: the greatest, over d in {alpha, 1} for each member, of the maximum of sum |c_j| (d_j - a_j) x_j.
  // From one pattern d to the next only one member changes (a Gray code), so its term is added or taken away.
  function greatestOverPatterns(leaf, step, members) {
    const { alpha, inputs } = step;
    const functionOf = (terms) => {
      const sum = new Combination(leaf.words.network);
      for (const { i, num, den } of terms) sum.add(inputs[0], i, num, den);
      return sum.function(leaf);
    };
    // All over 64 alpha.den: alpha - a_j at first, and 1 - alpha for each member that changes.
    const start = members.map(({ i, value, size, den }) => ({
      i, num: size * (64n * alpha.num - BigInt(value) * alpha.den), den: den * alpha.den * 64n,
    }));
    const changes = members.map(({ i, size, den }) => {
      return functionOf([{ i, num: size * 64n * (alpha.den - alpha.num), den: den * alpha.den * 64n }]);
    });
    const f = functionOf(start);
    if (changes.some((change) => change.den !== f.den)) throw new Error("terms of a joint group with different denominators");
    let most = extreme(leaf, f, 1);
    const isOne = members.map(() => false);
    for (let count = 1; count < 2 ** members.length; count++) {
      // The member that changes is the number of times 2 divides the count.
      let member = 0;
      while (count % 2 ** (member + 1) === 0) member += 1;
      const { base, amounts } = changes[member];
      if (isOne[member]) {
        f.base -= base;
        for (let swap = 0; swap < amounts.length; swap++) f.amounts[swap] -= amounts[swap];
      } else {
        f.base += base;
        for (let swap = 0; swap < amounts.length; swap++) f.amounts[swap] += amounts[swap];
      }
      isOne[member] = !isOne[member];
      const value = extreme(leaf, f, 1);
      if (value > most) most = value;
    }
    return { num: most, den: f.den };
  }

  // The least of z_label - z_rival that the recipe can show, as an exact number.
  function leastMargin(leaf, label, rival) {
    const { network } = leaf.words;
    const combination = new Combination(network);
    combination.add(network.logits, label, 1n, 1n);
    combination.add(network.logits, rival, -1n, 1n);
    substitute(leaf, combination, true);
    const f = combination.function(leaf);
    return { num: extreme(leaf, f, -1), den: f.den };
  }

  // ---------------------------------------------------------------------------------------------------------------
  // The float32 level (section 8). A bounds |x|, e bounds the error; integers over 2^64.
  // ---------------------------------------------------------------------------------------------------------------

  const MOST = 1n << 40n;

  // boundsOf(step, i): the bounds l, u of element i of the step's input; null in the pass over the whole space.
  // `whole` is that pass, from which the front is taken.
  function roundingErrors(words, boundsOf, whole) {
    const { network } = words;
    const A = whole ? whole.A.slice() : [];
    const e = whole ? whole.e.slice() : [];
    for (const step of whole ? network.back : network.steps) {
      A[step.id] = new Array(step.size);
      e[step.id] = new Array(step.size);
      const limits = (i) => {
        const [input] = step.inputs;
        return boundsOf ? boundsOf(step, i) : [-A[input][i], A[input][i]];
      };
      for (let i = 0; i < step.size; i++) {
        let bounds;
        if (step.kind === "embed") bounds = [embeddingSize(words, step, i), 0n];
        else if (step.kind === "move") bounds = movedBounds(step, i, A, e);
        else if (step.kind === "rectifier") bounds = rectifiedBounds(step, limits(i), e[step.inputs[0]][i]);
        else if (step.kind === "maximum") bounds = maximumBounds(step.windows[i], limits, e[step.inputs[0]]);
        else bounds = affineBounds(step, i, A, e, whole === null);
        [A[step.id][i], e[step.id][i]] = bounds;
      }
    }
    return { A, e };
  }

  function embeddingSize(words, step, i) {
    const width = step.table.shape[1];
    const position = step.at[Math.floor(i / width)];
    const sizes = words.choices[position].map((token) => absolute(step.table.get(token * width + (i % width))));
    return ceilDivide(greatest(sizes, (size) => size) * ONE, step.table.den);
  }

  function movedBounds(step, i, A, e) {
    const number = step.which[i];
    const index = step.index[i];
    if (number === step.inputs.length) return [ceilDivide(absolute(step.constant.num[index]) * ONE, step.constant.den), 0n];
    return [A[step.inputs[number]][index], e[step.inputs[number]][index]];
  }

  function rectifiedBounds({ operator, alpha }, [low, high], e) {
    if (operator === "Relu") {
      if (high + e <= 0n) return [0n, 0n];
      return [high > 0n ? high : 0n, e];
    }
    const A = -low > high ? -low : high;
    return [A, e + ceilDivide(4n * 257n * (A + e), 1n << 32n) + 1n];
  }

  function maximumBounds(window, limits, e) {
    const size = greatest(window, (place) => {
      const [low, high] = limits(place);
      return -low > high ? -low : high;
    });
    return [size, greatest(window, (place) => e[place])];
  }

  // One element z = sum of w x + b of an affine layer. With `check`, the conditions of the section.
  function affineBounds(step, i, A, e, check) {
    const terms = [];
    // A MatMul whose bias is added by the next node is one layer with it.
    const layer = step.product || step;
    if (layer.kind === "matrix") {
      const places = layer.windows[layer.window[i]];
      const weights = layer.columns[layer.column[i]];
      places.forEach((place, k) => place >= 0 && terms.push([weights[k], layer.inputs[0], place]));
    } else {
      layer.inputs.forEach((id, number) => terms.push([weightAt(layer, number, i), id, i]));
    }
    let used = 0;
    let sizes = 0n;
    let errors = 0n;
    for (const [signed, id, place] of terms) {
      const weight = absolute(signed);
      const size = A[id][place];
      const error = e[id][place];
      if (check && weight > MOST * layer.weightDen) refuse("float32: a weight is larger than 2^40");
      if (weight === 0n || size + error === 0n) continue;
      used += 1;
      sizes += weight * size;
      errors += weight * error;
    }
    // Everything over den 2^64.
    const bias = step.bias === null ? 0n : absolute(step.bias[i]);
    const den = leastMultiple(layer.weightDen, step.biasDen);
    const factor = den / layer.weightDen;
    const b = bias * ONE * (den / step.biasDen);
    const total = (sizes + errors) * factor + b;
    const n = used + 3;
    if (check) {
      if (n > 65280) refuse("float32: a sum of too many terms");
      if (bias > MOST * step.biasDen) refuse("float32: a bias is larger than 2^40");
      if (total > MOST * ONE * den) refuse("float32: a sum may be larger than 2^40");
    }
    return [
      ceilDivide(sizes * factor + b, den),
      ceilDivide(((errors * factor) << 32n) + BigInt(n) * 257n * total, den << 32n) + 1n,
    ];
  }

  function wholeErrors(words) {
    if (words.rounding === null) words.rounding = roundingErrors(words, null, null);
    return words.rounding;
  }

  function marginError({ e }, network, label, rival) {
    return e[network.logits][label] + e[network.logits][rival] + 1n;
  }

  // Is num / den above the error bound of the whole space, or that of a closer look?
  function exceeds(words, num, den, label, rival, closer) {
    const { network } = words;
    if (num * ONE > marginError(wholeErrors(words), network, label, rival) * den) return true;
    if (num <= 0n) return false;
    return num * ONE > marginError(closer(), network, label, rival) * den;
  }

  // For one sentence l and u are its exact values, rounded.
  function sentenceErrors(words, values) {
    const boundsOf = (step, i) => {
      const [input] = step.inputs;
      const { den } = words.network.tensors[input];
      const x = values[input][i] * ONE;
      return [floorDivide(x, den), ceilDivide(x, den)];
    };
    return roundingErrors(words, boundsOf, wholeErrors(words));
  }

  function leafErrors(leaf) {
    const boundsOf = (step, i) => {
      const { low, high } = leaf.bounds.get(step.id);
      return [low[i], high[i]];
    };
    return roundingErrors(leaf.words, boundsOf, wholeErrors(leaf.words));
  }

  // ---------------------------------------------------------------------------------------------------------------
  // Leaves (section 6)
  // ---------------------------------------------------------------------------------------------------------------

  // Rival r beats label y iff z_r > z_y, or z_r = z_y and r < y.
  function isBeaten(difference, label, rival) {
    return difference < 0n || (difference === 0n && rival < label);
  }

  function checkLinear(leaf, level, label) {
    if (!canBe(leaf.plan) || !findBounds(leaf)) return;
    let errors = null;
    const closer = () => (errors = errors || leafErrors(leaf));
    for (const rival of leaf.region.rivals) {
      const { num, den } = leastMargin(leaf, label, rival);
      const holds =
        level === "real" ? !isBeaten(num, label, rival) : exceeds(leaf.words, num, den, label, rival, closer);
      if (!holds) refuse(`a linear leaf does not show that class ${rival} stays behind`);
    }
  }

  function checkSentence(words, border, level, label, rivals) {
    const { network } = words;
    const values = words.evaluate(border);
    const logits = values[network.logits];
    const { den } = network.tensors[network.logits];
    for (const rival of rivals) {
      const difference = logits[label] - logits[rival];
      const holds =
        level === "real"
          ? !isBeaten(difference, label, rival)
          : exceeds(words, difference, den, label, rival, () => sentenceErrors(words, values));
      if (!holds) refuse(`in an enumerated sentence class ${rival} does not stay behind`);
    }
  }

  // Every sentence of the region. Forced places come first, so that a sentence is complete once they are passed.
  function checkEnumerate(leaf, level, label) {
    const { words, plan, region } = leaf;
    const places = [...plan.places].sort((a, b) => (b.forced ? 1 : 0) - (a.forced ? 1 : 0));
    const forced = places.filter((place) => place.forced).length;
    const root = plan.steps[plan.steps.length - 1];
    const groups = region.groups.map((group) => ({ ...group, positions: new Set(group.positions) }));

    const visit = (stack, border) => {
      for (const { positions, low, high } of groups) {
        const inside = stack.filter((swap) => positions.has(places[swap.place].position)).length;
        if (inside < low || inside > high) return;
      }
      checkSentence(words, border, level, label, region.rivals);
    };

    // A stack of swaps, each at a later place than the one before. next: where the next swap may be tried.
    let border = words.original;
    const stack = [];
    let next = { place: 0, option: 0 };
    if (forced === 0) visit(stack, border);
    for (;;) {
      const { place, option } = next;
      const depth = stack.length;
      // A forced place cannot be left out.
      const reachable = place < places.length && depth < root.high && (depth >= forced || place === depth);
      if (!reachable) {
        if (depth === 0) return;
        const last = stack.pop();
        border = last.before;
        next = { place: last.place, option: last.option + 1 };
      } else if (option >= places[place].swaps.length) {
        next = { place: place + 1, option: 0 };
      } else {
        const { position, swaps } = places[place];
        stack.push({ place, option, before: border });
        border = words.withSwap(border, words.firstOf[position] + swaps[option] - 1);
        if (stack.length >= forced) visit(stack, border);
        next = { place: place + 1, option: 0 };
      }
    }
  }

  // ---------------------------------------------------------------------------------------------------------------
  // The tree (section 5)
  // ---------------------------------------------------------------------------------------------------------------

  const NODES = {
    empty: 0, linear: 1, enumerate: 2, open: 3, words: 4, phase: 5, budget: 6, rivals: 7, slopes: 8, betas: 9, joint: 10,
  };

  // Proves that in the root region no rival beats the label. Gives the number of sentences left open. One region is
  // changed on the way down and changed back on the way up, so depth costs no more than a list.
  function checkTree(words, tree, { level, swaps, label, rivals, mayBeOpen }) {
    const reader = new Reader(tree);
    const region = new Region(words.choices, swaps, rivals);
    const above = []; // { right: makes the right child, undo: takes back what was last made }
    const unsafe = { phases: 0, rivals: 0 }; // nodes above, under which nothing may be open
    let nodes = 0;
    let enumerated = 0n;
    let open = 0n;

    const keep = (object, key, value) => {
      const before = object[key];
      object[key] = value;
      return () => (object[key] = before);
    };
    const keepIn = (map, node, element, value) => {
      if (!map.has(node)) map.set(node, new Map());
      const inside = map.get(node);
      const before = inside.get(element);
      inside.set(element, value);
      return () => (before === undefined ? inside.delete(element) : inside.set(element, before));
    };
    const split = (left, right) => {
      above.push({ right, undo: left() });
      if (above.length > LIMIT.treeDepth) refuse("the tree is too deep");
    };
    const inherit = (change) => split(change, null);

    function layerNamed(node, kind) {
      const step = words.network.byNode.get(node);
      if (step === undefined || step.kind !== "rectifier") refuse(`node ${node} is not a rectifier of the network`);
      if (kind === "Relu" && step.operator !== "Relu") refuse(`node ${node} is not a Relu`);
      return step;
    }

    // Layers in ascending order, each with its elements in ascending order.
    function table(kind, most) {
      const entries = [];
      const layers = reader.number();
      if (layers < 1) refuse("a table without layers");
      let previous = -1;
      for (let i = 0; i < layers; i++) {
        const node = reader.number();
        if (node <= previous) refuse("the layers of a table do not ascend");
        previous = node;
        elements(layerNamed(node, kind), reader.number(), most, (element, value) => entries.push({ node, element, value }));
      }
      return entries;
    }
    function elements(step, count, most, add) {
      if (count < 1) refuse("a layer without elements");
      let element = null;
      for (let i = 0; i < count; i++) {
        element = reader.after(element);
        const value = reader.number();
        if (element >= step.size) refuse("an element beyond its layer");
        if (value > most) refuse("a value out of range");
        add(element, value);
      }
    }

    function splitWords() {
      const position = reader.number();
      if (position >= words.choices.length) refuse("a position beyond the text");
      const mask = new Set(reader.mask(words.choices[position].length));
      const chosen = region.choices[position];
      const left = chosen.filter((choice) => mask.has(choice));
      const right = chosen.filter((choice) => !mask.has(choice));
      if (left.length !== mask.size) refuse("a words node with choices that are not in the region");
      if (left.length === 0 || right.length === 0) refuse("a words node with an empty side");
      split(() => keep(region.choices, position, left), () => keep(region.choices, position, right));
    }

    function splitPhase() {
      const node = reader.number();
      const element = reader.number();
      const step = layerNamed(node, "Relu");
      if (element >= step.size) refuse("an element beyond its layer");
      if (region.phases.has(node) && region.phases.get(node).has(element)) refuse("an element that has a phase already");
      const set = (phase) => {
        const undo = keepIn(region.phases, node, element, phase);
        unsafe.phases += 1;
        return () => {
          unsafe.phases -= 1;
          undo();
        };
      };
      split(() => set("low"), () => set("high"));
    }

    function splitBudget() {
      const count = reader.number();
      if (count < 1) refuse("a group without positions");
      const positions = [];
      for (let i = 0; i < count; i++) {
        positions.push(reader.after(i === 0 ? null : positions[i - 1]));
        if (positions[i] >= words.choices.length) refuse("a position beyond the text");
      }
      const bound = reader.number();
      const inside = new Set(positions);
      let same = null;
      for (const group of region.groups) {
        const common = group.positions.reduce((sum, position) => sum + (inside.has(position) ? 1 : 0), 0);
        if (common !== 0 && common !== inside.size && common !== group.positions.length) refuse("groups that overlap");
        if (common === inside.size && common === group.positions.length) same = group;
      }
      if (same !== null) {
        const { low, high } = same;
        split(() => keep(same, "high", Math.min(high, bound)), () => keep(same, "low", Math.max(low, bound + 1)));
      } else {
        const add = (low, high) => {
          region.groups.push({ positions, low, high });
          return () => region.groups.pop();
        };
        split(() => add(0, bound), () => add(bound + 1, count));
      }
    }

    function splitRivals() {
      const mask = reader.mask(rivals.length).map((place) => rivals[place]);
      const left = region.rivals.filter((rival) => mask.includes(rival));
      const right = region.rivals.filter((rival) => !mask.includes(rival));
      if (left.length !== mask.length) refuse("a rivals node with classes that are not in the region");
      if (left.length === 0 || right.length === 0) refuse("a rivals node with an empty side");
      const set = (part) => {
        const undo = keep(region, "rivals", part);
        unsafe.rivals += 1;
        return () => {
          unsafe.rivals -= 1;
          undo();
        };
      };
      split(() => set(left), () => set(right));
    }

    function setSlopes() {
      const entries = table("rectifier", 64);
      inherit(() => {
        const undo = entries.map(({ node, element, value }) => keepIn(region.slopes, node, element, value));
        return () => undo.forEach((back) => back());
      });
    }

    function setBetas() {
      const exponent = reader.number();
      if (exponent > 30) refuse("betas with too large an exponent");
      const entries = table("Relu", 2 ** 31);
      inherit(() => {
        const undo = entries.map(({ node, element, value }) => keepIn(region.betas, node, element, { value, exponent }));
        return () => undo.forEach((back) => back());
      });
    }

    function setJoint() {
      const count = reader.number();
      if (count < 1) refuse("a joint node without groups");
      const joint = new Map();
      const taken = new Set();
      for (let i = 0; i < count; i++) {
        const node = reader.number();
        const step = layerNamed(node, "rectifier");
        if (!words.network.tensors[step.inputs[0]].front) refuse("a joint group behind a nonlinear layer");
        const size = reader.number();
        if (size > 8) refuse("a joint group of more than 8 elements");
        const group = new Map();
        elements(step, size, 64, (element, value) => {
          const name = `${node} ${element}`;
          if (taken.has(name)) refuse("an element in two joint groups");
          taken.add(name);
          group.set(element, value);
        });
        joint.set(node, [...(joint.get(node) || []), group]);
      }
      inherit(() => keep(region, "joint", joint));
    }

    function leaf(kind) {
      const plan = region.plan();
      if (kind === NODES.empty) {
        if (canBe(plan)) refuse("an empty leaf whose region is not empty");
      } else if (kind === NODES.linear) {
        checkLinear(new Leaf(words, region, plan), level, label);
      } else if (kind === NODES.enumerate) {
        const { high } = region.groups[0];
        const freely = { places: plan.places, steps: [{ units: range(plan.places.length), low: 0, high }] };
        enumerated += countSentences(freely);
        if (enumerated > LIMIT.enumerated) refuse("too many enumerated sentences");
        checkEnumerate(new Leaf(words, region, plan), level, label);
      } else {
        if (!mayBeOpen) refuse("an open leaf in the tree of the low end");
        if (unsafe.phases + unsafe.rivals > 0) refuse("an open leaf below a phase or rivals node");
        open += countSentences(plan);
      }
    }

    const inner = new Map([
      [NODES.words, splitWords], [NODES.phase, splitPhase], [NODES.budget, splitBudget], [NODES.rivals, splitRivals],
      [NODES.slopes, setSlopes], [NODES.betas, setBetas], [NODES.joint, setJoint],
    ]);
    for (;;) {
      nodes += 1;
      if (nodes > LIMIT.treeNodes) refuse("the tree has too many nodes");
      const kind = reader.byte();
      if (inner.has(kind)) {
        inner.get(kind)();
        continue;
      }
      if (kind > NODES.open) refuse(`the tree has an unknown node (${kind})`);
      leaf(kind);
      // Up to the nearest node whose right child is still to come.
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
    if (reader.at !== tree.length) refuse("bytes after the tree");
    return open;
  }

  // ---------------------------------------------------------------------------------------------------------------
  // The certificate (sections 1 and 3)
  // ---------------------------------------------------------------------------------------------------------------

  const HASH = /^[0-9a-f]{64}$/;
  const LEVELS = ["real", "float32", "replay"];

  function isInteger(value, low, high) {
    return typeof value === "number" && Number.isInteger(value) && value >= low && value <= high;
  }
  function isHash(value) {
    return typeof value === "string" && HASH.test(value);
  }
  function isFileName(value) {
    return typeof value === "string" && FILE_NAME.test(value);
  }
  function record(value, keys, what) {
    if (!(value instanceof Map)) refuse(`${what} is not an object`);
    if (value.size !== keys.length || !keys.every((key) => value.has(key))) refuse(`${what} has other keys than it must have`);
    return Object.fromEntries(keys.map((key) => [key, value.get(key)]));
  }

  // The shape of a certificate; everything else is checked against the model.
  function readCertificate(bytes, name) {
    if (bytes.length > LIMIT.certificate) refuse("the certificate is too large");
    const keys = [
      "format", "version", "id", "model", "vocabulary", "text", "synonyms", "space", "choices", "label", "rivals", "lower", "open", "upper",
    ];
    const certificate = record(parseCanonical(bytes), keys, "the certificate");
    const { format, version, id, text: textHash, synonyms, space, choices, label, rivals } = certificate;
    if (format !== "swapproof certificate") refuse("another format");
    if (version !== 1) refuse("another version of the format");
    const isBig = typeof id === "bigint" && id >= 0n && id < 1n << 63n;
    if (!isBig && !isInteger(id, 0, Number.MAX_SAFE_INTEGER)) refuse("the id is not an integer from 0 to 2^63 - 1");
    const numbered = /^([0-9]{6})\.json$/.exec(name);
    if (numbered && id !== Number(numbered[1])) refuse("the id is not that of the file name");
    if (!isHash(textHash)) refuse("the hash of the text");
    if (synonyms !== null && !isHash(synonyms)) refuse("the hash of the synonyms");

    const model = record(certificate.model, ["file", "sha256", "tensors"], "model");
    if (!isFileName(model.file) || !isHash(model.sha256)) refuse("the name or hash of the model");
    if (!Array.isArray(model.tensors)) refuse("the external tensors");
    let previous = "";
    for (const entry of model.tensors) {
      if (!Array.isArray(entry) || entry.length !== 2 || !isFileName(entry[0]) || !isHash(entry[1])) refuse("an external tensor");
      if (!(previous < entry[0])) refuse("external tensors not in ascending order");
      [previous] = entry;
    }
    let vocabulary = null;
    if (certificate.vocabulary !== null) {
      vocabulary = record(certificate.vocabulary, ["file", "sha256"], "vocabulary");
      if (!isFileName(vocabulary.file) || !isHash(vocabulary.sha256)) refuse("the name or hash of the vocabulary");
    }

    if (!Array.isArray(choices) || choices.length === 0 || choices.length > LIMIT.positions) refuse("the number of positions");
    let total = 0;
    for (const list of choices) {
      if (!Array.isArray(list) || list.length === 0 || list.length > LIMIT.choicesPerPosition) refuse("the choices of a position");
      if (!list.every((token) => isInteger(token, 0, 2 ** 31 - 1))) refuse("a choice that is not a token id");
      if (new Set(list).size !== list.length) refuse("a choice twice");
      total += list.length;
    }
    if (total > LIMIT.choices) refuse("too many choices");
    const canonical = `[${choices.map((list) => `[${list.join(",")}]`).join(",")}]`;
    if (!isHash(space) || hex(sha256(ascii(canonical))) !== space) refuse("the hash of the choices");

    if (!isInteger(label, 0, LIMIT.classes - 1)) refuse("the label");
    if (!Array.isArray(rivals) || rivals.length === 0) refuse("the rivals");
    rivals.forEach((rival, i) => {
      if (!isInteger(rival, 0, LIMIT.classes - 1) || rival === label) refuse("a rival");
      if (i > 0 && rivals[i - 1] >= rival) refuse("rivals not in ascending order");
    });

    const claimKeys = ["level", "recipe", "swaps", "tree"];
    const lower = certificate.lower === null ? null : record(certificate.lower, claimKeys, "lower");
    const open = certificate.open === null ? null : record(certificate.open, [...claimKeys, "covered", "total"], "open");
    for (const claim of [lower, open]) {
      if (claim === null) continue;
      if (claim.level !== "real" && claim.level !== "float32") refuse("the level of a tree");
      if (claim.recipe !== "linear-1") refuse("another recipe");
      if (!isInteger(claim.swaps, 0, 1000000)) refuse("the number of swaps of a tree");
      if (typeof claim.tree !== "string") refuse("the tree is not a string");
      claim.bytes = decodeBase64(claim.tree);
    }
    if (open !== null) {
      for (const number of [open.covered, open.total]) {
        if (typeof number !== "string" || !/^(0|[1-9][0-9]*)$/.test(number)) refuse("a number of sentences");
      }
    }
    const upper = certificate.upper === null ? null : record(certificate.upper, ["levels", "swaps"], "upper");
    if (upper !== null) {
      const { levels, swaps } = upper;
      if (!Array.isArray(levels) || levels.length === 0) refuse("the levels of the high end");
      const places = levels.map((level) => LEVELS.indexOf(level));
      if (places.some((place, i) => place < 0 || (i > 0 && place <= places[i - 1]))) refuse("the levels of the high end");
      if (!Array.isArray(swaps)) refuse("the swaps of the high end");
      let last = -1;
      for (const swap of swaps) {
        if (!Array.isArray(swap) || swap.length !== 2) refuse("a swap");
        const [position, token] = swap;
        if (!isInteger(position, 0, choices.length - 1) || position <= last) refuse("the position of a swap");
        if (choices[position].indexOf(token) < 1) refuse("a swap to a token that is not a choice, or the original");
        last = position;
      }
    }
    if (lower === null && open === null && upper === null) refuse("nothing is claimed");
    if (lower !== null && open !== null && open.swaps <= lower.swaps) refuse("the open part adds nothing to the low end");
    if (lower !== null && upper !== null && upper.swaps.length <= lower.swaps) refuse("the low end contradicts the high end");
    return { id, model, vocabulary, choices, label, rivals, lower, open, upper };
  }

  function checkUpper(words, { choices, label, rivals, upper }) {
    const { network } = words;
    let border = words.original;
    for (const [position, token] of upper.swaps) {
      border = words.withSwap(border, words.firstOf[position] + choices[position].indexOf(token) - 1);
    }
    const values = words.evaluate(border);
    const logits = values[network.logits];
    const { den } = network.tensors[network.logits];
    if (upper.levels.includes("real") && !rivals.some((rival) => isBeaten(logits[label] - logits[rival], label, rival))) {
      refuse("in the sentence of the high end no rival beats the label");
    }
    if (upper.levels.includes("float32")) {
      let errors = null;
      const closer = () => (errors = errors || sentenceErrors(words, values));
      if (!rivals.some((rival) => exceeds(words, logits[rival] - logits[label], den, label, rival, closer))) {
        refuse("in the sentence of the high end no rival beats the label in float32 for sure");
      }
    }
  }

  // ---------------------------------------------------------------------------------------------------------------
  // A run (sections 2 and 9)
  // ---------------------------------------------------------------------------------------------------------------

  // read(name) gives the bytes of a file of the run folder, or null.
  class Run {
    constructor(read) {
      this.read = read;
      this.files = new Map();
      this.models = new Map();
    }

    file(name, hash) {
      if (!this.files.has(name)) {
        const bytes = this.read(name);
        if (bytes === null) unusable(`${name} is missing`);
        if (bytes.length > LIMIT.modelFile) unusable(`${name} is too large`);
        this.files.set(name, { bytes, hash: hex(sha256(bytes)) });
      }
      const { bytes, hash: own } = this.files.get(name);
      if (own !== hash) refuse(`${name} is another file than the certificate speaks of`);
      return bytes;
    }

    network({ model, choices }) {
      const positions = choices.length;
      const key = JSON.stringify([model.file, model.tensors]);
      const bytes = this.file(model.file, model.sha256);
      const tensors = new Map(model.tensors.map(([name, hash]) => [name, this.file(name, hash)]));
      if (!this.models.has(key)) {
        const opened = new Set();
        const parsed = readModel(bytes, (name) => {
          if (!tensors.has(name)) refuse(`the external tensor file ${name} is not bound`);
          opened.add(name);
          return tensors.get(name);
        });
        if (opened.size !== tensors.size) refuse("an external tensor file is bound that the model does not refer to");
        this.models.set(key, parsed);
      }
      const parsed = this.models.get(key);
      const wanted = parsed.input.dims[1];
      if (wanted !== null && wanted !== BigInt(positions)) refuse("the model takes another number of positions");
      if (!parsed.byPositions.has(positions)) parsed.byPositions.set(positions, new Builder(parsed, positions).build());
      return parsed.byPositions.get(positions);
    }

    // Checks one certificate and gives what it claims in a plain sentence.
    check(name, bytes) {
      const certificate = readCertificate(bytes, name);
      const { label, rivals, choices, vocabulary, lower, open, upper } = certificate;
      if (vocabulary !== null) this.file(vocabulary.file, vocabulary.sha256);
      const network = this.network(certificate);
      if (label >= network.classes || rivals[rivals.length - 1] >= network.classes) refuse("a class beyond those of the model");
      const inFloats = [lower, open].some((claim) => claim !== null && claim.level === "float32");
      const words = new Words(network, choices);
      if (inFloats || (upper !== null && upper.levels.includes("float32"))) {
        if (!network.canBeFloat) refuse("the model cannot carry float32 claims");
        wholeErrors(words);
      }
      if (upper !== null) checkUpper(words, certificate);
      if (lower !== null) checkTree(words, lower.bytes, { ...lower, label, rivals, mayBeOpen: false });
      if (open !== null) {
        const total = countSentences(new Region(choices, open.swaps, rivals).plan());
        if (total.toString() !== open.total) refuse("the total number of sentences");
        const left = checkTree(words, open.bytes, { ...open, label, rivals, mayBeOpen: true });
        if ((total - left).toString() !== open.covered) refuse("the number of covered sentences");
      }
      return sentenceOf(certificate, network);
    }
  }

  function swapsText(count) {
    return count === 1 ? "1 swap" : `${count} swaps`;
  }

  // What has been proved, for a reader.
  function sentenceOf({ id, choices, label, rivals, lower, open, upper }, network) {
    const all = rivals.length === network.classes - 1;
    const change = all ? "changes the class" : `lets class ${rivals.join(" or ")} win`;
    const parts = [];
    const places = choices.filter((list) => list.length > 1).length;
    const unbreakable = lower !== null && lower.swaps >= places;
    if (unbreakable) parts.push(`no sentence at all ${change} (${lower.level})`);
    else if (lower !== null) parts.push(`no sentence with at most ${swapsText(lower.swaps)} ${change} (${lower.level})`);
    if (open !== null) {
      const what = `of the ${open.total} sentences with at most ${swapsText(open.swaps)}`;
      parts.push(`${what}, ${open.covered} are proved not to ${change.replace("changes", "change").replace("lets", "let")} (${open.level})`);
    }
    if (upper !== null) {
      const levels = upper.levels.map((level) => (level === "replay" ? "replay as recorded, not checked" : level)).join(", ");
      const subject = upper.swaps.length === 0 ? "the original text itself" : `a sentence with ${swapsText(upper.swaps.length)}`;
      parts.push(`${subject} ${change} (${levels})`);
      if (lower !== null && all) {
        const [low, high] = [lower.swaps + 1, upper.swaps.length];
        parts.push(low === high ? `min_swaps = ${low}` : `min_swaps is between ${low} and ${high}`);
      } else if (upper.swaps.length === 0 && all) {
        parts.push("min_swaps = 0");
      }
    }
    return `text ${id}, class ${label}: ${parts.join("; ")}`;
  }

  // certificates: pairs of a name and a function that gives the bytes. strangers: names of other files that end in
  // .json beside them. root: the bytes of certificates/root, or null. isFolder: a whole run is checked.
  // say(line, kind) gets every line as it is known: kind is "accepted", "refused", "root" or "last".
  // Gives the exit code. "accepted N of N" is the last act.
  function checkAll({ certificates, root, read, isFolder, strangers }, say) {
    const run = new Run(read);
    const leaves = [];
    let accepted = 0;
    let refused = 0;
    try {
      const sorted = [...certificates].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      if (sorted.length === 0) unusable("there is no certificate");
      if (strangers.length > 0) unusable("a file in certificates ends in .json and is not called like a certificate");
      for (const [name, open] of sorted) {
        try {
          const bytes = open();
          if (isFolder) leaves.push(merkleLeaf(name, bytes));
          say(`${name}: ${run.check(name, bytes)}`, "accepted");
          accepted += 1;
        } catch (error) {
          if (error instanceof Unusable) throw error;
          // Whatever else happens, for lack of memory or by a fault of this program, is never an acceptance.
          const reason = error instanceof Refused ? error.message : `this checker could not finish: ${error.message}`;
          say(`refused ${name}: ${reason}`, "refused");
          refused += 1;
        }
      }
      if (isFolder) {
        const digest = hex(merkleRoot(leaves));
        say(`Merkle root ${digest}`, "root");
        if (root !== null && text(root) !== `${digest}\n`) {
          say("refused root: certificates/root is another Merkle root", "refused");
          refused += 1;
        }
      }
    } catch (error) {
      if (!(error instanceof Unusable)) throw error;
      say(`not checked: ${error.message}`, "last");
      return 2;
    }
    const count = accepted + refused;
    if (refused > 0 || accepted !== certificates.length) {
      say(`refused ${refused} of ${count}`, "last");
      return 4;
    }
    say(`accepted ${accepted} of ${certificates.length}`, "last");
    return 0;
  }

  return { checkAll, sha256, hex };
}

// -----------------------------------------------------------------------------------------------------------------
// The command line
// -----------------------------------------------------------------------------------------------------------------

if (typeof module !== "undefined" && typeof require === "function") {
  module.exports = { swapproofChecker };
  if (require.main === module) commandLine(process.argv.slice(2));
}

function commandLine(args) {
  const fs = require("node:fs");
  const path = require("node:path");
  const stop = (reason) => {
    process.stderr.write(`check.js: ${reason}\n`);
    process.exitCode = 2;
  };
  if (args.length !== 1 || args[0].startsWith("-")) return stop("usage: node check.js RUN_OR_CERTIFICATE");
  const [target] = args;
  const stat = fs.statSync(target, { throwIfNoEntry: false });
  if (stat === undefined) return stop(`${target} does not exist`);

  const inFolder = (folder) => (name) => {
    const file = path.join(folder, name);
    const found = fs.statSync(file, { throwIfNoEntry: false });
    return found !== undefined && found.isFile() ? fs.readFileSync(file) : null;
  };
  const job = { root: null, isFolder: stat.isDirectory(), strangers: [] };
  if (job.isFolder) {
    const folder = path.join(target, "certificates");
    if (!fs.existsSync(folder)) return stop(`${folder} does not exist`);
    const names = fs.readdirSync(folder).filter((name) => name.endsWith(".json"));
    const isCertificate = (name) => /^[0-9]{6}\.json$/.test(name);
    job.strangers = names.filter((name) => !isCertificate(name));
    job.certificates = names.filter(isCertificate).map((name) => [name, () => fs.readFileSync(path.join(folder, name))]);
    job.root = inFolder(folder)("root");
    job.read = inFolder(target);
  } else {
    const folder = path.dirname(path.resolve(target));
    job.certificates = [[path.basename(target), () => fs.readFileSync(target)]];
    job.read = inFolder(path.basename(folder) === "certificates" ? path.dirname(folder) : folder);
  }
  const code = swapproofChecker().checkAll(job, (line) => console.log(line));
  process.exitCode = code;
  return code;
}
