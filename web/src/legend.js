// Names of the colours of a chart: its settings, or its lines where they have none.

import { h } from './dom.js';
import { hue } from './theme.js';

const MOST = 16;

export function keysOf(lines) {
  const keys = new Map();
  for (const line of lines) {
    const name = line.setting?.name ?? line.name;
    if (!keys.has(name)) keys.set(name, { name, hue: line.hue });
  }
  return [...keys.values()].sort((a, b) => a.hue - b.hue);
}

export function legend(keys) {
  const items = keys
    .slice(0, MOST)
    .map((key) =>
      h('span', null, h('i', { class: 'swatch', vars: { '--hue': hue(key.hue) } }), key.name),
    );
  if (keys.length > MOST) items.push(h('span', null, `and ${keys.length - MOST} more`));
  return items;
}
