/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Marks begin and end of a cycle for `rtproof measure --workload marks:PID` (Linux, gcc or clang).
 * One ring per thread: open it once, before the thread is real-time; mark in the loop. No system
 * call in a mark but the clock. When nobody reads, old cycles are overwritten. docs/workloads.md. */
#ifndef RTPROOF_MARK_H
#define RTPROOF_MARK_H
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define RTPROOF_MARKS 4096 /* cycles in the ring, a power of two */
struct rtproof_mark {
	uint64_t magic, capacity, head, pid, tid, begin, pad[2];
	struct { uint64_t number, begin, end, pad; } cycle[RTPROOF_MARKS];
};
static inline uint64_t rtproof_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}
/* name: NULL, a word to tell threads apart, or a path. NULL: no ring could be made. */
static inline struct rtproof_mark *rtproof_mark_open(const char *name)
{
	char path[256];
	if (name && strchr(name, '/')) snprintf(path, sizeof path, "%s", name);
	else snprintf(path, sizeof path, "/dev/shm/rtproof-mark-%d%s%s", (int)getpid(), name ? "-" : "", name ? name : "");
	unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(struct rtproof_mark))) return NULL;
	struct rtproof_mark *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	if (m == MAP_FAILED) return NULL;
	mlock(m, sizeof *m);
	m->capacity = RTPROOF_MARKS, m->pid = getpid(), m->tid = syscall(SYS_gettid);
	__atomic_store_n(&m->magic, UINT64_C(0x314b52414d505452), __ATOMIC_RELEASE); /* "RTPMARK1" */
	return m;
}
static inline void rtproof_mark_begin(struct rtproof_mark *m) { if (m) m->begin = rtproof_now(); }
static inline void rtproof_mark_end(struct rtproof_mark *m)
{
	if (!m) return;
	uint64_t n = m->head, i = n % RTPROOF_MARKS;
	__atomic_store_n(&m->cycle[i].number, 0, __ATOMIC_RELAXED); /* being written */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&m->cycle[i].begin, m->begin, __ATOMIC_RELAXED);
	__atomic_store_n(&m->cycle[i].end, rtproof_now(), __ATOMIC_RELAXED);
	__atomic_store_n(&m->cycle[i].number, n + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&m->head, n + 1, __ATOMIC_RELEASE);
}
#endif
