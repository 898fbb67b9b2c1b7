// A table in a box of its own that scrolls sideways where it is too wide, and shows that it does: a
// shadow at each edge that hides columns, and a line of words.

import { h } from './dom.js';

export function scrollBox(label) {
  const box = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label });
  const frame = h('div', { class: 'edges' }, box);
  const hint = h('p', { class: 'sideways', hidden: true }, '← Scroll sideways for all columns →');
  const look = () => {
    const hidden = box.scrollWidth - box.clientWidth;
    frame.dataset.before = box.scrollLeft > 1;
    frame.dataset.after = hidden - box.scrollLeft > 1;
    hint.hidden = hidden <= 1;
  };
  box.addEventListener('scroll', look, { passive: true });
  const sizes = new ResizeObserver(look);
  return {
    element: h('div', null, frame, hint),
    show(table) {
      sizes.disconnect();
      box.replaceChildren(table);
      sizes.observe(box);
      sizes.observe(table);
    },
    destroy: () => sizes.disconnect(),
  };
}
