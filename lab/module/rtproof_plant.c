// SPDX-License-Identifier: MIT
/*
 * Test-only: plants causes of latency that user space cannot make, at times that are known before
 * and with what really happened written down. Loaded into guests of the lab, never shipped.
 *
 *   echo "irqsoff cpu=1 us=3000 every_us=100000 count=20" > /proc/rtproof_plant
 *   cat /proc/rtproof_plant
 *
 * Plants: irqsoff, preemptoff, hardirq (a timer's function), softirq (one, too), irqwork (another
 * interrupt than the timer's), smi (x86-64 on QEMU's q35), ipi and nmi (sent by another CPU), kworker
 * (with FIFO 99), irqthread (FIFO 50), frequency (a change during which the CPU stands still),
 * idleexit (with idle_us= when the module is loaded). With zone_mc= it has a thermal zone, whose
 * temperature is that parameter, to be written at any time. Occurrence k is due at
 * start_ns + k * every_us on CLOCK_MONOTONIC; without start_ns= the first is due 10 ms from now.
 * One plant at a time; everything is bounded (see parse()).
 *
 * A file in /proc, because a module parameter cannot tell more than a page, and debugfs and sysfs
 * are missing in some guests.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpuidle.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/thermal.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <trace/events/power.h>
#include <uapi/linux/sched/types.h>

#if defined(CONFIG_X86_64) && defined(CONFIG_PCI)
#define HAVE_SMI
#include <linux/io.h>
#include <linux/pci.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#endif

/* Later kernels do not export what sends one. */
#if defined(CONFIG_X86_64) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define HAVE_NMI
#include <asm/apic.h>
#include <asm/nmi.h>
#endif

#define NAME "rtproof_plant"
#define US_MAX 200000
#define COUNT_MAX 10000
#define TOTAL_US_MAX (60 * USEC_PER_SEC)
/* Between the command and the first occurrence, where the command names no time. */
#define LEAD_NS (10 * NSEC_PER_MSEC)

enum kind { IRQSOFF, PREEMPTOFF, HARDIRQ, SOFTIRQ, IRQWORK, SMI, IPI, NMI, KWORKER, IRQTHREAD,
	    FREQUENCY, IDLEEXIT, KINDS };
static const char *const kind_names[KINDS] = {
	"irqsoff", "preemptoff", "hardirq", "softirq", "irqwork", "smi", "ipi", "nmi", "kworker",
	"irqthread", "frequency", "idleexit"
};

struct occurrence {
	u64 due_ns;
	u64 begin_ns;
	u64 end_ns;
	u32 smis; /* SMIs that this CPU has counted since it was reset */
};

static struct plant {
	enum kind kind;
	unsigned int cpu, us, every_us, count;
	u64 start_ns;
	unsigned int occurred; /* how many of occurrences[] are complete */
	bool finished;
	struct occurrence *occurrences;
	struct task_struct *task;
	struct hrtimer timer;
	struct completion timer_done;
} plant;
/* Guards `plant` against readers and other writers; the running thread only moves `occurred` on. */
static DEFINE_MUTEX(lock);

static u64 due_ns(unsigned int k)
{
	return plant.start_ns + (u64)k * plant.every_us * NSEC_PER_USEC;
}

static u32 smi_count(void)
{
	u32 low = 0, high = 0;
#ifdef HAVE_SMI
	if (rdmsr_safe(MSR_SMI_COUNT, &low, &high))
		low = 0;
#endif
	return low;
}

/* A function of its own, so that stack traces name it. */
static noinline void rtproof_plant_spin(void)
{
	u64 end_ns = ktime_get_ns() + plant.us * NSEC_PER_USEC;

	while (ktime_get_ns() < end_ns)
		cpu_relax();
}

#include "smi.h"

static noinline void rtproof_plant_irqsoff(struct occurrence *o)
{
	unsigned long flags;

	local_irq_save(flags);
	o->begin_ns = ktime_get_ns();
	rtproof_plant_spin();
	o->end_ns = ktime_get_ns();
	local_irq_restore(flags);
}

static noinline void rtproof_plant_preemptoff(struct occurrence *o)
{
	preempt_disable();
	o->begin_ns = ktime_get_ns();
	rtproof_plant_spin();
	o->end_ns = ktime_get_ns();
	preempt_enable();
}

