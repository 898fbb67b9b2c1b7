// The page on paper: what Chromium prints, read from the PDF's own drawing commands.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import { check, same } from './harness.mjs';
import { fullReport } from './look_cases.mjs';
import { sampleExperiment, sampleReport } from './sample.mjs';

// Paths that a PDF draws: {colour, stroke, left, right} in points. Knows what Chromium writes.
function inkOf(pdf) {
  const ink = [];
  const text = pdf.toString('latin1');
  for (const { index, 0: head } of text.matchAll(/stream\r?\n/g)) {
    if (text.slice(index - 3, index) === 'end') continue;
    let commands;
    try {
      commands = inflateSync(pdf.subarray(index + head.length, text.indexOf('endstream', index)));
    } catch {
      continue; // not a compressed one
    }
    if (/ cm\n/.test(commands.toString('latin1'))) draw(commands.toString('latin1'), ink);
  }
  return ink;
}

function draw(commands, ink) {
  let now = { matrix: [1, 0, 0, 1, 0, 0], fill: '', stroke: '' };
  const saved = [];
  let xs = [];
  const at = (x, y) => xs.push(now.matrix[0] * x + now.matrix[2] * y + now.matrix[4]);
  const paint = (stroke) => {
    if (xs.length)
      ink.push({ colour: now[stroke ? 'stroke' : 'fill'], stroke, left: Math.min(...xs), right: Math.max(...xs) });
    xs = [];
  };
  let n = []; // the numbers before a command
  for (const command of commands.trim().split(/\s+/)) {
    if (!isNaN(command)) {
      n.push(Number(command));
      continue;
    }
    const colour = () => n.map((part) => Math.round(255 * part)).join();
    if (command === 'q') saved.push(now);
    else if (command === 'Q') now = saved.pop() ?? now;
    else if (command === 'cm') {
      const [a, b, c, d, e, f] = now.matrix;
      const [p, q, r, s, t, u] = n;
      const matrix = [a * p + c * q, b * p + d * q, a * r + c * s, b * r + d * s];
      now = { ...now, matrix: [...matrix, a * t + c * u + e, b * t + d * u + f] };
    } else if (command === 'RG') now = { ...now, stroke: colour() };
    else if (command === 'rg') now = { ...now, fill: colour() };
    else if (command === 'm' || command === 'l') at(...n);
    else if (command === 'c') at(n[4], n[5]);
    else if (command === 're') [at(n[0], n[1]), at(n[0] + n[2], n[1] + n[3])];
    else if (command === 'S') paint(true);
    else if (/^f\*?$/.test(command)) paint(false);
    else if (command === 'n') xs = [];
    n = [];
  }
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join();
const HUES = ['#2a6fd0', '#e0592a', '#159a6b'].map(rgb); // of the three settings, on white
const CHARTS = 7; // with curves of every setting
const WIDTH = 595; // of A4, in points

// As wide as the tables of caption runs are: seven scores of the test, and a message.
function wideReport() {
  const experiment = sampleExperiment({ settings: ['plain', 'detach-0.25'], seeds: 5 });
  const scores = ['Bleu_1', 'Bleu_2', 'Bleu_3', 'Bleu_4', 'CIDEr', 'METEOR', 'ROUGE_L'];
  for (const run of experiment.settings.flatMap((setting) => setting.runs)) {
    run.test = Object.fromEntries(scores.map((name) => [name, 0.6836]));
    run.status = 'stopped-early';
    run.message = 'no better CIDEr for 10 epochs';
  }
  return sampleReport([experiment]);
}

export function paperTests(suite) {
  for (const colorScheme of ['light', 'dark']) {
    suite.test(colorScheme === 'dark' ? 'PrintsFromDark' : 'PrintsOnA4', () =>
      suite.withPage(fullReport(), { colorScheme }, async (page) => {
        const pdf = await page.pdf({ format: 'A4' }); // nothing was scrolled to, nor backgrounds asked for
        writeFileSync(join(suite.out, `paper-${colorScheme}.pdf`), pdf);
        const ink = inkOf(pdf);
        for (const hue of HUES) {
          const lines = ink.filter((item) => item.stroke && item.colour === hue);
          same(lines.length, CHARTS * (5 + 1), `curves and means of every chart in ${hue}`);
          const swatches = ink.filter((item) => !item.stroke && item.colour === hue);
          check(swatches.length >= CHARTS, `the legends and the table name ${hue}`);
        }
        const beyond = ink.filter((item) => item.stroke && (item.left < 0 || item.right > WIDTH));
        same(beyond, [], 'nothing is cut off by an edge of the paper');
        const long = ink.filter((item) => item.stroke && item.right - item.left > 0.75 * WIDTH);
        check(long.length > 0, 'the widest charts use the width');
        same(
          await page.evaluate(() => [
            document.documentElement.dataset.theme,
            document.querySelectorAll('.paper, .printed').length,
          ]),
          [colorScheme, 0],
          'afterwards it is as it was',
        );
      }),
    );
  }

  suite.test('PrintMediaDrawsEveryChart', () =>
    suite.withPage(fullReport(), { viewport: { width: 703, height: 900 } }, async (page) => {
      await page.emulateMedia({ media: 'print' }); // no event but that of the media
      await page.waitForFunction(
        () => document.querySelector('html').dataset.theme && document.querySelector('.paper'),
      );
      const [drawn, all, wide] = await page.evaluate(() => [
        document.querySelectorAll('.chart > .paper').length,
        [...document.querySelectorAll('.chart')].filter((chart) => chart.offsetParent).length,
        document.documentElement.scrollWidth - document.documentElement.clientWidth,
      ]);
      same(drawn, all, 'charts that were never scrolled to');
      same(wide, 0, 'pixels beyond the paper');
      check(!(await page.locator('.controls').isVisible()), 'no controls on paper');
    }),
  );

  suite.test('PrintsWideTablesWithNamesThatCanBeRead', () =>
    suite.withPage(wideReport(), { viewport: { width: 703, height: 900 } }, async (page) => {
      await page.emulateMedia({ media: 'print' });
      await page.waitForFunction(() => document.querySelector('.overview tbody th'));
      const [wide, names] = await page.evaluate(() => [
        document.documentElement.scrollWidth - document.documentElement.clientWidth,
        [...document.querySelectorAll('.overview tbody th')].map((cell) => {
          const text = document.createRange();
          text.selectNodeContents(cell);
          const lines = new Set([...text.getClientRects()].map(({ top }) => Math.round(top)));
          return [cell.textContent, lines.size];
        }),
      ]);
      same(wide, 0, 'pixels beyond the paper');
      same(names.length, 10, 'runs');
      const broken = names.filter(([name, lines]) => lines > name.split(/[-/]/).length);
      same(broken, [], 'names that are broken within a word');
    }),
  );

  suite.test('PrintsWhichOfTheExperimentsItIs', () => {
    const experiments = ['first', 'second'].map((name) => ({ ...sampleExperiment(), name }));
    return suite.withPage(sampleReport(experiments), {}, async (page) => {
      await page.emulateMedia({ media: 'print' });
      check(await page.locator('.tabs [aria-current=page]').isVisible(), 'its name');
      check(await page.getByRole('button', { name: 'second' }).isVisible(), 'and the other one');
    });
  });
}
