/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Statistics inside an application's own loop (C99, C++11; sqrt needs -lm): mean, sd, skewness, kurtosis,
 * quantiles of values in nanoseconds. No allocation, no lock, no system call; one struct (37 KiB) per thread.
 * Moments: one value at a time (Welford 1962; Terriberry 2007 for the 3rd and 4th power), in double. Against
 * exact sums of 200 000 values: within 1e-9 of the value. Quantiles: never below the sample of rank
 * ceil(p n), and at most 1/128 (0.8 %) above it. Values of 2^42 ns (73 min) and more share a bucket; min and max
 * are always exact. docs/workloads.md. */
#ifndef RTPROOF_STATS_H
#define RTPROOF_STATS_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define RTPROOF_STATS_BUCKETS 4608 /* 128 to each power of two, up to 2^42 */
struct rtproof_stats {
	uint64_t n, min, max;
	double mean, m2, m3, m4; /* m: sums of powers of the distance from the mean */
	uint64_t count[RTPROOF_STATS_BUCKETS];
};
/* Also to begin a new window. Before the thread is real-time: it touches all of the memory. */
static inline void rtproof_stats_clear(struct rtproof_stats *s)
{
	memset(s, 0, sizeof *s);
	s->min = UINT64_MAX;
}
static inline size_t rtproof_stats_bucket(uint64_t ns)
{
	unsigned e;
	if (ns >= UINT64_C(1) << 42) return RTPROOF_STATS_BUCKETS - 1;
	if (ns < 256) return (size_t)ns;
	e = 56u - (unsigned)__builtin_clzll(ns);
	return ((size_t)e << 7) + (size_t)(ns >> e);
}
/* Largest value of a bucket. */
static inline uint64_t rtproof_stats_upper(size_t bucket)
{
	size_t e = bucket >> 7;
	if (e < 2) return bucket;
	e--;
	return (((uint64_t)(bucket - (e << 7)) + 1) << e) - 1;
}
/* Takes a value: a few dozen instructions, whatever it is. */
static inline void rtproof_stats_add(struct rtproof_stats *s, uint64_t ns)
{
	double x = (double)ns, before = (double)s->n, n, d, dn, dn2, t;
	s->n++;
	n = (double)s->n;
	if (ns < s->min) s->min = ns;
	if (ns > s->max) s->max = ns;
	s->count[rtproof_stats_bucket(ns)]++;
	d = x - s->mean;
	dn = d / n;
	dn2 = dn * dn;
	t = d * dn * before;
	s->mean += dn;
	s->m4 += t * dn2 * (n * n - 3 * n + 3) + 6 * dn2 * s->m2 - 4 * dn * s->m3;
	s->m3 += t * dn * (n - 2) - 3 * dn * s->m2;
	s->m2 += t;
}
/* Adds what another thread or window has (Terriberry 2007; Pebay, SAND2008-6212). */
static inline void rtproof_stats_merge(struct rtproof_stats *s, const struct rtproof_stats *o)
{
	double a = (double)s->n, b = (double)o->n, n = a + b, d = o->mean - s->mean, d2 = d * d;
	double m2 = s->m2, m3 = s->m3;
	size_t i;
	if (o->n == 0) return;
	s->mean += d * b / n;
	s->m2 += o->m2 + d2 * a * b / n;
	s->m3 += o->m3 + d * d2 * a * b * (a - b) / (n * n) + 3 * d * (a * o->m2 - b * m2) / n;
	s->m4 += o->m4 + d2 * d2 * a * b * (a * a - a * b + b * b) / (n * n * n)
		+ 6 * d2 * (a * a * o->m2 + b * b * m2) / (n * n) + 4 * d * (a * o->m3 - b * m3) / n;
	s->n += o->n;
	if (o->min < s->min) s->min = o->min;
	if (o->max > s->max) s->max = o->max;
	for (i = 0; i < RTPROOF_STATS_BUCKETS; i++) s->count[i] += o->count[i];
}
/* With n - 1; NAN below two values. */
static inline double rtproof_stats_sd(const struct rtproof_stats *s)
{
	return s->n < 2 ? (double)NAN : sqrt(s->m2 / (double)(s->n - 1));
}
/* g1 = m3 / m2^1.5 of the values themselves; NAN where all are equal. */
static inline double rtproof_stats_skewness(const struct rtproof_stats *s)
{
	return s->m2 > 0 ? sqrt((double)s->n) * s->m3 / (s->m2 * sqrt(s->m2)) : (double)NAN;
}
/* m4 / m2^2 of the values themselves, 3 for a normal distribution (the excess is 3 less); NAN as above. */
static inline double rtproof_stats_kurtosis(const struct rtproof_stats *s)
{
	return s->m2 > 0 ? (double)s->n * s->m4 / (s->m2 * s->m2) : (double)NAN;
}
/* The p-quantile, p = 1 - above / of: p99.9 is (s, 1, 1000), the median (s, 1, 2). Walks up to 4608 counts: not
 * for each cycle. UINT64_MAX: too few values for it (p99.9 needs 1000), or no such quantile. */
static inline uint64_t rtproof_stats_quantile(const struct rtproof_stats *s, uint64_t above, uint64_t of)
{
	uint64_t beyond, few, seen = 0, upper;
	size_t i;
	if (above == 0 || above >= of) return UINT64_MAX;
	few = above < of - above ? above : of - above;
	if (s->n < of / few + (of % few != 0)) return UINT64_MAX;
	beyond = s->n / of * above + s->n % of * above / of;
	for (i = RTPROOF_STATS_BUCKETS; i-- > 0;) {
		seen += s->count[i];
		if (seen > beyond) {
			upper = i == RTPROOF_STATS_BUCKETS - 1 ? s->max : rtproof_stats_upper(i);
			return upper < s->max ? upper : s->max;
		}
	}
	return UINT64_MAX;
}
#endif