/* A hard interrupt on PREEMPT_RT as well; raised by the thread, for its own CPU. */
static void rtproof_plant_irqwork(struct irq_work *work)
{
	struct occurrence *o = &plant.occurrences[plant.occurred];

	o->begin_ns = ktime_get_ns();
	rtproof_plant_spin();
	o->end_ns = ktime_get_ns();
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
static struct irq_work irq_work = IRQ_WORK_INIT_HARD(rtproof_plant_irqwork);
#else
static struct irq_work irq_work = {
	.flags = ATOMIC_INIT(IRQ_WORK_HARD_IRQ),
	.func = rtproof_plant_irqwork,
};
#endif

/* Runs and is booked by the interrupted CPU; the sender waits. */
static void rtproof_plant_ipi(void *occurrence)
{
	struct occurrence *o = occurrence;

	o->begin_ns = ktime_get_ns();
	rtproof_plant_spin();
	o->end_ns = ktime_get_ns();
}

#ifdef HAVE_NMI
static struct occurrence *nmi_occurrence;

/* The clock that may be read here: it can interrupt the one who moves the others on. */
static int rtproof_plant_nmi(unsigned int type, struct pt_regs *regs)
{
	struct occurrence *o;
	u64 end_ns;

	if (smp_processor_id() != plant.cpu)
		return NMI_DONE;
	o = xchg(&nmi_occurrence, NULL);
	if (!o)
		return NMI_DONE;
	o->begin_ns = ktime_get_mono_fast_ns();
	end_ns = o->begin_ns + plant.us * NSEC_PER_USEC;
	while (ktime_get_mono_fast_ns() < end_ns)
		cpu_relax();
	smp_store_release(&o->end_ns, ktime_get_mono_fast_ns());
	return NMI_HANDLED;
}

static int nmi_prepare(void)
{
	return register_nmi_handler(NMI_LOCAL, rtproof_plant_nmi, 0, NAME);
}

static void nmi_clean_up(void)
{
	unregister_nmi_handler(NMI_LOCAL, NAME);
}

static void nmi_raise(struct occurrence *o)
{
	smp_store_release(&nmi_occurrence, o);
	apic->send_IPI(plant.cpu, NMI_VECTOR);
	while (!smp_load_acquire(&o->end_ns) && !kthread_should_stop())
		cpu_relax();
}
#else
static int nmi_prepare(void) { return -EOPNOTSUPP; }
static void nmi_clean_up(void) { }
static void nmi_raise(struct occurrence *o) { }
#endif

static int raise(struct task_struct *task);
static void lower(struct task_struct *task);

/* A kworker that somebody gave a real-time priority. */
static void rtproof_plant_work(struct work_struct *work)
{
	struct occurrence *o = &plant.occurrences[plant.occurred];

	raise(current);
	o->begin_ns = ktime_get_ns();
	rtproof_plant_spin();
	o->end_ns = ktime_get_ns();
	lower(current);
}
static DECLARE_WORK(work, rtproof_plant_work);

/* An interrupt with a thread, which a hard interrupt of our own raises. */
static int irq_number;
static DECLARE_COMPLETION(irq_done);

static irqreturn_t rtproof_plant_irq(int irq, void *unused)
{
	struct occurrence *o = &plant.occurrences[plant.occurred];

	/* The kernel has put it on all CPUs when it began. */
	set_cpus_allowed_ptr(current, cpumask_of(plant.cpu));
	o->begin_ns = ktime_get_ns();
	rtproof_plant_spin();
	o->end_ns = ktime_get_ns();
	complete(&irq_done);
	return IRQ_HANDLED;
}

static int irq_prepare(void)
{
	int err, irq = irq_alloc_desc(numa_node_id());

	if (irq < 0)
		return irq;
	irq_set_chip_and_handler(irq, &dummy_irq_chip, handle_simple_irq);
	err = request_threaded_irq(irq, NULL, rtproof_plant_irq, IRQF_ONESHOT, NAME, &plant);
	if (err)
		irq_free_desc(irq);
	else
		irq_number = irq;
	return err;
}

static void irq_clean_up(void)
{
	free_irq(irq_number, &plant);
	irq_free_desc(irq_number);
}

static void raise_irq(struct irq_work *work)
{
	generic_handle_irq(irq_number);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
static struct irq_work irq_raiser = IRQ_WORK_INIT_HARD(raise_irq);
#else
static struct irq_work irq_raiser = { .flags = ATOMIC_INIT(IRQ_WORK_HARD_IRQ), .func = raise_irq };
#endif

/* What a driver does whose CPU stands still while it changes its frequency. */
static noinline void rtproof_plant_frequency(struct occurrence *o)
{
	unsigned long flags;

	local_irq_save(flags);
	o->begin_ns = ktime_get_ns();
	rtproof_plant_spin();
	/* As cpufreq does: once it has changed. */
	trace_cpu_frequency(plant.occurred % 2 ? 800000 : 2400000, plant.cpu);
	o->end_ns = ktime_get_ns();
	local_irq_restore(flags);
}

/* Books an occurrence; returns whether another one is to come. */
static bool book(struct occurrence *o)
{
	o->due_ns = due_ns(plant.occurred);
	o->smis = smi_count();
	smp_store_release(&plant.occurred, plant.occurred + 1);
	return plant.occurred < plant.count;
}

/* In hard interrupt context, or as a soft interrupt, as the timer was started. */
static enum hrtimer_restart rtproof_plant_timer(struct hrtimer *timer)
{
	struct occurrence *o = &plant.occurrences[plant.occurred];

	o->begin_ns = ktime_get_ns();
	rtproof_plant_spin();
	o->end_ns = ktime_get_ns();
	if (book(o)) {
		hrtimer_set_expires(timer, ns_to_ktime(due_ns(plant.occurred)));
		return HRTIMER_RESTART;
	}
	complete(&plant.timer_done);
	return HRTIMER_NORESTART;
}

static void by_timer(enum hrtimer_mode mode)
{
	init_completion(&plant.timer_done);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&plant.timer, rtproof_plant_timer, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(&plant.timer, CLOCK_MONOTONIC, mode);
	plant.timer.function = rtproof_plant_timer;
#endif
	hrtimer_start(&plant.timer, ns_to_ktime(due_ns(0)), mode);
	while (!kthread_should_stop()) {
		if (wait_for_completion_interruptible_timeout(&plant.timer_done, HZ / 10) > 0)
			break;
	}
	hrtimer_cancel(&plant.timer);
}

/* Sleeps until an occurrence is due; false when the plant is to end. */
static bool sleep_until(u64 at_ns)
{
	ktime_t at = ns_to_ktime(at_ns);

	while (!kthread_should_stop() && ktime_get_ns() < at_ns) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout(&at, HRTIMER_MODE_ABS);
	}
	__set_current_state(TASK_RUNNING);
	return !kthread_should_stop();
}

static void by_thread(void)
{
	unsigned int k;

	for (k = 0; k < plant.count && sleep_until(due_ns(k)); k++) {
		struct occurrence *o = &plant.occurrences[k];

		switch (plant.kind) {
		case IRQSOFF:
			rtproof_plant_irqsoff(o);
			break;
		case PREEMPTOFF:
			rtproof_plant_preemptoff(o);
			break;
		case IRQWORK:
			irq_work_queue(&irq_work);
			irq_work_sync(&irq_work);
			break;
		case IPI:
			smp_call_function_single(plant.cpu, rtproof_plant_ipi, o, 1);
			break;
		case NMI:
			nmi_raise(o);
			break;
		case KWORKER:
			queue_work_on(plant.cpu, system_highpri_wq, &work);
			flush_work(&work);
			break;
		case IRQTHREAD:
			reinit_completion(&irq_done);
			irq_work_queue(&irq_raiser);
			wait_for_completion(&irq_done);
			break;
		case FREQUENCY:
			rtproof_plant_frequency(o);
			break;
		default:
			smi_raise(o);
		}
		book(o);
	}
}

/*
 * An idle state whose way out takes idle_us: interrupts stay off until the timer that the CPU
 * sleeps to, and so much longer. Between the occurrences it halts.
 */
static unsigned int idle_us;
module_param(idle_us, uint, 0);
static bool idle_plants;

static int rtproof_plant_idle(struct cpuidle_device *dev, struct cpuidle_driver *driver, int index)
{
	if (smp_load_acquire(&idle_plants) && smp_processor_id() == plant.cpu &&
	    plant.occurred < plant.count) {
		u64 next_ns = ktime_to_ns(READ_ONCE(dev->next_hrtimer));
		u64 from_ns = due_ns(plant.occurred);

		if (next_ns > from_ns && next_ns < from_ns + plant.every_us * NSEC_PER_USEC) {
			struct occurrence *o = &plant.occurrences[plant.occurred];

			while (ktime_get_ns() < next_ns && !need_resched())
				cpu_relax();
			if (need_resched())
				return index;
			o->begin_ns = ktime_get_ns();
			rtproof_plant_spin();
			o->end_ns = ktime_get_ns();
			book(o);
			return index;
		}
	}
	raw_safe_halt();
	raw_local_irq_disable();
	return index;
}

static struct cpuidle_driver idle_driver = {
	.name = NAME,
	.owner = THIS_MODULE,
	.states = { {
		.enter = rtproof_plant_idle, .name = "LATE", .desc = "late out of it"
	} },
	.state_count = 1,
};

static void by_idling(void)
{
	smp_store_release(&idle_plants, true);
	while (!kthread_should_stop() && smp_load_acquire(&plant.occurred) < plant.count)
		schedule_timeout_interruptible(HZ / 10);
	smp_store_release(&idle_plants, false);
}

static int run(void *unused)
{
	if (plant.kind == HARDIRQ)
		by_timer(HRTIMER_MODE_ABS_PINNED_HARD);
	else if (plant.kind == SOFTIRQ)
		by_timer(HRTIMER_MODE_ABS_PINNED_SOFT);
	else if (plant.kind == IDLEEXIT)
		by_idling();
	else
		by_thread();
	smp_store_release(&plant.finished, true);
	/* Stays until it is fetched by kthread_stop(). */
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int prepare(void)
{
	switch (plant.kind) {
	case SMI:
		return smi_prepare();
	case NMI:
		return nmi_prepare();
	case IRQTHREAD:
		return irq_prepare();
	case IDLEEXIT:
		return idle_us == plant.us ? 0 : -EINVAL;
	default:
		return 0;
	}
}

static void clean_up(void)
{
	switch (plant.kind) {
	case SMI:
		return smi_clean_up();
	case NMI:
		return nmi_clean_up();
	case IRQTHREAD:
		return irq_clean_up();
	default:
		return;
	}
}

/* Ends what runs and frees its books. */
static void stop(void)
{
	if (!plant.task)
		return;
	kthread_stop(plant.task);
	clean_up();
	kvfree(plant.occurrences);
	memset(&plant, 0, sizeof(plant));
}

/*
 * To the top, to begin on time even where the measured thread is just running. Without preemption
 * it stays an ordinary thread: one of higher priority would delay with preemption as well.
 */
static int raise(struct task_struct *task)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)
	struct sched_attr attr = {
		.size = sizeof(attr), .sched_policy = SCHED_FIFO, .sched_priority = 99
	};

	return sched_setattr_nocheck(task, &attr);
#else
	/* 5.10 lets modules have nothing but FIFO 50: it begins when that thread sleeps. */
	sched_set_fifo(task);
	return 0;
#endif
}

