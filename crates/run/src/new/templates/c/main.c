/* @NAME@: a periodic real-time application, begun by `rtproof new`. It is yours.
 *
 *   control  the real-time loop: cycle() once a period, on absolute time
 *   logger   an ordinary thread: prints what the loop reports, and sets its set-point
 *   main     starts both, waits for signals, stops both
 */
#include "class.h"
#include "queue.h"
#include "rt.h"
#include "rtproof_mark.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define REPORT_CYCLES (1000000000u / PERIOD_NS) /* one report a second */

struct app {
	pthread_mutex_t lock; /* with priority inheritance; guards the set-point */
	double setpoint;
	struct queue reports; /* from control to logger, without a lock */
	atomic_bool stop;
	bool is_locked; /* all memory */
	sem_t started;
	char failure[512]; /* why control has not its class; written before `started` */
	struct report total;
};

static void fail(const char *why)
{
	fprintf(stderr, "@NAME@: %s\n", why);
	exit(EXIT_FAILURE);
}

/* ---- The work. No malloc, no printf, no file, no lock but `lock`. ---- */

static void cycle(struct app *app, double *output)
{
	/* Whoever holds the lock runs at the priority of this thread until it lets go. */
	pthread_mutex_lock(&app->lock);
	double setpoint = app->setpoint;
	pthread_mutex_unlock(&app->lock);
	*output += (setpoint - *output) * 0.01; /* your control law */
}

static void *control(void *argument)
{
	struct app *app = argument;
	struct rtproof_mark *mark = rtproof_mark_open(NULL);
	struct report second = { 0 };
	double output = 0;

	rt_prefault_stack();
	if (class_take(app->failure, sizeof app->failure) || !app->is_locked)
		atomic_store(&app->stop, true);
	sem_post(&app->started);
	uint64_t due_ns = rt_now_ns() + PERIOD_NS;
	while (!atomic_load_explicit(&app->stop, memory_order_relaxed)) {
		rt_sleep_until_ns(due_ns);
		uint64_t late_ns = rt_now_ns() - due_ns;
		rtproof_mark_begin(mark);
		cycle(app, &output);
		rtproof_mark_end(mark);
		second.cycles++;
		second.late_ns_sum += late_ns;
		if (late_ns > second.late_ns_max)
			second.late_ns_max = late_ns;
		due_ns += PERIOD_NS;
		uint64_t now_ns = rt_now_ns();
		if (now_ns >= due_ns) { /* overrun: count the cycles that are past, and skip them */
			uint64_t past = (now_ns - due_ns) / PERIOD_NS + 1;
			second.skipped += past;
			due_ns += past * PERIOD_NS;
		}
		if (second.cycles + second.skipped >= REPORT_CYCLES) {
			queue_push(&app->reports, second);
			memset(&second, 0, sizeof second);
		}
	}
	queue_push(&app->reports, second);
	rtproof_mark_close(mark, NULL);
	return NULL;
}

/* ---- The ordinary part: may print, allocate, wait. ---- */

static void print(const char *what, struct report report)
{
	double cycles = report.cycles ? (double)report.cycles : 1;

	printf("%s: %llu cycles, %llu skipped, %.1f us late in the mean, at most %.1f us\n", what,
	       (unsigned long long)report.cycles, (unsigned long long)report.skipped,
	       (double)report.late_ns_sum / cycles / 1000, (double)report.late_ns_max / 1000);
	fflush(stdout);
}

static void drain(struct app *app)
{
	struct report report;

	while (queue_pop(&app->reports, &report)) {
		app->total.cycles += report.cycles;
		app->total.skipped += report.skipped;
		app->total.late_ns_sum += report.late_ns_sum;
		if (report.late_ns_max > app->total.late_ns_max)
			app->total.late_ns_max = report.late_ns_max;
		if (!atomic_load(&app->stop))
			print("last second", report);
	}
}

static void *logger(void *argument)
{
	struct app *app = argument;
	struct timespec pause = { .tv_nsec = 100000000 };

	while (!atomic_load(&app->stop)) {
		drain(app);
		pthread_mutex_lock(&app->lock);
		app->setpoint = app->setpoint > 0 ? 0 : 1; /* your orders to the loop */
		pthread_mutex_unlock(&app->lock);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void init(struct app *app)
{
	pthread_mutexattr_t inherit;

	pthread_mutexattr_init(&inherit);
	if (pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT) ||
	    pthread_mutex_init(&app->lock, &inherit) || sem_init(&app->started, 0, 0))
		fail("cannot make a mutex with priority inheritance");
	pthread_mutexattr_destroy(&inherit);
}

static pthread_t start(void *(*run)(void *), struct app *app)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, RT_STACK_BYTES); /* all of it is locked: not the usual 8 MiB */
	int error = pthread_create(&thread, &attr, run, app);
	if (error)
		fail(strerror(error));
	pthread_attr_destroy(&attr);
	return thread;
}

int main(void)
{
	static struct app app;
	char why[512] = "";
	sigset_t signals;
	int received;

	/* Blocked in every thread, so that none of them is interrupted: main waits for them. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN); /* goes on when nobody reads its reports any more */
	init(&app);
	app.is_locked = rt_lock_memory(why, sizeof why) == 0;
	pthread_t control_thread = start(control, &app);
	sem_wait(&app.started);
	if (atomic_load(&app.stop)) {
		pthread_join(control_thread, NULL);
		if (app.failure[0])
			fprintf(stderr, "@NAME@: %s\n", app.failure);
		if (!app.is_locked)
			fprintf(stderr, "@NAME@: %s\n", why);
		return EXIT_FAILURE;
	}
	pthread_t logger_thread = start(logger, &app);
	printf("ready: process %d, %s, period %u us; Ctrl-C ends it\n", (int)getpid(), CLASS_TEXT,
	       PERIOD_NS / 1000);
	fflush(stdout);
	sigwait(&signals, &received);
	atomic_store(&app.stop, true);
	pthread_join(control_thread, NULL);
	pthread_join(logger_thread, NULL);
	drain(&app);
	print("total", app.total);
	if (app.reports.dropped)
		printf("%llu reports were dropped\n", (unsigned long long)app.reports.dropped);
	return EXIT_SUCCESS;
}
