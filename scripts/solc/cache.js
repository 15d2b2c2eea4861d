// Remembers compiler output, because brownie, forge, slither and the exports compile the same sources.
//
// The output is a pure function of the compiler, the input and the answers to its imports. An entry
// is keyed by the first two and lists the third, which are checked again before it is used.
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { CACHE, writeWhole } = require('./compiler');

const KEPT_ENTRIES = 40;

class OutputCache {
  constructor(version, input, imports) {
    const key = crypto.createHash('sha256').update(version).update('\0').update(input).digest('hex');
    this.file = path.join(CACHE, `${key}.json`);
    this.imports = imports;
  }

  read() {
    let entry;
    try {
      entry = JSON.parse(fs.readFileSync(this.file, 'utf8'));
    } catch (error) {
      if (error.code === 'ENOENT' || error instanceof SyntaxError) return undefined;
      throw error;
    }
    if (!this.imports.wouldRepeat(entry.imports)) return undefined;
    return entry.output;
  }

  write(output) {
    writeWhole(this.file, JSON.stringify({ imports: [...this.imports.answers], output }));
    this.#dropOldest();
    return output;
  }

  #dropOldest() {
    if (!fs.existsSync(CACHE)) return;
    const entries = fs
      .readdirSync(CACHE)
      .filter((name) => name.endsWith('.json'))
      .map((name) => path.join(CACHE, name))
      .map((file) => ({ file, madeAt: fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
      .sort((a, b) => b.madeAt - a.madeAt);
    for (const { file } of entries.slice(KEPT_ENTRIES)) fs.rmSync(file, { force: true });
  }
}

module.exports = { OutputCache };
