/* A periodic cycle of your own, measured by rtproof:
 *
 *   gcc -O2 -o cycle cycle.c
 *   rtproof measure --workload 'exec:./cycle'
 *
 * Each cycle writes `DUE VALUE`: when it was due (CLOCK_MONOTONIC) and how late it began, in
 * nanoseconds. From the due times rtproof knows which cycles were missed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int main(void)
{
	const char *period = getenv("RTPROOF_PERIOD_NS"); /* what --period says */
	int64_t period_ns = period ? atoll(period) : 1000000;
	int64_t due_ns = now_ns() + period_ns;

	for (;;) {
		struct timespec due = {
			.tv_sec = due_ns / 1000000000,
			.tv_nsec = due_ns % 1000000000,
		};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		int64_t late_ns = now_ns() - due_ns;

		/* ... the work of the cycle ... */

		printf("%lld %lld\n", (long long)due_ns, (long long)late_ns);
		if (fflush(stdout)) /* rtproof has ended */
			return 0;
		for (due_ns += period_ns; due_ns < now_ns(); due_ns += period_ns)
			; /* skip what was missed; rtproof counts it */
	}
}
