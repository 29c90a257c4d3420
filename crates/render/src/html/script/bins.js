// The values of the bin under the pointer: exact counts, from attributes of the picture.
const LINES = 8;
function binAt(svg, x, target) {
  const row = target.closest('[data-w]');
  if (row) return cellAt(svg, x, row);

  const edges = svg.bins ??= svg.querySelector('[data-edges]')?.dataset.edges.split(' ').map(Number) || [];
  const [kind, low, high, from, to] = svg.dataset.x.split(' ');
  const p = (x - from) / (to - from);
  const at = kind === 'log' ? low * Math.pow(high / low, p) : +low + p * (high - low);
  const bin = edges.findIndex((edge, i) => edge <= at && at < edges[i + 1]);
  if (p < 0 || p > 1 || bin < 0) return '';
  const rows = [...svg.querySelectorAll('.series[data-n]')].map(series => {
    const counts = series.counts ??= new Map(series.dataset.n.split(' ').map(pair => pair.split(':').map(Number)));
    return ['CPU ' + series.dataset.cpu, counts.get(bin) || 0];
  }).filter(row => row[1]).sort((a, b) => b[1] - a[1]);
  const named = rows.slice(0, LINES).map(row => row[0] + ': ' + grouped(row[1]));
  const rest = rows.slice(LINES);
  if (rest.length) named.push(rest.length + ' more CPUs: ' + grouped(rest.reduce((sum, row) => sum + row[1], 0)));
  return [ns(edges[bin]) + ' to ' + ns(edges[bin + 1]), ...(named.length ? named : ['none'])].join(' · ');
}

// The worst case of a CPU in a stretch of time.
function cellAt(svg, x, row) {
  const [, low, high, from, to] = svg.dataset.x.split(' ').map(Number);
  const worst = row.worst ??= row.dataset.w.split(' '), step = +row.dataset.step;
  const at = Math.floor((low + (x - from) / (to - from) * (high - low)) / step);
  if (!worst[at]) return '';
  return `CPU ${row.dataset.cpu} · ${seconds(at * step, step)} to ${seconds((at + 1) * step, step)} · worst ${ns(worst[at] * 1e3)}`;
}
