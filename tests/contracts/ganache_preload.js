// Loaded by `node --require` before Ganache's own command: a chain in memory, gone with who started it.
//
// Ganache keeps its chain in LevelDB, in a folder that it deletes at its end, and fetches every node of
// every trie and the code of every call from there by way of a thread: with contracts as large as ours a
// third of a test's time. Its library takes another store as an option, its command does not, so the
// command gets another LevelDB.
"use strict";

const Module = require("node:module");

const load = Module._load;
Module._load = function (request, parent, isMain) {
  if (request !== "leveldown") return load.call(this, request, parent, isMain);
  return storeWith(load.call(this, "abstract-leveldown", parent, false));
};

// Brownie ends its chain unless it is killed itself: then nobody would.
const parent = process.ppid;
setInterval(() => process.ppid === parent || process.exit(1), 500).unref();

// Byte strings order as their buffers do, and can be keys of a map.
const bytes = (data) => (Buffer.isBuffer(data) ? data : Buffer.from(String(data))).toString("latin1");
const given = (text, asBuffer) => (asBuffer ? Buffer.from(text, "latin1") : Buffer.from(text, "latin1").toString());

function storeWith({ AbstractLevelDOWN, AbstractIterator }) {
  class MemoryStore extends AbstractLevelDOWN {
    constructor() {
      super({ bufferKeys: true, snapshots: true, createIfMissing: true, errorIfExists: true });
      this.entries = new Map();
    }

    _serializeKey(key) {
      return bytes(key);
    }

    _serializeValue(value) {
      // A copy: who wrote it may go on to change its buffer.
      return Buffer.isBuffer(value) ? Buffer.from(value) : Buffer.from(String(value));
    }

    _get(key, options, callback) {
      const value = this.entries.get(key);
      if (value === undefined) return process.nextTick(callback, new Error("NotFound"));
      process.nextTick(callback, null, options.asBuffer === false ? value.toString() : Buffer.from(value));
    }

    _put(key, value, options, callback) {
      this.entries.set(key, value);
      process.nextTick(callback);
    }

    _del(key, options, callback) {
      this.entries.delete(key);
      process.nextTick(callback);
    }

    _batch(operations, options, callback) {
      for (const { type, key, value } of operations) {
        if (type === "put") this.entries.set(key, value);
        else this.entries.delete(key);
      }
      process.nextTick(callback);
    }

    _iterator(options) {
      return new MemoryIterator(this, options);
    }
  }

  class MemoryIterator extends AbstractIterator {
    constructor(store, options) {
      super(store);
      const { gt, gte, lt, lte, reverse, limit } = options;
      const within = (key) =>
        (gt === undefined || key > bytes(gt)) &&
        (gte === undefined || key >= bytes(gte)) &&
        (lt === undefined || key < bytes(lt)) &&
        (lte === undefined || key <= bytes(lte));
      const keys = [...store.entries.keys()].filter(within).sort();
      if (reverse) keys.reverse();
      // As they are now, whatever is written meanwhile.
      this.found = (limit >= 0 ? keys.slice(0, limit) : keys).map((key) => [key, store.entries.get(key)]);
      this.options = options;
    }

    _next(callback) {
      if (this.found.length === 0) return process.nextTick(callback);
      const [key, value] = this.found.shift();
      const { keyAsBuffer, valueAsBuffer } = this.options;
      process.nextTick(
        callback,
        null,
        given(key, keyAsBuffer !== false),
        valueAsBuffer === false ? value.toString() : Buffer.from(value),
      );
    }
  }

  return Object.assign(() => new MemoryStore(), { default: () => new MemoryStore() });
}
