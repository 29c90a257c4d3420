/* Memory and time of a real-time process: what a loop needs so that it waits for nothing. */
#ifndef RT_H
#define RT_H

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define RT_STACK_BYTES (256 * 1024) /* of each thread; all of it is locked into memory */
#define RT_STACK_USED (64 * 1024)   /* what the loop may use of it, touched before it starts */

static inline uint64_t rt_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sleeps until a moment, not for a time: what the cycle took does not shift the next one. */
static inline void rt_sleep_until_ns(uint64_t due_ns)
{
	struct timespec due;

	due.tv_sec = (time_t)(due_ns / 1000000000u);
	due.tv_nsec = (long)(due_ns % 1000000000u);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
		;
}

/* Keeps all memory of the process in RAM, now and later, and the heap as large as it ever was.
 * Call it before the first thread starts. 0, or -1 and why not. */
static inline int rt_lock_memory(char *why, size_t size)
{
	struct rlimit limit;
	char kib[32];

	mallopt(M_TRIM_THRESHOLD, -1); /* give nothing back: taking it again is a page fault */
	mallopt(M_MMAP_MAX, 0);        /* no mapping for a large block, which free would unmap */
	mallopt(M_ARENA_MAX, 1);       /* one heap for all threads, not one mapping for each */
	if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
		return 0;
	int error = errno;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	snprintf(kib, sizeof kib, "%llu KiB", (unsigned long long)limit.rlim_cur / 1024);
	snprintf(why, size,
		 "cannot lock memory: %s; the limit RLIMIT_MEMLOCK is %s. Start it as root, with "
		 "LimitMEMLOCK=infinity (systemd), or set memlock in /etc/security/limits.conf",
		 strerror(error), limit.rlim_cur == RLIM_INFINITY ? "unlimited" : kib);
	return -1;
}

/* Touches the stack that the loop will use, so that its first cycles do not fault. */
static inline void rt_prefault_stack(void)
{
	volatile char stack[RT_STACK_USED];

	for (size_t at = 0; at < sizeof stack; at += 4096)
		stack[at] = 0;
	stack[sizeof stack - 1] = 0;
}

#endif
