// A slider over a list of epochs, with words for where it stands.

import { h } from './dom.js';

export function slider(label, textOf, onmove) {
  const output = h('output');
  const input = h('input', { type: 'range', min: 0, max: 0, step: 1, 'aria-label': label });
  const move = () => {
    const i = Number(input.value);
    output.textContent = textOf(i);
    input.setAttribute('aria-valuetext', output.textContent);
    onmove(i);
  };
  input.addEventListener('input', move);
  return {
    element: h('label', { class: 'field slider' }, h('span', null, label), input, output),
    set(count, value) {
      input.max = count - 1;
      input.value = Math.min(value, count - 1);
      move();
    },
  };
}
