/* SPDX-License-Identifier: MIT OR Apache-2.0
 * Marks begin and end of a cycle for `rtproof measure --workload marks:PID` (Linux, gcc or clang).
 * One ring per thread: open it once, before the thread is real-time; mark in the loop. No system
 * call in a mark but the clock. When nobody reads, old cycles are overwritten. docs/workloads.md. */
#ifndef RTPROOF_MARK_H
#define RTPROOF_MARK_H
#include <fcntl.h>
#include <stddef.h>
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
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}
static inline void rtproof_mark_path(char *path, size_t size, const char *name)
{
	if (name && strchr(name, '/')) snprintf(path, size, "%s", name);
	else snprintf(path, size, "/dev/shm/rtproof-mark-%d%s%s", (int)getpid(), name ? "-" : "", name ? name : "");
}
/* name: NULL, a word to tell threads apart, or a path. NULL: no ring could be made. */
static inline struct rtproof_mark *rtproof_mark_open(const char *name)
{
	char path[256];
	rtproof_mark_path(path, sizeof path, name);
	unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) return NULL;
	size_t size = sizeof(struct rtproof_mark);
	void *memory = ftruncate(fd, (off_t)size) ? MAP_FAILED
		: mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	if (memory == MAP_FAILED) { unlink(path); return NULL; }
	struct rtproof_mark *m = (struct rtproof_mark *)memory;
	mlock(m, size);
	m->capacity = RTPROOF_MARKS;
	m->pid = (uint64_t)getpid();
	m->tid = (uint64_t)syscall(SYS_gettid);
	__atomic_store_n(&m->magic, UINT64_C(0x314b52414d505452), __ATOMIC_RELEASE); /* "RTPMARK1" */
	return m;
}
/* Removes the ring; name as it was opened. Who reads it goes on to its end. */
static inline void rtproof_mark_close(struct rtproof_mark *m, const char *name)
{
	char path[256];
	if (!m) return;
	rtproof_mark_path(path, sizeof path, name);
	munmap(m, sizeof *m);
	unlink(path);
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
