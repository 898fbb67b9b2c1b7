// Asks the program for fresh data while runs go on. What the reader chose stays; when the program is
// gone the page keeps what it has and says so.

import { normalise } from './data.js';

const EVERY = 3000; // milliseconds

export function watch(show, say) {
  let last = null;
  say('live', 'following the runs');
  const ask = async () => {
    try {
      const answer = await fetch('/data.json', { cache: 'no-store' });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const text = await answer.text();
      if (text !== last) {
        show(normalise(JSON.parse(text))); // a half-written answer counts as none
        last = text;
      }
      say('live', `updated ${new Date().toLocaleTimeString('en-GB')}`);
    } catch {
      say('gone', 'the program has ended; this is the last it sent');
    }
    setTimeout(ask, EVERY);
  };
  setTimeout(ask, EVERY);
}
