#!/usr/bin/env node
// Answers the command line of the native Solidity compiler with the WebAssembly build from npm.
//
// Package registries carry no native solc, while py-solc-x, brownie, forge and slither all want an
// executable. The set-up links this file to the name that they look for.
'use strict';

const fs = require('fs');
const { parseArguments, UsageError } = require('./arguments');
const { OutputCache } = require('./cache');
const { combinedInput, combinedOutput } = require('./combined_json');
const { compilerVersion, loadCompiler } = require('./compiler');
const { ImportReader } = require('./imports');

async function main() {
  const options = parseArguments(process.argv.slice(2));
  if (options.version) {
    process.stdout.write(`solc, the solidity compiler commandline interface\nVersion: ${compilerVersion()}\n`);
    return;
  }
  const imports = new ImportReader([options.basePath, ...options.includePaths]);
  if (options.standardJson) {
    await compileStandardJson(options, imports);
  } else {
    await compileFiles(options, imports);
  }
}

async function compileStandardJson(options, imports) {
  const [file] = options.files;
  const input = JSON.parse(file ? fs.readFileSync(file, 'utf8') : await readStandardInput());
  // The native compiler follows "urls" itself; WebAssembly has no file system to follow them in.
  for (const source of Object.values(input.sources ?? {})) {
    if (source.content === undefined && source.urls) inlineSource(source, imports);
  }
  // py-solc-x's callers write null for "the default", which only the native compiler accepts.
  if (input.settings?.evmVersion === null) delete input.settings.evmVersion;
  process.stdout.write(compile(input, imports));
}

function inlineSource(source, imports) {
  for (const url of source.urls) {
    const found = imports.read(url);
    if (found.contents === undefined) continue;
    source.content = found.contents;
    delete source.urls;
    return;
  }
}

async function compileFiles(options, imports) {
  const sources = {};
  for (const file of options.files) sources[file] = { content: fs.readFileSync(file, 'utf8') };
  if (options.stdin) sources['<stdin>'] = { content: await readStandardInput() };

  const output = JSON.parse(compile(combinedInput(sources, options), imports));
  const problems = output.errors ?? [];
  for (const problem of problems) process.stderr.write(`${problem.formattedMessage}\n`);
  if (problems.some((problem) => problem.severity === 'error')) {
    process.exitCode = 1;
    return;
  }
  process.stdout.write(JSON.stringify(combinedOutput(output, options, compilerVersion())) + '\n');
}

function compile(input, imports) {
  const text = JSON.stringify(input);
  const cache = new OutputCache(compilerVersion(), text, imports);
  return cache.read() ?? cache.write(loadCompiler().compile(text, { import: (p) => imports.read(p) }));
}

async function readStandardInput() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

main().catch((error) => {
  process.stderr.write(error instanceof UsageError ? `${error.message}\n` : `${error.stack}\n`);
  process.exitCode = 1;
});
