// SPDX-License-Identifier: MIT
/*
 * Test-only: plants causes of latency that user space cannot make, at times that are known before
 * and with what really happened written down. Loaded into guests of the lab, never shipped.
 *
 *   echo "irqsoff cpu=1 us=3000 every_us=100000 count=20" > /proc/rtproof_plant
 *   cat /proc/rtproof_plant
 *
 * Plants: irqsoff, preemptoff, hardirq (a timer's function), softirq (one, too), irqwork (another
 * interrupt than the timer's), smi (x86-64 on QEMU's q35). Occurrence k is due at
 * start_ns + k * every_us on CLOCK_MONOTONIC; without start_ns= the first is due 10 ms from now.
 * One plant at a time; everything is bounded (see parse()).
 *
 * A file in /proc, because a module parameter cannot tell more than a page, and debugfs and sysfs
 * are missing in some guests.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/hrtimer.h>
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
#include <linux/uaccess.h>
#include <linux/version.h>
#include <uapi/linux/sched/types.h>

#if defined(CONFIG_X86_64) && defined(CONFIG_PCI)
#define HAVE_SMI
#include <linux/io.h>
#include <linux/pci.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#endif

#define NAME "rtproof_plant"
#define US_MAX 200000
#define COUNT_MAX 10000
#define TOTAL_US_MAX (60 * USEC_PER_SEC)
/* Between the command and the first occurrence, where the command names no time. */
#define LEAD_NS (10 * NSEC_PER_MSEC)

enum kind { IRQSOFF, PREEMPTOFF, HARDIRQ, SOFTIRQ, IRQWORK, SMI, KINDS };
static const char *const kind_names[KINDS] = {
	"irqsoff", "preemptoff", "hardirq", "softirq", "irqwork", "smi"
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

#ifdef HAVE_SMI
/*
 * System management interrupts of a chosen length. QEMU enters system management mode when port
 * 0xb2 is written to, on the CPU that writes. SeaBIOS moves the boot CPU's handler to SMRAM
 * (0xa8000) and leaves SMRAM unlocked; the other CPUs keep the address of reset, 0x38000, in
 * ordinary memory, which is put back after each interrupt, and so is where their state is saved.
 */
#define SMI_PORT 0xb2
#define SMRAM_REGISTER 0x9d /* of the host bridge (8086:29c0) */
#define SMRAM_OPEN 0x40
#define SMRAM_LOCKED 0x10
#define SMRAM_HANDLER 0xa8000
#define RESET_HANDLER 0x38000
#define RESET_STATE 0x3fe00
#define STATE_BYTES 512

/* Counts time stamps in 16-bit mode; the number of cycles stands at HANDLER_CYCLES. */
static u8 handler[] = {
	0x0f, 0x31,			/* rdtsc */
	0x66, 0x89, 0xc3,		/* mov ebx, eax */
	0x0f, 0x31,			/* again: rdtsc */
	0x66, 0x29, 0xd8,		/* sub eax, ebx */
	0x66, 0x3d, 0, 0, 0, 0,		/* cmp eax, cycles */
	0x72, 0xf3,			/* jb again */
	0x0f, 0xaa,			/* rsm */
};
#define HANDLER_CYCLES 12
static u8 smram_before[sizeof(handler)];
static u8 memory_before[sizeof(handler)];
static u8 state_before[STATE_BYTES];

static int smram_exchange(u8 *old, const u8 *new)
{
	struct pci_dev *bridge = pci_get_domain_bus_and_slot(0, 0, 0);
	void __iomem *smram;
	u8 mode;
	int err = -ENODEV;

	if (!bridge)
		return err;
	if (bridge->vendor != PCI_VENDOR_ID_INTEL || bridge->device != 0x29c0)
		goto out_bridge;
	err = -EPERM;
	pci_read_config_byte(bridge, SMRAM_REGISTER, &mode);
	if (mode & SMRAM_LOCKED)
		goto out_bridge;
	err = -ENOMEM;
	smram = ioremap(SMRAM_HANDLER, sizeof(handler));
	if (!smram)
		goto out_bridge;
	pci_write_config_byte(bridge, SMRAM_REGISTER, mode | SMRAM_OPEN);
	if (old)
		memcpy_fromio(old, smram, sizeof(handler));
	memcpy_toio(smram, new, sizeof(handler));
	pci_write_config_byte(bridge, SMRAM_REGISTER, mode);
	iounmap(smram);
	err = 0;
out_bridge:
	pci_dev_put(bridge);
	return err;
}

static int smi_prepare(void)
{
	u32 cycles = tsc_khz / 1000 * plant.us;

	memcpy(handler + HANDLER_CYCLES, &cycles, sizeof(cycles));
	return smram_exchange(smram_before, handler);
}

static void smi_clean_up(void)
{
	smram_exchange(NULL, smram_before);
}

static void smi_raise(struct occurrence *o)
{
	u8 *code = phys_to_virt(RESET_HANDLER), *state = phys_to_virt(RESET_STATE);
	unsigned long flags;

	local_irq_save(flags);
	memcpy(memory_before, code, sizeof(handler));
	memcpy(state_before, state, STATE_BYTES);
	memcpy(code, handler, sizeof(handler));
	o->begin_ns = ktime_get_ns();
	outb(0, SMI_PORT);
	o->end_ns = ktime_get_ns();
	memcpy(code, memory_before, sizeof(handler));
	memcpy(state, state_before, STATE_BYTES);
	local_irq_restore(flags);
}
#else
static int smi_prepare(void) { return -EOPNOTSUPP; }
static void smi_clean_up(void) { }
static void smi_raise(struct occurrence *o) { }
#endif

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
		default:
			smi_raise(o);
		}
		book(o);
	}
}

static int run(void *unused)
{
	if (plant.kind == HARDIRQ)
		by_timer(HRTIMER_MODE_ABS_PINNED_HARD);
	else if (plant.kind == SOFTIRQ)
		by_timer(HRTIMER_MODE_ABS_PINNED_SOFT);
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

/* Ends what runs and frees its books. */
static void stop(void)
{
	if (!plant.task)
		return;
	kthread_stop(plant.task);
	if (plant.kind == SMI)
		smi_clean_up();
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

static int start(const struct plant *asked)
{
	struct task_struct *task;
	int err = -ENOMEM;

	plant = *asked;
	plant.occurrences = kvcalloc(plant.count, sizeof(*plant.occurrences), GFP_KERNEL);
	if (!plant.occurrences)
		goto out;
	err = plant.kind == SMI ? smi_prepare() : 0;
	if (err)
		goto out;
	task = kthread_create(run, NULL, NAME);
	if (IS_ERR(task)) {
		err = PTR_ERR(task);
		goto out_smi;
	}
	kthread_bind(task, plant.cpu);
	err = plant.kind == PREEMPTOFF ? 0 : raise(task);
	if (err)
		goto out_task;
	plant.task = task;
	wake_up_process(task);
	return 0;
out_task:
	kthread_stop(task);
out_smi:
	if (plant.kind == SMI)
		smi_clean_up();
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

static int __init load(void)
{
	return proc_create(NAME, 0600, NULL, &ops) ? 0 : -ENOMEM;
}

static void __exit unload(void)
{
	remove_proc_entry(NAME, NULL);
	stop();
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("Test-only: plants causes of latency for rtproof's lab");
MODULE_LICENSE("Dual MIT/GPL");
