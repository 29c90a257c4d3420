/* Two locks, each shared by two FIFO threads of one CPU: `plain` of `low` and `high` (10, 80), and
 * `inheriting` of `pi-low` and `pi-high` (11, 81), which has priority inheritance. `middle` (50)
 * works for 10 ms while either is waited for. 15 rounds of 100 ms. The argument `plain` makes the
 * locks so; with `both` each inherits, with `none` neither does. To stdout, for each lock: its
 * address, waiter, holder, waits, all of them together and the longest in nanoseconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, MS = 1000000, PAUSE_S = 6 };

struct pair {
	const char *low_name, *high_name;
	int low_priority, high_priority, begin_ms;
	pthread_mutex_t *lock;
	int low, high;
	long long sum, worst;
};

static pthread_mutex_t plain, inheriting;
static struct timespec start;
static struct pair pairs[] = {
	{ "low", "high", 10, 80, 0, &plain, 0, 0, 0, 0 },
	{ "pi-low", "pi-high", 11, 81, 50, &inheriting, 0, 0, 0, 0 },
};

static long long now(clockid_t clock)
{
	struct timespec at;
	clock_gettime(clock, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static int begin(const char *name, int priority)
{
	struct sched_param mine = { .sched_priority = priority };
	prctl(PR_SET_NAME, name);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &mine)) _exit(90);
	return gettid();
}

static void until(int round, int ms)
{
	struct timespec at = start;
	long long ns = at.tv_nsec + (round * 100LL + ms) * MS;
	at.tv_sec += ns / 1000000000;
	at.tv_nsec = ns % 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
}

/* Until main ends the process: the end of a thread gives its stack back, a breach of its own. */
static void *stay(void) { return until(10 * ROUNDS, 0), NULL; }

static void work(int ms)
{
	long long end = now(CLOCK_THREAD_CPUTIME_ID) + (long long)ms * MS;
	while (now(CLOCK_THREAD_CPUTIME_ID) < end) ;
}

static void *low(void *of)
{
	struct pair *pair = of;
	pair->low = begin(pair->low_name, pair->low_priority);
	for (int i = 0; i < ROUNDS; i++) {
		until(i, pair->begin_ms);
		pthread_mutex_lock(pair->lock);
		work(5);
		pthread_mutex_unlock(pair->lock);
	}
	return stay();
}

static void *high(void *of)
{
	struct pair *pair = of;
	pair->high = begin(pair->high_name, pair->high_priority);
	for (int i = 0; i < ROUNDS; i++) {
		until(i, pair->begin_ms + 1);
		long long before = now(CLOCK_MONOTONIC);
		pthread_mutex_lock(pair->lock); /* taken */
		long long waited = now(CLOCK_MONOTONIC) - before;
		pthread_mutex_unlock(pair->lock);
		pair->sum += waited;
		if (waited > pair->worst) pair->worst = waited;
	}
	return stay();
}

static void *middle(void *none)
{
	(void)none;
	begin("middle", 50);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		until(i / 2, pairs[i % 2].begin_ms + 2);
		work(10);
	}
	return stay();
}

static void make(pthread_mutex_t *lock, int inherits)
{
	pthread_mutexattr_t attr;
	if (pthread_mutexattr_init(&attr)) _exit(91);
	int protocol = inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE;
	if (pthread_mutexattr_setprotocol(&attr, protocol)) _exit(92);
	if (pthread_mutex_init(lock, &attr)) _exit(93);
}

int main(int argc, char **argv)
{
	cpu_set_t set;
	pthread_t threads[5];
	const char *how = argc > 1 ? argv[1] : "plain";
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	if (sched_setaffinity(0, sizeof set, &set)) _exit(94);
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) _exit(95);
	make(&plain, strcmp(how, "both") == 0);
	make(&inheriting, strcmp(how, "none") != 0);
	alarm(60);
	clock_gettime(CLOCK_MONOTONIC, &start);
	start.tv_sec += PAUSE_S;
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[2 * i], 0, low, &pairs[i]);
		pthread_create(&threads[2 * i + 1], 0, high, &pairs[i]);
	}
	pthread_create(&threads[4], 0, middle, 0);
	until(ROUNDS + 2, 0);
	for (int i = 0; i < 2; i++)
		printf("%lu %d %d %d %lld %lld\n", (unsigned long)pairs[i].lock, pairs[i].high,
		       pairs[i].low, ROUNDS, pairs[i].sum, pairs[i].worst);
	fflush(stdout);
	_exit(0);
}