/* An ordinary thread again. */
static void lower(struct task_struct *task)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)
	struct sched_attr attr = { .size = sizeof(attr), .sched_policy = SCHED_NORMAL };

	sched_setattr_nocheck(task, &attr);
#else
	sched_set_normal(task, 0);
#endif
}

/* What sends to the CPU is on another one. */
static unsigned int place(void)
{
	if (plant.kind == IPI || plant.kind == NMI)
		return cpumask_any_but(cpu_online_mask, plant.cpu);
	return plant.cpu;
}

static bool is_ordinary(void)
{
	return plant.kind == PREEMPTOFF || plant.kind == FREQUENCY || plant.kind == IDLEEXIT;
}

static int start(const struct plant *asked)
{
	struct task_struct *task;
	int err = -ENOMEM;

	plant = *asked;
	plant.occurrences = kvcalloc(plant.count, sizeof(*plant.occurrences), GFP_KERNEL);
	if (!plant.occurrences)
		goto out;
	err = place() < nr_cpu_ids ? prepare() : -ENXIO;
	if (err)
		goto out;
	task = kthread_create(run, NULL, NAME);
	if (IS_ERR(task)) {
		err = PTR_ERR(task);
		goto out_prepared;
	}
	kthread_bind(task, place());
	err = is_ordinary() ? 0 : raise(task);
	if (err)
		goto out_task;
	plant.task = task;
	wake_up_process(task);
	return 0;
out_task:
	kthread_stop(task);
out_prepared:
	clean_up();
out:
	kvfree(plant.occurrences);
	memset(&plant, 0, sizeof(plant));
	return err;
}

