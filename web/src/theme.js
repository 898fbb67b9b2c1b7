// Dark and light: the system's choice until the reader makes one. Colours for canvas and SVG come
// from here, those of the page from style.css.

const KEY = 'hdetach-report-theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set();
let chosen = stored();
let paper = false; // white, whatever the reader chose for the screen

// Hues that stay apart for colour-blind readers, in an order that keeps neighbours apart.
const HUES = {
  light: ['#2a6fd0', '#e0592a', '#159a6b', '#b87a00', '#d0558a', '#4a3aa7', '#2f7d1f', '#c93a3a'],
  dark: ['#5b9df0', '#ef7d4f', '#34b98a', '#dba027', '#e57fac', '#a79df2', '#6cb85a', '#ee7a7a'],
};
const INKS = {
  light: { ink: '#1c1b19', soft: '#63615b', grid: '#e8e6e0', paper: '#ffffff', line: '#bfbcb3' },
  dark: { ink: '#f0eee8', soft: '#a3a097', grid: '#32312e', paper: '#1f1e1c', line: '#55534d' },
};
const RAMPS = {
  // sequential, from nothing to most
  light: ['#f3f6fb', '#c9dcf5', '#93bbeb', '#5a95dc', '#2a6fd0', '#174a96', '#0b2a5c'],
  dark: ['#23262b', '#1f3a60', '#22569a', '#3577cc', '#5b9df0', '#9cc6fa', '#e3f0ff'],
};
const DASHES = [[], [8, 4], [2, 3]]; // settings past the eighth share a hue and differ in dashes

export const themeName = () =>
  paper ? 'light' : (chosen ?? (system.matches ? 'dark' : 'light'));
export const inks = () => INKS[themeName()];
export const hue = (index) => HUES[themeName()][index % HUES.light.length];
const dash = (index) => DASHES[Math.floor(index / HUES.light.length) % DASHES.length];

// How a line of lines.js is drawn among so many thin ones.
export function strokeOf(line, thin) {
  if (line.kind !== 'run')
    return { colour: hue(line.hue), alpha: 1, width: 2.6, dash: dash(line.hue) };
  // Many thin lines need less ink each, or they cover the means.
  const alpha = (thin > 60 ? 0.22 : thin > 20 ? 0.38 : 0.5) + (themeName() === 'dark' ? 0.1 : 0);
  return { colour: hue(line.hue), alpha, width: 1, dash: [] };
}

export function ramp(fraction) {
  // 0..1 to a colour
  const colours = RAMPS[themeName()];
  const at = Math.min(Math.max(fraction, 0), 1) * (colours.length - 1);
  const i = Math.min(Math.floor(at), colours.length - 2);
  const channel = (colour, k) => parseInt(colour.slice(1 + 2 * k, 3 + 2 * k), 16);
  const mix = [0, 1, 2].map((k) =>
    Math.round(channel(colours[i], k) * (i + 1 - at) + channel(colours[i + 1], k) * (at - i)),
  );
  return `rgb(${mix.join(',')})`;
}

export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function chooseTheme(name) {
  chosen = name;
  try {
    localStorage.setItem(KEY, name);
  } catch {
    /* a page opened from a file may have no storage */
  }
  apply();
}

export function themeForPaper(on) {
  paper = on;
  apply();
}

export function startTheme() {
  system.addEventListener('change', apply);
  apply();
}

function apply() {
  document.documentElement.dataset.theme = themeName();
  for (const listener of [...listeners]) listener();
}

function stored() {
  try {
    const name = localStorage.getItem(KEY);
    return name === 'dark' || name === 'light' ? name : null;
  } catch {
    return null;
  }
}
