// Conveniences only: every number and picture is there without this.
const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const ns = v => { const [f, n] = units.find(u => v >= u[0]) || units[3]; return +(v / f).toPrecision(3) + ' ' + n; };
const grouped = v => Math.max(0, Math.round(v)).toLocaleString('en').replaceAll(',', '\u202f');
// Digits of a second that a span of so many nanoseconds needs.
const digits = span => Math.min(6, Math.max(1, Math.ceil(11 - Math.log10(span))));
const seconds = (v, span) => (v / 1e9).toFixed(digits(span)) + ' s';
const show = {
  ns, count: grouped, number: v => +v.toPrecision(3) + '',
  time: (v, low, high) => seconds(v, high - low),
  nines: v => { const p = 100 - 100 / v; return p.toFixed(Math.max(1, Math.ceil(Math.log10(v)) - 1)) + ' %'; },
};
const tip = document.createElement('div');
tip.className = 'tip'; tip.hidden = true; tip.setAttribute('aria-hidden', 'true');
document.body.append(tip);
const tell = (text, x, y) => {
  tip.hidden = !text; tip.textContent = text;
  tip.style.left = Math.max(8, Math.min(x + 14, document.documentElement.clientWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = y + 14 + 'px';
};
const value = (axis, at) => {
  const [kind, low, high, from, to, unit] = axis.split(' ');
  const p = (at - from) / (to - from);
  if (!unit || p < 0 || p > 1) return null;
  return show[unit](kind === 'log' ? low * Math.pow(high / low, p) : +low + p * (high - low), low, high);
};
// A place of the screen in the units of a picture.
const inside = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
for (const svg of document.querySelectorAll('svg.chart')) {
  const read = event => {
    const point = inside(svg, event);
    const of = event.target.closest('[data-tip]');
    const bin = of ? of.dataset.tip : binAt(svg, point.x, event.target);
    if (bin) return tell(bin, event.pageX, event.pageY);
    const texts = [value(svg.dataset.x, point.x), value(svg.dataset.y, point.y)].filter(text => text !== null);
    const cpu = event.target.closest('[data-cpu]')?.dataset.cpu;
    if (cpu && !isNaN(cpu)) texts.unshift('CPU ' + cpu);
    tell(texts.length < 2 - !svg.dataset.y.trim().match(/[a-z]$/) ? '' : texts.join(' · '), event.pageX, event.pageY);
  };
  svg.addEventListener('pointermove', read);
  svg.addEventListener('pointerdown', read);
  svg.addEventListener('pointerleave', () => { tip.hidden = true; });
}
for (const entry of document.querySelectorAll('.legend li[data-cpu]')) {
  const lines = entry.closest('figure').querySelectorAll(`.series[data-cpu="${entry.dataset.cpu}"]`);
  entry.addEventListener('pointerenter', () => lines.forEach(line => line.classList.add('lit')));
  entry.addEventListener('pointerleave', () => lines.forEach(line => line.classList.remove('lit')));
}
if (navigator.clipboard) for (const pre of document.querySelectorAll('.finding pre.code, .next pre.code, .remedies pre.code')) {
  const button = document.createElement('button');
  button.type = 'button'; button.textContent = 'copy';
  button.addEventListener('click', () => navigator.clipboard.writeText(pre.innerText).then(() => {
    button.textContent = 'copied'; setTimeout(() => { button.textContent = 'copy'; }, 1500);
  }, () => {}));
  const box = document.createElement('div');
  box.className = 'copy'; pre.replaceWith(box); box.append(pre, button);
}
// Older browsers open no closed part for a link to something in it, nor from the style sheet.
const reveal = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let d = target && target.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
};
addEventListener('hashchange', reveal);
reveal();
const closed = () => document.querySelectorAll('details:not([open]):not(.facts, .numbers)');
let opened = [];
addEventListener('beforeprint', () => {
  if (!document.querySelector('#print-all')?.checked) return;
  opened = [...closed()]; opened.forEach(d => { d.open = true; });
});
addEventListener('afterprint', () => { opened.forEach(d => { d.open = false; }); opened = []; });
