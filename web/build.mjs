// Bundles src/ into one html file that needs nothing else: node build.mjs PATH (or --outfile=PATH).
// The same sources give the same bytes.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import esbuild from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const PLACEHOLDER = '<script type="application/json" id="report-data">@REPORT_DATA@</script>';

async function bundle(entry) {
  const result = await esbuild.build({
    entryPoints: [join(here, 'src', entry)],
    absWorkingDir: here, // keeps this machine's paths out of the output
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['chrome90', 'firefox90', 'safari15'],
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

function count(text, part) {
  return text.split(part).length - 1;
}

const argument = process.argv[2]?.replace(/^--outfile=/, '');
if (!argument || process.argv.length > 3) {
  console.error('usage: node build.mjs PATH   or   npm run build -- --outfile=PATH');
  process.exit(2);
}

const script = await bundle('main.js');
const style = await bundle('style.css');
// Either would end its element early, or start a comment in it. esbuild writes <\/script itself.
for (const [name, text] of [
  ['script', script],
  ['style', style],
]) {
  if (/<\/(script|style)|<!--/i.test(text))
    throw new Error(`the ${name} would end its own element`);
}
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  'img-src data: blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

// What the licence of the chart library asks of copies.
const licence = readFileSync(join(here, 'node_modules', 'uplot', 'LICENSE'), 'utf8').trim();
if (licence.includes('--')) throw new Error('the licence does not fit into a comment');

const parts = { POLICY: policy, LICENCE: licence, STYLE: style, DATA: PLACEHOLDER, SCRIPT: script };
const page = readFileSync(join(here, 'src', 'page.html'), 'utf8').replace(
  /%([A-Z]+)%/g,
  (_, name) => parts[name],
); // a function: $ in the bundle stays as it is
if (count(page, '@REPORT_DATA@') !== 1 || count(page, PLACEHOLDER) !== 1) {
  throw new Error('the page must hold the place for the data exactly once');
}

const out = resolve(argument);
mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, page);
