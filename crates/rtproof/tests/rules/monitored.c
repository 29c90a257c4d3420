/* What the kernel's own monitors report and no other rule does, each in a line that says so. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t inherits, plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static volatile int items, stage, done;

static void *loop(void *of)
{
	struct itimerspec every = { { 0, 5000000 }, { 0, 5000000 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t count;
	timerfd_settime(timer, 0, &every, 0);
	for (int i = 0; i < 200; i++) {
		if (i == 20) kill(getppid(), SIGURG);
		if (read(timer, &count, sizeof count) < 0) _exit(90); /* kernel-monitor */
	}
	stage = 1;
	pthread_mutex_lock(&inherits);
	pthread_mutex_unlock(&inherits);
	pthread_mutex_lock(&plain);
	stage = 2;
	while (!items) pthread_cond_wait(&filled, &plain); /* kernel-monitor */
	pthread_mutex_unlock(&plain);
	done = 1;
	return of;
}

int main(void)
{
	pthread_mutexattr_t attr;
	struct sched_param high = { .sched_priority = 70 };
	pthread_attr_t real_time;
	pthread_t thread;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inherits, &attr);
	pthread_attr_init(&real_time);
	pthread_attr_setinheritsched(&real_time, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&real_time, SCHED_FIFO);
	pthread_attr_setschedparam(&real_time, &high);
	pthread_mutex_lock(&inherits);
	if (pthread_create(&thread, &real_time, loop, 0)) _exit(92);
	while (stage < 1) usleep(10000);
	usleep(100000);
	usleep(100000); /* it has the priority of the other one */
	pthread_mutex_unlock(&inherits);
	while (stage < 2) usleep(10000);
	usleep(100000);
	pthread_mutex_lock(&plain);
	items = 1;
	pthread_mutex_unlock(&plain);
	pthread_cond_signal(&filled);
	pthread_join(thread, 0);
	_exit(!done);
}
