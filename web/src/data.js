// Reads what web/DATA.md describes and fills in whatever is missing, so that the rest of the page
// can rely on every field. Never throws on data that is JSON.

export const FORMAT = 1;

const CURVES = [
  'epoch',
  'update',
  'seconds',
  'train_loss',
  'valid_loss',
  'valid_measure',
  'grad_norm_mean',
  'grad_norm_max',
  'clipped',
  'skipped',
  'updates_per_second',
];

const list = (value) => (Array.isArray(value) ? value : []);
const dict = (value) => (value && typeof value === 'object' && !Array.isArray(value) ? value : {});
const text = (value, otherwise = '') =>
  value == null ? otherwise : typeof value === 'object' ? JSON.stringify(value) : String(value);
const number = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const isNumber = (value) => value === null || (typeof value === 'number' && Number.isFinite(value));
// Nearly always right as it is: hundreds of runs are not copied for the odd bad value.
const numbers = (value) => (list(value).every(isNumber) ? list(value) : value.map(number));

export function parseReport(json) {
  let raw;
  try {
    raw = JSON.parse(json);
  } catch (error) {
    return normalise({
      title: 'No data',
      notices: [`The data of this page cannot be read: ${error.message}`],
    });
  }
  return normalise(raw);
}

export function normalise(value) {
  const raw = dict(value);
  const notices = list(raw.notices).map((notice) => text(notice));
  const format = raw.format ?? FORMAT;
  if (format !== FORMAT) {
    notices.unshift(
      `The data has format ${text(format)}, this page knows format ${FORMAT}: ` +
        'some of it may be missing or wrong here. Make the page with the program that made the data.',
    );
  }
  return {
    title: text(raw.title, 'hdetach report'),
    about: list(raw.about).map((line) => text(line)),
    made: text(raw.made),
    watching: raw.watching === true,
    notices,
    experiments: list(raw.experiments).map(experiment),
  };
}

function experiment(value, index) {
  const raw = dict(value);
  const measure = dict(raw.measure);
  const table = dict(raw.table);
  const settings = list(raw.settings).map((item, i) => setting(item, i));
  return {
    name: text(raw.name, `experiment ${index + 1}`),
    task: text(raw.task),
    measure: { name: text(measure.name, 'measure'), sign: text(measure.sign) },
    chance: number(raw.chance),
    threshold: number(raw.threshold),
    table: {
      columns: list(table.columns).map((cell) => text(cell)),
      rows: list(table.rows).map((row) => list(row).map((cell) => text(cell))),
    },
    settings,
    runs: settings.flatMap((item) => item.runs),
  };
}

function setting(value, index) {
  const raw = dict(value);
  const result = { name: text(raw.name, `setting ${index + 1}`), index };
  const seen = new Map();
  result.runs = list(raw.runs).map((item, i) => {
    const made = run(item, result, i);
    const times = seen.get(made.name) ?? 0;
    seen.set(made.name, times + 1);
    // Names keep the reader's choices over a refresh; the count tells equal names apart.
    made.key = JSON.stringify([result.name, made.name, times]);
    return made;
  });
  return result;
}

function run(value, owner, index) {
  const raw = dict(value);
  const curves = {};
  for (const name of CURVES) curves[name] = numbers(dict(raw.curves)[name]);
  const length = Math.max(...Object.values(curves).map((curve) => curve.length));
  for (const name of CURVES) while (curves[name].length < length) curves[name].push(null);
  if (curves.epoch.includes(null)) curves.epoch = curves.epoch.map((epoch, i) => epoch ?? i + 1);
  const scores = {};
  for (const [name, curve] of Object.entries(dict(raw.scores))) scores[name] = numbers(curve);
  return {
    setting: owner,
    name: text(raw.name, `${owner.name}/${index + 1}`),
    folder: text(raw.folder),
    seed: raw.seed == null ? null : text(raw.seed),
    status: text(raw.status, 'unknown'),
    message: text(raw.message),
    length,
    curves,
    scores,
    samples: list(raw.samples).map((sample) => ({
      image: text(dict(sample).image_id, '?'),
      captions: list(dict(sample).captions).map((caption) =>
        caption == null ? null : text(caption),
      ),
    })),
    test: entries(raw.test, number).filter(([, score]) => score != null),
    xray: list(raw.xray)
      .map(xrayLine)
      .filter((line) => line != null),
    config: entries(raw.config, (item) => text(item)),
    sessions: list(raw.sessions).map((session) => entries(session, (item) => text(item))),
  };
}

const entries = (value, read) =>
  Object.entries(dict(value)).map(([key, item]) => [key, read(item)]);

function xrayLine(value) {
  const raw = dict(value);
  const weights = dict(raw.weights);
  const states = dict(raw.states);
  if (!raw.weights && !raw.states) return null;
  return {
    epoch: number(raw.epoch),
    update: number(raw.update),
    detach: number(raw.detach),
    weightScale: number(raw.weight_scale),
    steps: number(raw.steps),
    orders: list(raw.orders).map((order) => text(order)),
    cellShare: number(weights.cell_share),
    weightsNorm: number(weights.norm),
    weightsByOrder: numbers(weights.by_order),
    lags: numbers(states.lags),
    norm: numbers(states.norm),
    byOrder: list(states.by_order).map(numbers),
    shareByLag: numbers(states.cell_share),
  };
}
