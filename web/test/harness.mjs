// Tests in Debian's Chromium, reported as GoogleTest does. A test is an async function that throws.

import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fillPage } from './sample.mjs';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];
const SKIP = 77; // ctest's SKIP_RETURN_CODE

export async function startBrowser() {
  let playwright;
  try {
    playwright = await import('playwright-core');
  } catch {
    skip('playwright-core is not installed: run npm ci in web/');
  }
  if (!existsSync(CHROMIUM)) skip(`${CHROMIUM} is not there: apt-get install chromium`);
  return playwright.chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
}

function skip(why) {
  console.log(`[  SKIPPED ] Page: NOT TESTED: ${why}`);
  process.exit(SKIP);
}

// What every page is watched for: requests that leave it, and anything on the console.
export function guard(page, faults, allowed = () => false) {
  page.on('request', (request) => {
    const url = request.url();
    if (!/^(data|blob):/.test(url) && url !== page.opened && !allowed(url))
      faults.push(`request to ${url}`);
  });
  page.on('console', (message) => faults.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => faults.push(`error: ${error.stack ?? error}`));
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
}

// Thrown by a test that cannot be made here.
export class Skipped extends Error {}

export class Suite {
  constructor(name, browser, template, out) {
    Object.assign(this, { name, browser, template, out, tests: [], files: 0 });
    mkdirSync(out, { recursive: true });
  }

  test(name, body) {
    this.tests.push([name, body]);
  }

  // Runs body with a page that shows data; the page must stay quiet and alone throughout.
  async withPage(data, options, body) {
    const file = join(this.out, `page-${++this.files}.html`);
    fillPage(this.template, file, data);
    const page = await this.pageFor(options);
    page.opened = pathToFileURL(file).href;
    page.faults.length = 0;
    let well = false;
    try {
      await page.mouse.move(0, 0);
      await page.goto(page.opened);
      await page.waitForSelector('html[data-ready]', { state: 'attached', timeout: 10000 });
      await body(page);
      same(page.faults, [], 'the console and the network are quiet');
      well = true;
    } finally {
      if (well) rmSync(file); // after a failure it is there to look at
      if (page !== this.usual || !well) await page.context().close();
      if (page === this.usual && !well) this.usual = null;
    }
  }

  // Tests without wishes of their own use one window after another: opening one takes long.
  async pageFor(options) {
    const plain = Object.keys(options).length === 0;
    if (plain && this.usual) return this.usual;
    const context = await this.browser.newContext({
      viewport: { width: 1280, height: 900 },
      ...options,
    });
    const page = await context.newPage();
    page.faults = [];
    guard(page, page.faults);
    if (plain) this.usual = page;
    return page;
  }

  // All tests, or those with this in their name.
  async run(only = '') {
    let failed = 0;
    let skipped = 0;
    this.tests = this.tests.filter(([name]) => name.includes(only));
    console.log(`[==========] Running ${this.tests.length} tests.`);
    for (const [name, body] of this.tests) {
      const full = `${this.name}.${name}`;
      const start = Date.now();
      console.log(`[ RUN      ] ${full}`);
      try {
        await body();
        console.log(`[       OK ] ${full} (${Date.now() - start} ms)`);
      } catch (error) {
        if (error instanceof Skipped) {
          ++skipped;
          console.log(`[  SKIPPED ] ${full}: NOT TESTED, ${error.message} (0 ms)`);
          continue;
        }
        ++failed;
        console.log(error.stack ?? error);
        console.log(`[  FAILED  ] ${full} (${Date.now() - start} ms)`);
      }
    }
    console.log(`[==========] ${this.tests.length} tests ran.`);
    console.log(`[  PASSED  ] ${this.tests.length - failed - skipped} tests.`);
    if (failed) console.log(`[  FAILED  ] ${failed} tests.`);
    return failed;
  }
}

export function check(condition, what) {
  if (!condition) throw new Error(`not so: ${what}`);
}

export function same(got, want, what) {
  const [a, b] = [got, want].map((value) => JSON.stringify(value));
  if (a !== b) throw new Error(`${what}: got ${a}, want ${b}`);
}

export function close(got, want, tolerance, what) {
  if (!(Math.abs(got - want) <= tolerance))
    throw new Error(`${what}: got ${got}, want ${want} within ${tolerance}`);
}

// A chart once it is drawn, scrolled to.
export async function chartOf(page, id) {
  const chart = page.locator(`[data-chart="${id}"]`);
  await chart.scrollIntoViewIfNeeded();
  await page.waitForSelector(`[data-chart="${id}"][data-drawn]`, { timeout: 10000 });
  return chart;
}

export const counts = async (chart) => [
  Number(await chart.getAttribute('data-curves')),
  Number(await chart.getAttribute('data-means')),
];

// Pixels of the chart's canvas that have exactly the colour of each mean: those are drawn in full ink.
export const inkOfMeans = (chart) =>
  chart.evaluate((element) => {
    const { plot, lines } = element.chart;
    const canvas = element.querySelector('canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const colours = lines.map((line, i) => line.kind === 'mean' && plot.series[i + 1].stroke());
    return colours.filter(Boolean).map((colour) => {
      const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
      let pixels = 0;
      for (let i = 0; i < data.length; i += 4) {
        pixels += data[i] === red && data[i + 1] === green && data[i + 2] === blue;
      }
      return pixels;
    });
  });
