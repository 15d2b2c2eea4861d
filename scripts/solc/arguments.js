// The part of native solc's command line that py-solc-x, brownie, forge and slither use.
'use strict';

class UsageError extends Error {}

const FLAGS = new Map([
  ['--version', (o) => (o.version = true)],
  ['--standard-json', (o) => (o.standardJson = true)],
  ['--optimize', (o) => (o.optimize = true)],
  ['--via-ir', (o) => (o.viaIR = true)],
  ['-', (o) => (o.stdin = true)],
  ['--color', () => {}],
  ['--no-color', () => {}],
  ['--overwrite', () => {}],
]);

const VALUES = new Map([
  ['--base-path', (o, v) => (o.basePath = v)],
  ['--include-path', (o, v) => o.includePaths.push(v)],
  ['-I', (o, v) => o.includePaths.push(v)],
  ['--combined-json', (o, v) => (o.combinedJson = v.split(','))],
  ['--optimize-runs', (o, v) => (o.optimizeRuns = Number(v))],
  ['--evm-version', (o, v) => (o.evmVersion = v)],
  ['--metadata-hash', (o, v) => (o.metadataHash = v)],
  // Imports are read by this process with the caller's rights: there is nothing to fence off.
  ['--allow-paths', () => {}],
]);

function parseArguments(args) {
  const options = {
    version: false,
    standardJson: false,
    stdin: false,
    files: [],
    remappings: [],
    basePath: process.cwd(),
    includePaths: [],
    combinedJson: ['abi', 'bin'],
    optimize: false,
    optimizeRuns: 200,
    viaIR: false,
    evmVersion: undefined,
    metadataHash: undefined,
  };
  const rest = [...args];
  while (rest.length > 0) {
    const [, name, inline] = /^(--[\w-]+)=(.*)$/.exec(rest[0]) ?? [null, rest[0], undefined];
    rest.shift();
    if (FLAGS.has(name)) {
      FLAGS.get(name)(options);
    } else if (VALUES.has(name)) {
      const value = inline ?? rest.shift();
      if (value === undefined) throw new UsageError(`option '${name}' needs a value`);
      VALUES.get(name)(options, value);
    } else if (name.startsWith('-')) {
      throw new UsageError(`unrecognised option '${name}'`);
    } else {
      (name.includes('=') ? options.remappings : options.files).push(name);
    }
  }
  if (!options.version && !options.standardJson && !options.stdin && options.files.length === 0) {
    throw new UsageError('no input files given; use "-" to read from standard input');
  }
  return options;
}

module.exports = { parseArguments, UsageError };
