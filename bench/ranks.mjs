// Prints the tokens of o200k_base by rank, each as base64, from the npm package that ships them.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(process.cwd() + '/package.json'));
const { default: ranks } = require('gpt-tokenizer/bpeRanks/o200k_base');
const encoder = new TextEncoder();
const bytes = (token) => Buffer.from(typeof token === 'string' ? encoder.encode(token) : Uint8Array.from(token));
console.log(JSON.stringify(ranks.map((token) => bytes(token).toString('base64'))));
