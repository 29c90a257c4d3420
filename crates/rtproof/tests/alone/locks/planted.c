/* Threads `low`, `middle` and `high` (FIFO 10, 50, 80) on one CPU, 15 rounds of 100 ms after a
 * pause. `low` works for 5 ms and `high` comes after 1 ms; `middle` comes after 2 ms and works for
 * 10 ms. What `high` waits for is the argument: `mutex`, `pi`, `cond`, `sem`; `long` is a mutex
 * without `middle`; with `hand` a word says whose turn it is. The longest wait goes to stdout, in nanoseconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, MS = 1000000 };

static pthread_mutex_t lock;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static atomic_int turn = 2;
static int ready;
static const char *how;
static struct timespec start;
static long long worst;

static long long now(clockid_t clock)
{
	struct timespec at;
	clock_gettime(clock, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static int is(const char *name) { return strcmp(how, name) == 0; }

static void begin(const char *name, int priority)
{
	struct sched_param mine = { .sched_priority = priority };
	prctl(PR_SET_NAME, name);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &mine)) _exit(90);
}

static void until(int round, int ms)
{
	struct timespec at = start;
	long long ns = at.tv_nsec + (round * 100LL + ms) * MS;
	at.tv_sec += ns / 1000000000;
	at.tv_nsec = ns % 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
}

static void work(int ms)
{
	long long end = now(CLOCK_THREAD_CPUTIME_ID) + (long long)ms * MS;
	while (now(CLOCK_THREAD_CPUTIME_ID) < end) ;
}

static void futex(int operation, int value)
{
	syscall(SYS_futex, &turn, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void pass(int to)
{
	atomic_store(&turn, to);
	futex(FUTEX_WAKE, 1);
}

static void *low(void *of)
{
	begin("low", 10);
	for (int i = 0; i < ROUNDS; i++) {
		until(i, 0);
		if (is("cond")) {
			work(5);
			pthread_mutex_lock(&lock);
			ready = 1;
			pthread_mutex_unlock(&lock);
			pthread_cond_signal(&cond);
		} else if (is("hand")) {
			work(5);
			pass(1);
		} else if (is("sem")) {
			work(5);
			sem_post(&sem);
		} else {
			pthread_mutex_lock(&lock);
			work(5);
			pthread_mutex_unlock(&lock);
		}
	}
	return of;
}

static void *middle(void *of)
{
	begin("middle", 50);
	for (int i = 0; i < ROUNDS; i++) {
		until(i, 2);
		work(10);
	}
	return of;
}

static void *high(void *of)
{
	begin("high", 80);
	for (int i = 0; i < ROUNDS; i++) {
		until(i, 1);
		long long before = now(CLOCK_MONOTONIC);
		if (is("hand")) {
			while (atomic_load(&turn) == 2) futex(FUTEX_WAIT, 2);
			pass(2);
		} else if (is("sem")) {
			sem_wait(&sem);
		} else {
			pthread_mutex_lock(&lock); /* lock */
			while (is("cond") && !ready) pthread_cond_wait(&cond, &lock);
		}
		long long waited = now(CLOCK_MONOTONIC) - before;
		if (waited > worst) worst = waited;
		ready = 0;
		if (!is("sem") && !is("hand")) pthread_mutex_unlock(&lock);
	}
	return of;
}

int main(int argc, char **argv)
{
	cpu_set_t set;
	pthread_t all[3];
	pthread_mutexattr_t attr;
	how = argc > 1 ? argv[1] : "mutex";
	CPU_ZERO(&set);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	if (sched_setaffinity(0, sizeof set, &set)) _exit(91);
	pthread_mutexattr_init(&attr);
	if (is("pi") && pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT)) _exit(92);
	if (pthread_mutex_init(&lock, &attr) || sem_init(&sem, 0, 0)) _exit(93);
	alarm(20);
	clock_gettime(CLOCK_MONOTONIC, &start);
	start.tv_sec += 3;
	pthread_create(&all[0], 0, low, 0);
	if (!is("long")) pthread_create(&all[1], 0, middle, 0);
	pthread_create(&all[2], 0, high, 0);
	for (int i = 0; i < 3; i++) if (i != 1 || !is("long")) pthread_join(all[i], 0);
	printf("%lld\n", worst);
	return 0;
}
