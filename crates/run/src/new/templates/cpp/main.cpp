/* @NAME@: a periodic real-time application, begun by `rtproof new`. It is yours.
 *
 *   control  the real-time loop: cycle() once a period, on absolute time
 *   logger   an ordinary thread: prints what the loop reports, and sets its set-point
 *   main     starts both, waits for signals, stops both
 */
#include "class.h"
#include "pi_mutex.hpp"
#include "queue.hpp"
#include "rt.h"
#include "rtproof_mark.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <mutex>
#include <string>
#include <thread>

namespace {

constexpr std::uint64_t REPORT_CYCLES = 1'000'000'000 / PERIOD_NS; // one report a second

struct Report {
	std::uint64_t cycles = 0;
	std::uint64_t skipped = 0;
	std::uint64_t late_ns_max = 0;
	std::uint64_t late_ns_sum = 0;
};

struct App {
	PiMutex lock; // guards the set-point
	double setpoint = 0;
	Queue<Report, 64> reports; // from control to logger, without a lock
	std::atomic<bool> stop{false};
	Report total;
};

// ---- The work. No new, no exception, no iostream, no file, no lock but `lock`. ----

void cycle(App &app, double &output)
{
	double setpoint;
	{
		// Whoever holds the lock runs at the priority of this thread until it lets go.
		std::lock_guard<PiMutex> guard(app.lock);
		setpoint = app.setpoint;
	}
	output += (setpoint - output) * 0.01; // your control law
}

// `started` gets the reason why the loop does not run; empty: it runs.
void control(App &app, std::promise<std::string> started)
{
	rtproof::Mark mark;
	Report second;
	double output = 0;
	char why[512] = "";

	rt_prefault_stack();
	class_take(why, sizeof why);
	const bool failed = why[0] != '\0';
	started.set_value(why);
	std::uint64_t due_ns = rt_now_ns() + PERIOD_NS;
	while (!failed && !app.stop.load(std::memory_order_relaxed)) {
		rt_sleep_until_ns(due_ns);
		const std::uint64_t late_ns = rt_now_ns() - due_ns;
		mark.begin();
		cycle(app, output);
		mark.end();
		second.cycles++;
		second.late_ns_sum += late_ns;
		if (late_ns > second.late_ns_max)
			second.late_ns_max = late_ns;
		due_ns += PERIOD_NS;
		const std::uint64_t now_ns = rt_now_ns();
		if (now_ns >= due_ns) { // overrun: count the cycles that are past, and skip them
			const std::uint64_t past = (now_ns - due_ns) / PERIOD_NS + 1;
			second.skipped += past;
			due_ns += past * PERIOD_NS;
		}
		if (second.cycles + second.skipped >= REPORT_CYCLES) {
			app.reports.push(second);
			second = Report();
		}
	}
	app.reports.push(second);
}

// ---- The ordinary part: may print, allocate, wait. ----

void print(const char *what, const Report &report)
{
	const double cycles = report.cycles > 0 ? static_cast<double>(report.cycles) : 1;

	std::printf("%s: %llu cycles, %llu skipped, %.1f us late in the mean, at most %.1f us\n",
		    what, static_cast<unsigned long long>(report.cycles),
		    static_cast<unsigned long long>(report.skipped),
		    static_cast<double>(report.late_ns_sum) / cycles / 1000,
		    static_cast<double>(report.late_ns_max) / 1000);
	std::fflush(stdout);
}

void drain(App &app)
{
	Report report;

	while (app.reports.pop(report)) {
		app.total.cycles += report.cycles;
		app.total.skipped += report.skipped;
		app.total.late_ns_sum += report.late_ns_sum;
		if (report.late_ns_max > app.total.late_ns_max)
			app.total.late_ns_max = report.late_ns_max;
		if (!app.stop)
			print("last second", report);
	}
}

void logger(App &app)
{
	while (!app.stop) {
		drain(app);
		{
			std::lock_guard<PiMutex> guard(app.lock);
			app.setpoint = app.setpoint > 0 ? 0 : 1; // your orders to the loop
		}
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
	}
}

// All of a stack is locked: not the usual 8 MiB for each thread.
void small_stacks()
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, RT_STACK_BYTES);
	pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

int run()
{
	static App app;
	char why[512] = "";
	sigset_t signals;
	int received = 0;

	// Blocked in every thread, so that none of them is interrupted: main waits for them.
	sigemptyset(&signals);
	for (int signal : {SIGINT, SIGTERM, SIGHUP})
		sigaddset(&signals, signal);
	pthread_sigmask(SIG_BLOCK, &signals, nullptr);
	std::signal(SIGPIPE, SIG_IGN); // goes on when nobody reads its reports any more
	small_stacks();
	const bool is_locked = rt_lock_memory(why, sizeof why) == 0;
	app.stop = !is_locked;
	std::promise<std::string> started;
	auto failure = started.get_future();
	std::thread control_thread(control, std::ref(app), std::move(started));
	const std::string no_class = failure.get();
	if (!no_class.empty() || !is_locked) {
		control_thread.join();
		for (const std::string &reason : {no_class, std::string(why)})
			if (!reason.empty())
				std::fprintf(stderr, "@NAME@: %s\n", reason.c_str());
		return EXIT_FAILURE;
	}
	std::thread logger_thread(logger, std::ref(app));
	std::printf("ready: process %d, %s, period %u us; Ctrl-C ends it\n",
		    static_cast<int>(getpid()), CLASS_TEXT, PERIOD_NS / 1000);
	std::fflush(stdout);
	sigwait(&signals, &received);
	app.stop = true;
	control_thread.join();
	logger_thread.join();
	drain(app);
	print("total", app.total);
	if (app.reports.dropped() > 0)
		std::printf("%llu reports were dropped\n",
			    static_cast<unsigned long long>(app.reports.dropped()));
	return EXIT_SUCCESS;
}

} // namespace

int main()
{
	try {
		return run();
	} catch (const std::exception &error) {
		std::fprintf(stderr, "@NAME@: %s\n", error.what());
		return EXIT_FAILURE;
	}
}
