// Finds imported sources on disk, and remembers every answer for the cache to check later.
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const path = require('path');

class ImportReader {
  constructor(roots) {
    this.roots = roots;
    this.answers = new Map();
  }

  /** What the compiler's import callback wants: `{ contents }` or `{ error }`. */
  read(name) {
    const answer = this.#find(name);
    this.answers.set(name, digest(answer));
    return answer;
  }

  /** Whether every import that led to `answers` would be answered in the same way now. */
  wouldRepeat(answers) {
    return answers.every(([name, expected]) => digest(this.#find(name)) === expected);
  }

  #find(name) {
    const wanted = name.startsWith('file://') ? name.slice('file://'.length) : name;
    const candidates = path.isAbsolute(wanted)
      ? [wanted]
      : this.roots.map((root) => path.resolve(root, wanted));
    for (const candidate of candidates) {
      try {
        return { contents: fs.readFileSync(candidate, 'utf8') };
      } catch (error) {
        if (!['ENOENT', 'ENOTDIR', 'EISDIR'].includes(error.code)) throw error;
      }
    }
    return { error: `File not found. Searched the following locations: ${this.roots.join(', ')}.` };
  }
}

function digest(answer) {
  return crypto.createHash('sha256').update(JSON.stringify(answer)).digest('hex');
}

module.exports = { ImportReader };
