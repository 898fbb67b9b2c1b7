// What axe-core finds wrong for readers who use a keyboard, a screen reader or see little contrast.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { same, Skipped } from './harness.mjs';
import { drawAll, fullReport } from './look_cases.mjs';
import { sampleExperiment, sampleReport } from './sample.mjs';

function axeSource() {
  try {
    return readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  } catch {
    const web = fileURLToPath(new URL('..', import.meta.url));
    throw new Skipped(`axe-core is not installed: run npm ci in ${web}`);
  }
}

// Behind a pseudo-element axe sees no colours: what shows that a table scrolls would leave the
// contrast of all tables undecided.
const uncoverTables = (page) =>
  page.evaluate(() => {
    const sheet = document.styleSheets[0];
    sheet.insertRule('.edges::after { content: none !important; }', sheet.cssRules.length);
  });

async function findNothing(page, what) {
  await drawAll(page);
  await uncoverTables(page);
  const found = await page.evaluate(async () => {
    const { violations, incomplete } = await window.axe.run();
    // What axe cannot tell of numbers of one digit, symbols and text over pictures.
    const beyondIt = ['shortTextContent', 'nonBmp', 'imgNode'];
    const undecided = incomplete
      .filter(({ id }) => id === 'color-contrast')
      .map(({ id, nodes }) => ({
        id,
        nodes: nodes.filter(({ any }) => !beyondIt.includes(any[0]?.data?.messageKey)),
      }))
      .filter(({ nodes }) => nodes.length);
    return [...violations, ...undecided].map(({ id, nodes }) => [
      id,
      nodes.map((node) => `${node.target.join(' ')}: ${node.failureSummary}`),
    ]);
  });
  same(found, [], what);
}

// Every kind of status, a table that scrolls, notices, and a setting of each hue.
function variedReport() {
  const settings = ['plain', ...Array.from({ length: 7 }, (_, i) => `detach-0.${i + 1}`)];
  const experiment = sampleExperiment({ settings, seeds: 2 });
  const statuses = ['finished', 'stopped-early', 'diverged', 'unfinished', 'waiting'];
  statuses.forEach((status, i) => (experiment.settings[i].runs[0].status = status));
  for (let i = 0; i < 20; ++i) experiment.table.columns.push(`column ${i}`);
  return { ...sampleReport([experiment]), notices: ['one', 'two'] };
}

export function axeTests(suite) {
  for (const colorScheme of ['light', 'dark']) {
    suite.test(`Axe${colorScheme === 'dark' ? 'Dark' : 'Light'}`, async () => {
      const axe = axeSource();
      await suite.withPage(fullReport(), { colorScheme }, async (page) => {
        await page.evaluate(axe);
        await findNothing(page, 'an experiment with x-rays');
        await page.getByRole('button', { name: 'captions' }).click();
        await findNothing(page, 'captions');
      });
      await suite.withPage(variedReport(), { colorScheme }, async (page) => {
        await page.evaluate(axe);
        for (const fold of await page.locator('.group details summary').all()) await fold.click();
        await page.locator('.menu summary').first().click();
        await findNothing(page, 'one experiment, all unfolded');
      });
    });
  }
}
