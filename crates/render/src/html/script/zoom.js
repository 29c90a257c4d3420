// All pictures over time show the same stretch of it: drag over one, or use the buttons.
const NS = 'http://www.w3.org/2000/svg';
const make = (name, attributes, parent) => {
  const element = document.createElementNS(NS, name);
  for (const [key, to] of Object.entries(attributes)) element.setAttribute(key, to);
  parent.append(element);
  return element;
};
const timed = [...document.querySelectorAll('svg.chart')].filter(svg => svg.dataset.x.endsWith(' time') && svg.querySelector('.plot'));
// Above and below a plot, so that no dot is cut in half.
const AIR = 6;
const STEPS = [1, 2, 5];
const whole = timed.length ? timed[0].dataset.x.split(' ').slice(1, 3).map(Number) : [0, 1];
let stretch = whole;
for (const svg of timed) {
  const [, , , left, right] = svg.dataset.x.split(' ').map(Number);
  const [, , , bottom, top] = svg.dataset.y.split(' ').map(Number);
  svg.box = { left, right, top, bottom, width: right - left };
  svg.plots = [...svg.querySelectorAll('g.plot')].map(plot => {
    const view = make('svg', {
      x: left, y: top - AIR, width: right - left, height: bottom - top + 2 * AIR, preserveAspectRatio: 'none',
      viewBox: `${left} ${top - AIR} ${right - left} ${bottom - top + 2 * AIR}`, overflow: 'visible',
    }, svg);
    plot.replaceWith(view); view.append(plot);
    return view;
  });
}
// Where a dot is to the nanosecond: the text of the picture has it to a tenth of its unit.
for (const dot of dots) {
  const { left, width } = spikes.box;
  dot.querySelector('ellipse').setAttribute('cx', left + (dot.dataset.t - whole[0]) / (whole[1] - whole[0]) * width);
}
const ticks = ([from, to]) => {
  const raw = (to - from) / 9, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = (STEPS.find(m => m * power >= raw) || 10) * power, found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
};
const apply = to => {
  const shortest = Math.min(whole[1] - whole[0], 1e6), span = Math.max(shortest, Math.min(to[1] - to[0], whole[1] - whole[0]));
  const from = Math.max(whole[0], Math.min(to[0], whole[1] - span));
  stretch = [from, from + span];
  const times = (whole[1] - whole[0]) / span, zoomed = times > 1.0001;
  for (const svg of timed) {
    const { left, right, top, bottom, width } = svg.box;
    const start = left + (from - whole[0]) / (whole[1] - whole[0]) * width;
    const place = x => left + (x - start) * times;
    svg.classList.toggle('zoomed', zoomed);
    svg.dataset.x = `linear ${stretch[0]} ${stretch[1]} ${left} ${right} time`;
    for (const view of svg.plots) {
      view.setAttribute('viewBox', `${start} ${top - AIR} ${width / times} ${bottom - top + 2 * AIR}`);
      view.setAttribute('overflow', zoomed ? 'hidden' : 'visible');
      view.querySelectorAll('ellipse').forEach(e => e.setAttribute('rx', e.getAttribute('ry') / times));
    }
    for (const band of svg.querySelectorAll('.phases > g')) {
      const rect = band.querySelector('rect'), text = band.querySelector('text');
      rect.was ??= ['x', 'width'].map(key => +rect.getAttribute(key));
      const [x, end] = [rect.was[0], rect.was[0] + rect.was[1]].map(x => Math.max(left, Math.min(place(x), right)));
      band.style.display = end - x < 1 ? 'none' : '';
      rect.setAttribute('x', x); rect.setAttribute('width', Math.max(end - x, 1));
      text?.setAttribute('x', x + 5);
      if (text) text.style.display = text.getComputedTextLength() > end - x - 8 ? 'none' : '';
    }
    for (const line of svg.querySelectorAll('.phases > line, .lane .tick')) {
      line.was ??= +line.getAttribute('x1');
      const x = place(line.was);
      line.style.display = x < left - 1 || x > right + 1 ? 'none' : '';
      line.setAttribute('x1', x); line.setAttribute('x2', x);
    }
    svg.marks?.remove();
    if (!zoomed) continue;
    svg.marks = make('g', { class: 'axis' }, svg);
    svg.prepend(svg.marks);
    for (const at of ticks(stretch)) {
      const x = left + (at - from) / span * width;
      make('line', { class: 'grid', x1: x, x2: x, y1: top, y2: bottom }, svg.marks);
      make('text', { x: Math.min(x, right - 12), y: bottom + 18, 'text-anchor': 'middle' }, svg.marks).textContent = seconds(at, span);
    }
  }
  let seen = 0;
  for (const dot of dots) {
    const away = dot.dataset.t < stretch[0] || dot.dataset.t > stretch[1];
    dot.classList.toggle('away', away); seen += !away;
  }
  range.textContent = zoomed ? `${seconds(stretch[0], span)} to ${seconds(stretch[1], span)}` + (dots.length ? `: ${grouped(seen)} of the ${grouped(dots.length)} largest` : '') : '';
  tools.querySelectorAll('button.zoomed').forEach(button => { button.disabled = !zoomed; });
};
const scaled = (times, middle = (stretch[0] + stretch[1]) / 2) => {
  const span = (stretch[1] - stretch[0]) / times, part = (middle - stretch[0]) / (stretch[1] - stretch[0]);
  apply([middle - part * span, middle + (1 - part) * span]);
};
const moved = part => { const by = (stretch[1] - stretch[0]) * part; apply([stretch[0] + by, stretch[1] + by]); };
const tools = document.createElement('div'), range = document.createElement('span');
tools.className = 'tools'; tools.setAttribute('role', 'group'); tools.setAttribute('aria-label', 'Stretch of time that the pictures show');
range.className = 'range'; range.setAttribute('role', 'status');
for (const [text, act, only] of [
  ['zoom in', () => scaled(2)], ['zoom out', () => scaled(0.5), true],
  ['earlier', () => moved(-0.5), true], ['later', () => moved(0.5), true], ['whole run', () => apply(whole), true],
]) {
  const button = document.createElement('button');
  button.type = 'button'; button.textContent = text;
  if (only) { button.className = 'zoomed'; button.disabled = true; }
  button.addEventListener('click', act);
  tools.append(button);
}
tools.append(range);
if (timed.length) timed[0].closest('.scroll').before(tools);
for (const svg of timed) {
  const scroller = svg.closest('.scroll');
  const slides = () => scroller && scroller.scrollWidth > scroller.clientWidth + 1;
  svg.classList.toggle('brushed', !slides());
  let from = null, brush = null;
  const stop = () => { brush?.remove(); brush = from = null; };
  const at = event => Math.max(svg.box.left, Math.min(inside(svg, event).x, svg.box.right));
  svg.addEventListener('dragstart', event => event.preventDefault());
  svg.addEventListener('pointerdown', event => {
    // Where a picture is wider than the screen, a finger moves it; the buttons are for that.
    const { x, y } = inside(svg, event), box = svg.box;
    if (event.button || event.pointerType === 'touch' && slides()) return;
    if (x >= box.left && x <= box.right && y >= box.top - AIR && y <= box.bottom + AIR) from = x;
  });
  svg.addEventListener('pointermove', event => {
    if (from === null) return;
    const to = at(event);
    if (!brush && Math.abs(to - from) < 4) return;
    if (!brush) { svg.setPointerCapture(event.pointerId); brush = make('rect', { class: 'brush', y: svg.box.top, height: svg.box.bottom - svg.box.top }, svg); }
    brush.setAttribute('x', Math.min(from, to)); brush.setAttribute('width', Math.abs(to - from));
  });
  svg.addEventListener('pointerup', event => {
    const to = at(event), was = brush && Math.abs(to - from) > 4;
    if (was) {
      const time = x => stretch[0] + (x - svg.box.left) / svg.box.width * (stretch[1] - stretch[0]);
      apply([Math.min(from, to), Math.max(from, to)].map(time));
      // The end of a drag is no click on what lies there; where it makes none, ours uses the listener up.
      addEventListener('click', click => click.preventDefault(), { capture: true, once: true });
      setTimeout(() => tools.click(), 0);
    }
    stop();
  });
  svg.addEventListener('pointercancel', stop);
  svg.addEventListener('dblclick', () => apply(whole));
}
const keys = event => {
  const t = event.target.closest('.dot')?.dataset.t;
  const act = { '+': () => scaled(2, t && +t), '=': () => scaled(2, t && +t), '-': () => scaled(0.5, t && +t), Escape: () => apply(whole) }[event.key];
  if (act && !event.ctrlKey && !event.metaKey) { event.preventDefault(); act(); }
};
spikes?.addEventListener('keydown', keys);
tools.addEventListener('keydown', keys);
