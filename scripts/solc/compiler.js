// The npm compiler, loaded only when it is needed: starting its WebAssembly takes about a second.
'use strict';

const fs = require('fs');
const path = require('path');

const PACKAGE = path.dirname(require.resolve('solc/package.json'));
// Inside node_modules, so that `npm ci` throws it away together with the compiler it describes.
const CACHE = path.join(PACKAGE, '..', '.cache', 'solc');
const VERSION_FILE = path.join(CACHE, 'version');

function loadCompiler() {
  return require('solc');
}

/** The long version, as in "0.8.37+commit.ab12cd34.Emscripten.clang". Tools ask for it very often. */
function compilerVersion() {
  const release = require('solc/package.json').version;
  try {
    const known = fs.readFileSync(VERSION_FILE, 'utf8');
    if (known.startsWith(`${release}+`)) return known;
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  const version = loadCompiler().version();
  writeWhole(VERSION_FILE, version);
  return version;
}

/** Writes by rename: a compiler running beside this one never sees half a file. */
function writeWhole(file, text) {
  const draft = `${file}.${process.pid}.tmp`;
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(draft, text);
    fs.renameSync(draft, file);
  } catch (error) {
    // Without a cache compiling is slow but right: a read-only checkout must still work.
    if (!['EACCES', 'EPERM', 'EROFS', 'ENOSPC'].includes(error.code)) throw error;
  }
}

module.exports = { CACHE, compilerVersion, loadCompiler, writeWhole };
