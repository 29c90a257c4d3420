/* An application that computes inside its loop how late its cycles begin: `stats [CYCLES]`.
 *
 *   gcc -O2 -I.. -o stats stats.c -lm && ./stats 5000
 *
 * Once a second it looks at its own p99, and counts the cycles beyond it.
 */
#include "rtproof_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD_NS 1000000L

static struct rtproof_stats all, second; /* 37 KiB each: not on a small stack */

int main(int argc, char **argv)
{
	long cycles = argc > 1 ? atol(argv[1]) : 5000;
	uint64_t p99 = UINT64_MAX, beyond = 0;
	struct timespec due, now;

	rtproof_stats_clear(&all);
	rtproof_stats_clear(&second);
	clock_gettime(CLOCK_MONOTONIC, &due);
	for (long n = 0; n < cycles; n++) {
		due.tv_nsec += PERIOD_NS;
		if (due.tv_nsec >= 1000000000L) {
			due.tv_nsec -= 1000000000L;
			due.tv_sec++;
		}
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL)) /* interrupted */
			;
		clock_gettime(CLOCK_MONOTONIC, &now);
		uint64_t late = (uint64_t)((now.tv_sec - due.tv_sec) * 1000000000L + now.tv_nsec - due.tv_nsec);
		beyond += late > p99;
		rtproof_stats_add(&second, late);
		if (second.n == 1000) {
			rtproof_stats_merge(&all, &second);
			rtproof_stats_clear(&second);
			p99 = rtproof_stats_quantile(&all, 1, 100);
		}
	}
	rtproof_stats_merge(&all, &second);
	if (all.n == 0)
		return 0;
	printf("cycles %llu, %llu beyond the p99 before them; ns\n", (unsigned long long)all.n,
	       (unsigned long long)beyond);
	printf("min %llu max %llu\n", (unsigned long long)all.min, (unsigned long long)all.max);
	printf("mean %.3f sd %.3f skewness %.3f kurtosis %.3f\n", all.mean, rtproof_stats_sd(&all),
	       rtproof_stats_skewness(&all), rtproof_stats_kurtosis(&all));
	printf("p50 %llu\n", (unsigned long long)rtproof_stats_quantile(&all, 1, 2));
	return 0;
}
