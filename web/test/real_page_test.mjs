// node test/real_page_test.mjs PAGE.html OUT_DIR
// A page that the program itself has made: opens, draws, is quiet and asks nobody for anything.

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  chartOf,
  check,
  counts,
  guard,
  inkOfMeans,
  same,
  startBrowser,
  Suite,
} from './harness.mjs';
import { drawAll } from './look_cases.mjs';

const [file, out] = process.argv.slice(2);
if (!file || !out) {
  console.error('usage: node test/real_page_test.mjs PAGE.html OUT_DIR');
  process.exit(2);
}
mkdirSync(out, { recursive: true });
const browser = await startBrowser();
const suite = new Suite('RealPage', browser, null, out);
for (const [name, options] of [
  ['Light', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
  ['Dark', { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' }],
  ['Phone', { viewport: { width: 360, height: 740 } }],
]) {
  suite.test(name, async () => {
    const context = await browser.newContext(options);
    const faults = [];
    try {
      const page = await context.newPage();
      page.opened = pathToFileURL(resolve(file)).href;
      guard(page, faults);
      await page.goto(page.opened);
      const chart = await chartOf(page, 'valid_measure');
      const [curves, means] = await counts(chart);
      check(
        curves >= 1 && means >= 1,
        `at least one curve and one mean, not ${curves} and ${means}`,
      );
      const ink = await inkOfMeans(chart);
      check(Math.max(...ink) > 20, `they are drawn, in ${ink} pixels`);
      check(
        /seed-3.metrics\.jsonl:61: not JSON/.test(await page.locator('.notices').textContent()),
        'the line with a NUL byte is named',
      );
      await drawAll(page);
      same(
        await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        ),
        0,
        'no scrolling sideways',
      );
      await page.screenshot({ path: join(out, `real-${name.toLowerCase()}.png`), fullPage: true });
      await page.screenshot({ path: join(out, `real-${name.toLowerCase()}-top.png`) });
    } finally {
      await context.close();
    }
    same(faults, [], 'the console and the network are quiet');
  });
}
const failed = await suite.run();
await browser.close();
process.exit(failed ? 1 : 0);
