// Paper. Before the page is printed all of it is drawn, also what was never scrolled to, in the
// colours for white paper; charts as paths, which fit any width that the paper leaves them.

import { themeForPaper } from './theme.js';

const media = window.matchMedia('print');
const listeners = new Set();
let on = false;

export const printing = () => on;

// Calls listener(true) before the page is printed and listener(false) afterwards.
export function onPrint(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function turn(to) {
  if (to === on) return;
  on = to;
  themeForPaper(on);
  for (const listener of [...listeners]) listener(on);
}

// Not every browser has both kinds of events, nor their order in common.
export function startPrint() {
  window.addEventListener('beforeprint', () => turn(true));
  window.addEventListener('afterprint', () => turn(media.matches));
  media.addEventListener('change', () => turn(media.matches));
  turn(media.matches);
}
