// The reader's choices: one object for the page and one for each experiment, found by name, so that
// fresh data while watching leaves them as they are.

const experiments = new Map();

class Choices {
  constructor() {
    this.axis = 'epoch'; // epoch, update, seconds
    this.zoom = null; // [from, to] on that axis
    this.log = {}; // chart id -> true or false; not there: the chart's own default
    this.hiddenSettings = new Set();
    this.hiddenRuns = new Set();
    this.seeds = true;
    this.means = true;
    this.openSettings = new Set();
    this.picked = {}; // panel -> key of the run or number on its slider
    this.listeners = new Set();
  }

  // what: 'lines' (which curves, which axis) or 'zoom'
  changed(what) {
    for (const listener of [...this.listeners]) listener(what);
  }

  onChange(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  shows(run) {
    return !this.hiddenSettings.has(run.setting.name) && !this.hiddenRuns.has(run.key);
  }
}

export function choicesOf(name) {
  if (!experiments.has(name)) experiments.set(name, new Choices());
  return experiments.get(name);
}
