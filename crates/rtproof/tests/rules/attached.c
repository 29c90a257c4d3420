/* Runs for at most 30 s. Its thread `cycle` breaks rules in lines that name them; with the argument
 * `c` none; with `b` a thread is started and ends every cycle; with `m` there are 300 threads; with
 * `e` the first thread ends; with `w` it waits for a lock that is never released; with `f` the
 * cycle is that of a child. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *how = "";
static volatile int stop;

static void *holder(void *of)
{
	while (!stop) {
		pthread_mutex_lock(&lock);
		usleep(20000);
		pthread_mutex_unlock(&lock);
		usleep(1000);
	}
	return of;
}

static void *waits(void *of) { pause(); return of; }
static void *brief(void *of)
{
	sched_yield(); /* yield */
	return of;
}

static void *cycle(void *of)
{
	struct timespec next;
	struct sched_param mine = { .sched_priority = 20 };
	pthread_t thread;
	prctl(PR_SET_NAME, "cycle");
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &mine)) _exit(90);
	if (strchr(how, 'w')) pthread_mutex_lock(&lock);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0; i < 3000; i++) {
		next.tv_nsec += 10000000;
		if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		if (strchr(how, 'b')) { pthread_create(&thread, 0, brief, 0); pthread_join(thread, 0); }
		if (*how) continue;
		sched_yield(); /* yield */
		if (write(2, "x", 1) < 0) _exit(91); /* output */
		usleep(100); /* relative-sleep */
		munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096); /* memory */
		pthread_mutex_lock(&lock); /* lock */
		pthread_mutex_unlock(&lock);
	}
	stop = 1;
	return of;
}

int main(int argc, char **argv)
{
	cpu_set_t set;
	pthread_attr_t attr;
	pthread_t thread, other;
	if (argc > 1) how = argv[1];
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof set, &set) || mlockall(MCL_CURRENT | MCL_FUTURE)) _exit(92);
	if (strchr(how, 'f') && fork()) { sleep(30); _exit(0); }
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	if (strchr(how, 'w')) pthread_mutex_lock(&lock);
	if (!*how) pthread_create(&other, &attr, holder, 0);
	for (int i = 0; strchr(how, 'm') && i < 300; i++)
		if (pthread_create(&other, &attr, waits, 0)) _exit(93);
	pthread_create(&thread, &attr, cycle, 0);
	alarm(30);
	if (strchr(how, 'e')) pthread_exit(0);
	pthread_join(thread, 0);
	_exit(0);
}