static int parse(char *text, struct plant *asked)
{
	u64 us = 0, every_us = 0, count = 1, cpu = 0, now_ns = ktime_get_ns(), start_ns = 0;
	char *word = strsep(&text, " ");
	int kind = match_string(kind_names, KINDS, word);

	if (kind < 0)
		return kind;
	while ((word = strsep(&text, " "))) {
		char *key = strsep(&word, "=");
		u64 *to = !strcmp(key, "us") ? &us : !strcmp(key, "every_us") ? &every_us :
			  !strcmp(key, "count") ? &count : !strcmp(key, "cpu") ? &cpu :
			  !strcmp(key, "start_ns") ? &start_ns : NULL;

		if (!*key && !word)
			continue;
		if (!to || !word || kstrtou64(word, 10, to))
			return -EINVAL;
	}
	if (!every_us)
		every_us = 2 * us;
	if (!start_ns)
		start_ns = now_ns + LEAD_NS;
	/* Half of the CPU stays free at least, or the guest could not go on. */
	if (!us || us > US_MAX || !count || count > COUNT_MAX || every_us < 2 * us ||
	    every_us > TOTAL_US_MAX || count * every_us > TOTAL_US_MAX)
		return -ERANGE;
	if (start_ns < now_ns || start_ns > now_ns + TOTAL_US_MAX * NSEC_PER_USEC)
		return -ETIME;
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -ENXIO;
	*asked = (struct plant){ .kind = kind, .cpu = cpu, .us = us, .every_us = every_us,
				 .count = count, .start_ns = start_ns };
	return 0;
}

