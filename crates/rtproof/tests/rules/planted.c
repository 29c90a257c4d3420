/* Breaks each rule once, in a line that names the rule; with an argument, none. */
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;

static void handler(int signal) { (void)signal; }

static void bind_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set)) _exit(90); /* migration, scheduling */
}

static void *holder(void *of)
{
	while (!stop) {
		pthread_mutex_lock(&lock);
		usleep(30000);
		pthread_mutex_unlock(&lock);
		usleep(1000);
	}
	return of;
}

static void deep(void)
{
	volatile char *far = alloca(1 << 20);
	far[0] = 1; /* stack-fault */
}

static void cycle(struct timespec *next)
{
	next->tv_nsec += 2000000;
	if (next->tv_nsec >= 1000000000) { next->tv_nsec -= 1000000000; next->tv_sec++; }
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, 0);
}

int main(int argc, char **argv)
{
	struct timespec next, past = { 1, 0 };
	struct sched_param low = { .sched_priority = 0 }, same = { .sched_priority = 70 };
	pthread_attr_t attr;
	pthread_t thread;
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	(void)argv;
	setvbuf(stdout, 0, _IONBF, 0);
	signal(SIGUSR1, handler);
	bind_to(0);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &low);
	if (pthread_create(&thread, &attr, holder, 0)) _exit(91);
	char *heap = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(heap, 1 << 20, MADV_NOHUGEPAGE);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0; i < 50; i++) cycle(&next);
	kill(getppid(), SIGURG);
	for (int i = 0; i < 400; i++) cycle(&next);
	if (argc > 1) _exit(0);
	heap[8192] = 1; /* page-fault */
	deep();
	void *more = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* memory */
	(void)more;
	int fd = open("/dev/null", O_RDONLY); /* blocking */
	(void)fd;
	usleep(100); /* relative-sleep */
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &past, 0); /* settable-clock */
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&lock); /* lock */
		pthread_mutex_unlock(&lock);
		cycle(&next);
	}
	printf("planted\n"); /* output */
	sched_yield(); /* yield */
	if (cpus > 1) bind_to(1);
	raise(SIGUSR1); /* signal */
	sched_setparam(0, &same); /* scheduling */
	pid_t child = fork(); /* inheritance */
	if (child == 0) _exit(0);
	waitpid(child, 0, 0);
	for (int i = 0; i < 50; i++) cycle(&next);
	_exit(0);
}
