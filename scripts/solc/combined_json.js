// `--combined-json`, the older output format that slither asks for, in terms of standard JSON.
'use strict';

const CONTRACT_OUTPUTS = {
  abi: ['abi', (c) => c.abi],
  asm: ['evm.legacyAssembly', (c) => c.evm.legacyAssembly],
  bin: ['evm.bytecode.object', (c) => c.evm.bytecode.object],
  'bin-runtime': ['evm.deployedBytecode.object', (c) => c.evm.deployedBytecode.object],
  devdoc: ['devdoc', (c) => c.devdoc],
  'function-debug': ['evm.bytecode.functionDebugData', (c) => c.evm.bytecode.functionDebugData],
  'function-debug-runtime': [
    'evm.deployedBytecode.functionDebugData',
    (c) => c.evm.deployedBytecode.functionDebugData,
  ],
  'generated-sources': ['evm.bytecode.generatedSources', (c) => c.evm.bytecode.generatedSources],
  'generated-sources-runtime': [
    'evm.deployedBytecode.generatedSources',
    (c) => c.evm.deployedBytecode.generatedSources,
  ],
  hashes: ['evm.methodIdentifiers', (c) => c.evm.methodIdentifiers],
  metadata: ['metadata', (c) => c.metadata],
  opcodes: ['evm.bytecode.opcodes', (c) => c.evm.bytecode.opcodes],
  srcmap: ['evm.bytecode.sourceMap', (c) => c.evm.bytecode.sourceMap],
  'srcmap-runtime': ['evm.deployedBytecode.sourceMap', (c) => c.evm.deployedBytecode.sourceMap],
  'storage-layout': ['storageLayout', (c) => c.storageLayout],
  userdoc: ['userdoc', (c) => c.userdoc],
};

function wantedOutputs(options) {
  return options.combinedJson.filter((name) => name in CONTRACT_OUTPUTS);
}

function combinedInput(sources, options) {
  const settings = {
    remappings: options.remappings,
    optimizer: { enabled: options.optimize, runs: options.optimizeRuns },
    viaIR: options.viaIR,
    outputSelection: {
      '*': { '': ['ast'], '*': wantedOutputs(options).map((name) => CONTRACT_OUTPUTS[name][0]) },
    },
  };
  if (options.evmVersion) settings.evmVersion = options.evmVersion;
  if (options.metadataHash) settings.metadata = { bytecodeHash: options.metadataHash };
  return { language: 'Solidity', sources, settings };
}

function combinedOutput(output, options, version) {
  const files = Object.entries(output.sources).sort(([, a], [, b]) => a.id - b.id);
  const result = { contracts: {}, sourceList: files.map(([file]) => file), version };
  if (options.combinedJson.includes('ast')) {
    result.sources = Object.fromEntries(
      files.map(([file, source]) => [file, { AST: source.ast, id: source.id }]),
    );
  }
  for (const [file, contracts] of Object.entries(output.contracts ?? {})) {
    for (const [name, contract] of Object.entries(contracts)) {
      result.contracts[`${file}:${name}`] = Object.fromEntries(
        wantedOutputs(options).map((wanted) => [wanted, CONTRACT_OUTPUTS[wanted][1](contract)]),
      );
    }
  }
  return result;
}

module.exports = { combinedInput, combinedOutput };
