// Which of some runs is shown: a choice that outlives fresh data.

import { h, select } from './dom.js';

// label: of the box; choices.picked[name]: the key of the run that was picked; onpick: after a choice.
export function runPicker(label, choices, name, onpick) {
  const element = h('span', { class: 'picker' });
  let known = null;
  const pick = (runs) => {
    const run = runs.find((item) => item.key === choices.picked[name]) ?? runs[0];
    const now = runs.map((item) => item.key).join();
    if (now !== known) {
      known = now;
      const options = runs.map((item) => [item.key, item.name]);
      element.replaceChildren(
        select(label, options, run.key, (key) => {
          choices.picked[name] = key;
          onpick();
        }),
      );
    }
    return run;
  };
  return { element, pick };
}
