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
    allElements: 2 ** 23,
    nodes: 100000,
    rank: 8,
    layers: 64,
    classes: 1024,
    treeNodes: 5000000,
    treeDepth: 100000,
    enumerated: 20000000n,
    counting: 10000000,
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
    // n >= 1 ascending numbers: the first as is, then each minus its predecessor.
    *ascending(n) {
      let previous = 0;
      for (let i = 0; i < n; i++) {
        const step = this.number();
        if (i > 0 && step === 0) refuse("numbers of the tree do not ascend");
        previous += step;
        yield previous;
      }
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
    if (shape.some((dim) => dim > LIMIT.stored)) unusable("a tensor is too large");

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
