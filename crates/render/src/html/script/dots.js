// Dots of spikes: told under the pointer, and by the arrow keys in order of time.
const spikes = document.querySelector('svg#chart-spikes');
const dots = spikes ? [...spikes.querySelectorAll('.dot')] : [];
dots.sort((a, b) => a.dataset.t - b.dataset.t);
for (const dot of dots) {
  const title = dot.querySelector('title');
  // The browser's own read-out is slow, and would come on top of this one.
  dot.dataset.tip = title.textContent;
  dot.setAttribute('aria-label', title.textContent);
  title.remove();
  if (!dot.matches('a')) dot.setAttribute('role', 'img');
  dot.setAttribute('tabindex', -1);
  dot.addEventListener('focus', () => {
    const box = dot.getBoundingClientRect();
    tell(dot.dataset.tip, box.right + scrollX, box.bottom + scrollY);
    dots.forEach(other => other.setAttribute('tabindex', other === dot ? 0 : -1));
  });
  dot.addEventListener('blur', () => { tip.hidden = true; });
}
// One stop of the tabulator: the worst that leads somewhere.
const worst = [...(spikes?.querySelectorAll('a.dot') || [])].at(-1) || dots.at(-1);
worst?.setAttribute('tabindex', 0);
spikes?.addEventListener('keydown', event => {
  const seen = dots.filter(dot => !dot.classList.contains('away'));
  const at = seen.indexOf(event.target.closest('.dot'));
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: seen.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  seen[Math.max(0, Math.min(to, seen.length - 1))].focus();
});
