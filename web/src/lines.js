// From runs to what a chart draws: a thin line for each run and a thick one for each setting's mean.
// A line is {kind: 'run' | 'mean' | 'score', name, setting, run, hue, x, y}, points without a value left out.

export const AXES = [
  ['epoch', 'epochs'],
  ['update', 'updates'],
  ['seconds', 'time'],
];

// value(run) gives the y of each epoch; times scales it.
export function runLines(experiment, choices, value, { times = 1, log = false } = {}) {
  const thin = [];
  const thick = [];
  for (const setting of experiment.settings) {
    if (choices.hiddenSettings.has(setting.name)) continue;
    if (choices.seeds) {
      for (const run of setting.runs) {
        if (choices.hiddenRuns.has(run.key)) continue;
        const points = compact(run.curves[choices.axis], value(run), times, log);
        if (points.x.length)
          thin.push({ kind: 'run', name: run.name, setting, run, hue: setting.index, ...points });
      }
    }
    if (choices.means) {
      const mean = meanCurve(setting, choices.axis, value);
      const points = compact(mean.x, mean.y, times, log);
      if (points.x.length)
        thick.push({
          kind: 'mean',
          name: `${setting.name}, mean`,
          setting,
          hue: setting.index,
          ...points,
        });
    }
  }
  return [...thin, ...thick];
}

export function compact(xs, ys, times = 1, log = false) {
  const x = [];
  const y = [];
  for (let i = 0; i < xs.length; ++i) {
    if (xs[i] == null || ys[i] == null || (log && !(ys[i] > 0))) continue;
    x.push(xs[i]);
    y.push(ys[i] * times);
  }
  return { x, y };
}

// The mean over all begun runs of the setting, hidden ones too, at the epochs that all of them have.
export function meanCurve(setting, axis, value) {
  const begun = setting.runs.filter((run) => value(run).some((y) => y != null));
  const x = [];
  const y = [];
  if (!begun.length) return { x, y };
  const xs = begun.map((run) => run.curves[axis]);
  const ys = begun.map(value);
  for (const at of sharedEpochs(setting, begun)) {
    let sumX = 0;
    let sumY = 0;
    for (let r = 0; r < begun.length; ++r) {
      const px = xs[r][at[r]];
      const py = ys[r][at[r]];
      if (px == null || py == null) {
        sumY = NaN;
        break;
      }
      sumX += px;
      sumY += py;
    }
    if (Number.isNaN(sumY)) continue;
    x.push(sumX / begun.length);
    y.push(sumY / begun.length);
  }
  return { x, y };
}

// For each epoch that every one of these runs has, its place in each run; kept with the setting.
function sharedEpochs(setting, begun) {
  setting.shared ??= new Map();
  const who = begun.map((run) => run.key).join();
  if (!setting.shared.has(who)) setting.shared.set(who, findShared(begun));
  return setting.shared.get(who);
}

function findShared(begun) {
  const places = begun.map((run) => new Map(run.curves.epoch.map((epoch, i) => [epoch, i])));
  const shared = [];
  for (const epoch of places[0].keys()) {
    const at = places.map((place) => place.get(epoch));
    if (!at.includes(undefined)) shared.push(at);
  }
  return shared;
}

// Index of the point nearest to x; xs ascends.
export function nearest(xs, x) {
  let low = 0;
  let high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle;
    else high = middle;
  }
  return x - xs[low] <= xs[high] - x ? low : high;
}

// How the x axis is labelled: its unit, and what divides the values.
export function xUnit(axis, max) {
  if (axis !== 'seconds') return { divide: 1, label: axis === 'epoch' ? 'epochs' : 'updates' };
  if (max > 3 * 3600) return { divide: 3600, label: 'hours' };
  if (max > 600) return { divide: 60, label: 'minutes' };
  return { divide: 1, label: 'seconds' };
}
