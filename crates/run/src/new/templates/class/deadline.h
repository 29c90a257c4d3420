/* Period and scheduling class of the loop: SCHED_DEADLINE. */
#ifndef CLASS_H
#define CLASS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERIOD_NS 1000000u
#define CLASS_TEXT "SCHED_DEADLINE"
#define CLASS_RUNTIME_NS 200000u /* CPU time in each period: more than the longest cycle takes */
#define CLASS_DEADLINE_NS 500000u /* in which the loop gets this time, from when it wakes */

/* What sched_setattr(2) takes; C libraries declare it since glibc 2.41. */
struct class_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* Gives the calling thread its class. 0, or -1 and why not. */
static inline int class_take(char *why, size_t size)
{
	struct class_attr attr;
	const char *hint = "";

	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.policy = 6; /* SCHED_DEADLINE */
	attr.runtime_ns = CLASS_RUNTIME_NS;
	attr.deadline_ns = CLASS_DEADLINE_NS;
	attr.period_ns = PERIOD_NS;
	if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
		return 0;
	int error = errno;
	if (error == EPERM)
		hint = "It needs root or CAP_SYS_NICE (systemd: AmbientCapabilities=CAP_SYS_NICE); a "
		       "limit RLIMIT_RTPRIO does not do. A thread that may not run on every CPU of its "
		       "cpuset partition is refused, too: no taskset, no CPUAffinity";
	else if (error == EBUSY)
		hint = "The deadline tasks of this machine have all the CPU time that the kernel grants "
		       "them (/proc/sys/kernel/sched_rt_runtime_us)";
	snprintf(why, size, "cannot take %s: %s. %s", CLASS_TEXT, strerror(error), hint);
	return -1;
}

#endif
