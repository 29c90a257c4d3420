/* An application that marks its cycles: `marked [CYCLES]`.
 *
 *   gcc -O2 -I.. -o marked marked.c && ./marked &
 *   rtproof measure --workload marks:$!
 */
#include "rtproof_mark.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	long cycles = argc > 1 ? atol(argv[1]) : -1;
	struct rtproof_mark *mark = rtproof_mark_open(NULL);
	struct timespec pause = { .tv_nsec = 1000000 };
	volatile unsigned sum = 0;

	if (!mark)
		return 1;
	for (long n = 0; n != cycles; n++) {
		rtproof_mark_begin(mark);
		for (unsigned i = 0; i < 10000; i++) /* the work of the cycle */
			sum += i;
		rtproof_mark_end(mark);
		nanosleep(&pause, NULL);
	}
	return 0;
}