static ssize_t command(struct file *file, const char __user *from, size_t bytes, loff_t *offset)
{
	char text[128];
	struct plant asked;
	int err;

	if (bytes >= sizeof(text))
		return -E2BIG;
	if (copy_from_user(text, from, bytes))
		return -EFAULT;
	text[bytes] = '\0';
	err = parse(strim(text), &asked);
	if (err)
		return err;
	mutex_lock(&lock);
	if (plant.task && !smp_load_acquire(&plant.finished)) {
		err = -EBUSY;
	} else {
		stop();
		err = start(&asked);
	}
	mutex_unlock(&lock);
	return err ? err : bytes;
}

/* `key value` lines, then one line per occurrence: due, begin, end in nanoseconds, SMIs so far. */
static int show(struct seq_file *s, void *unused)
{
	unsigned int k, occurred;

	mutex_lock(&lock);
	if (!plant.task) {
		seq_puts(s, "state idle\n");
		goto out;
	}
	/* First, so that a finished plant shows all it has done. */
	seq_printf(s, "state %s\n", smp_load_acquire(&plant.finished) ? "done" : "running");
	occurred = smp_load_acquire(&plant.occurred);
	seq_printf(s, "plant %s\ncpu %u\nus %u\nevery_us %u\ncount %u\nstart_ns %llu\n",
		   kind_names[plant.kind], plant.cpu, plant.us, plant.every_us, plant.count,
		   plant.start_ns);
	for (k = 0; k < occurred; k++) {
		const struct occurrence *o = &plant.occurrences[k];

		seq_printf(s, "%llu %llu %llu %u\n", o->due_ns, o->begin_ns, o->end_ns, o->smis);
	}
out:
	mutex_unlock(&lock);
	return 0;
}

static int open(struct inode *inode, struct file *file)
{
	return single_open(file, show, NULL);
}

static const struct proc_ops ops = {
	.proc_open = open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = command,
};

/*
 * Temperature of a thermal zone, millidegrees; there is none where it is 0 at first. It is named as
 * those that rtproof reads while it measures: a zone of ACPI may run firmware, and is left alone.
 */
static int zone_mc;
module_param(zone_mc, int, 0644);
static struct thermal_zone_device *zone;

static int zone_read(struct thermal_zone_device *of, int *temperature)
{
	*temperature = READ_ONCE(zone_mc);
	return 0;
}

static struct thermal_zone_device_ops zone_ops = { .get_temp = zone_read };

static int zone_register(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	zone = thermal_tripless_zone_device_register("pch_lab", NULL, &zone_ops, NULL);
#else
	zone = thermal_zone_device_register("pch_lab", 0, 0, NULL, &zone_ops, NULL, 0, 0);
#endif
	return PTR_ERR_OR_ZERO(zone);
}

static int __init load(void)
{
	int err = zone_mc ? zone_register() : 0;

	if (err)
		return err;
	if (idle_us) {
		idle_driver.states[0].exit_latency = idle_us;
		idle_driver.states[0].target_residency = idle_us;
		err = cpuidle_register(&idle_driver, NULL);
	}
	if (!err && !proc_create(NAME, 0600, NULL, &ops)) {
		err = -ENOMEM;
		if (idle_us)
			cpuidle_unregister(&idle_driver);
	}
	if (err && zone)
		thermal_zone_device_unregister(zone);
	return err;
}

static void __exit unload(void)
{
	remove_proc_entry(NAME, NULL);
	stop();
	if (idle_us)
		cpuidle_unregister(&idle_driver);
	if (zone)
		thermal_zone_device_unregister(zone);
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("Test-only: plants causes of latency for rtproof's lab");
MODULE_LICENSE("Dual MIT/GPL");
