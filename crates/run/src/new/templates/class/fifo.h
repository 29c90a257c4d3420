/* Period and scheduling class of the loop: SCHED_FIFO. */
#ifndef CLASS_H
#define CLASS_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define PERIOD_NS 1000000u
#define CLASS_TEXT "SCHED_FIFO 80"
#define CLASS_PRIORITY 80 /* above threaded interrupts (50), below the kernel's own threads (99) */

/* Gives the calling thread its class. 0, or -1 and why not. */
static inline int class_take(char *why, size_t size)
{
	struct sched_param param;
	struct rlimit limit;

	memset(&param, 0, sizeof param);
	param.sched_priority = CLASS_PRIORITY;
	int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	if (error == 0)
		return 0;
	getrlimit(RLIMIT_RTPRIO, &limit);
	if (error == EPERM && limit.rlim_cur < CLASS_PRIORITY)
		snprintf(why, size,
			 "cannot take %s: %s; the limit RLIMIT_RTPRIO is %llu. Start it as root, with "
			 "LimitRTPRIO=%d (systemd), or set rtprio in /etc/security/limits.conf",
			 CLASS_TEXT, strerror(error), (unsigned long long)limit.rlim_cur,
			 CLASS_PRIORITY);
	else
		snprintf(why, size,
			 "cannot take %s: %s; the limit RLIMIT_RTPRIO allows it. Look for a seccomp "
			 "filter, a container, or a cgroup without real-time bandwidth (cpu.rt_runtime_us)",
			 CLASS_TEXT, strerror(error));
	return -1;
}

#endif
