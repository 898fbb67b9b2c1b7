// How it looks: phone, dark, light. Pictures are kept in the folder of the output.

import { join } from 'node:path';
import { chartOf, check, same } from './harness.mjs';
import {
  captionExperiment,
  generator,
  sampleExperiment,
  sampleReport,
  sampleXray,
} from './sample.mjs';

export function fullReport() {
  const experiment = sampleExperiment();
  const random = generator(11);
  for (const setting of experiment.settings) {
    for (const run of setting.runs) run.xray = sampleXray([0, 10, 20, 30, 40, 50], random);
  }
  return {
    ...sampleReport([experiment, captionExperiment()]),
    notices: ['runs/x/metrics.jsonl:7: not JSON; the line is left out'],
  };
}

// Scrolls through the page, so that all of it is drawn.
export async function drawAll(page) {
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let y = 0; y < height; y += 700) {
    await page.evaluate((to) => window.scrollTo(0, to), y);
    await page.waitForTimeout(40);
  }
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.chart')].every(
      (chart) => !chart.offsetParent || chart.dataset.curves,
    ),
  );
  await page.evaluate(() => window.scrollTo(0, 0));
}

export const sideways = (page) =>
  page.evaluate(() => {
    const root = document.documentElement;
    const wide = [...document.querySelectorAll('#page *')].filter(
      (element) =>
        element.getBoundingClientRect().right > root.clientWidth + 1 &&
        !element.closest('.scroll, .unseen, svg, .u-over'),
    );
    return {
      page: root.scrollWidth - root.clientWidth,
      wide: wide.map((element) => element.className || element.tagName),
    };
  });

export function lookTests(suite) {
  suite.test('FitsAPhone', () =>
    suite.withPage(
      fullReport(),
      { viewport: { width: 360, height: 740 }, hasTouch: true },
      async (page) => {
        await drawAll(page);
        same(await sideways(page), { page: 0, wide: [] }, 'nothing reaches beyond the screen');
        await page.screenshot({ path: join(suite.out, 'phone.png'), fullPage: true });
        await page.getByRole('button', { name: 'captions' }).click();
        await drawAll(page);
        same(await sideways(page), { page: 0, wide: [] }, 'nor of captions');
        await page.screenshot({ path: join(suite.out, 'phone-captions.png'), fullPage: true });
      },
    ),
  );

  for (const theme of ['light', 'dark']) {
    suite.test(theme === 'dark' ? 'LooksDark' : 'LooksLight', () =>
      suite.withPage(fullReport(), { colorScheme: theme }, async (page) => {
        const back = () =>
          page.evaluate(() =>
            Number(getComputedStyle(document.body).backgroundColor.match(/\d+/)[0]),
          );
        check((await back()) > 128 === (theme === 'light'), `the page is ${theme}`);
        const chart = await chartOf(page, 'valid_measure');
        await drawAll(page);
        await page.screenshot({ path: join(suite.out, `${theme}.png`), fullPage: true });
        const colour = () => chart.evaluate((element) => element.chart.plot.series[1].stroke());
        const before = await colour();
        await page.getByRole('button', { name: /Change to/ }).click();
        check((await back()) > 128 === (theme === 'dark'), 'the button changes it');
        check((await colour()) !== before, 'and the curves with it');
      }),
    );
  }
}
