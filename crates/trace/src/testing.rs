//! For tests: kernels of every word size and byte order, and what they write: format files,
//! records, pages.

use crate::Pages;
use crate::format::{ByteOrder, EventFormat, FieldShape, Formats};

/// What decides how a kernel writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) order: ByteOrder,
    pub(crate) long_bytes: usize,
}

/// One of each kind. The first is the most common.
pub(crate) const KERNELS: [Kernel; 4] = [
    Kernel { order: ByteOrder::Little, long_bytes: 8 },
    Kernel { order: ByteOrder::Little, long_bytes: 4 },
    Kernel { order: ByteOrder::Big, long_bytes: 8 },
    Kernel { order: ByteOrder::Big, long_bytes: 4 },
];

/// Events and their own fields; the numbers are their places in this list, from [`ID_FIRST`] on.
const EVENTS: &[(&str, &str)] = &[
    (
        "sched:sched_switch",
        "char prev_comm[16]; pid_t prev_pid; int prev_prio; long prev_state; char next_comm[16]; \
         pid_t next_pid; int next_prio",
    ),
    ("sched:sched_waking", "char comm[16]; pid_t pid; int prio; int success; int target_cpu"),
    ("sched:sched_wakeup", "char comm[16]; pid_t pid; int prio; int target_cpu"),
    ("sched:sched_wakeup_new", "char comm[16]; pid_t pid; int prio; int target_cpu"),
    (
        "sched:sched_migrate_task",
        "__data_loc char[] comm; pid_t pid; int prio; int orig_cpu; int dest_cpu",
    ),
    ("sched:sched_pi_setprio", "__rel_loc char[] comm; pid_t pid; int oldprio; int newprio"),
    ("timer:hrtimer_start", "void * hrtimer; void * function; s64 expires; s64 softexpires"),
    ("timer:hrtimer_cancel", "void * hrtimer"),
    ("timer:hrtimer_expire_entry", "void * hrtimer; s64 now; void * function"),
    ("timer:hrtimer_expire_exit", "void * hrtimer"),
    ("timer:timer_expire_entry", "void * timer; unsigned long now; void * function"),
    ("timer:timer_expire_exit", "void * timer"),
    ("irq_vectors:local_timer_entry", "int vector"),
    ("irq_vectors:thermal_apic_exit", "int vector"),
    ("irq:irq_handler_entry", "int irq; __data_loc char[] name"),
    ("irq:irq_handler_exit", "int irq; int ret"),
    ("irq:softirq_raise", "unsigned int vec"),
    ("irq:softirq_entry", "unsigned int vec"),
    ("irq:softirq_exit", "unsigned int vec"),
    ("ipi:ipi_entry", "const char * reason"),
    ("ipi:ipi_exit", "const char * reason"),
    ("ipi:ipi_raise", "__data_loc unsigned long[] target_cpus; const char * reason"),
    ("ipi:ipi_send_cpu", "unsigned int cpu; void * callsite; void * callback"),
    ("ipi:ipi_send_cpumask", "__data_loc cpumask_t cpumask; void * callsite; void * callback"),
    ("nmi:nmi_handler", "void * handler; s64 delta_ns; int handled"),
    ("power:cpu_idle", "u32 state; u32 cpu_id"),
    ("power:cpu_frequency", "u32 state; u32 cpu_id"),
    ("workqueue:workqueue_execute_start", "void * work; void * function"),
    ("workqueue:workqueue_execute_end", "void * work; void * function"),
    ("exceptions:page_fault_user", "unsigned long address; unsigned long ip; unsigned long code"),
    ("exceptions:page_fault_kernel", "unsigned long address; unsigned long ip; unsigned long code"),
    ("preemptirq:irq_disable", "s32 caller_offs; s32 parent_offs"),
    ("preemptirq:irq_enable", "s32 caller_offs; s32 parent_offs"),
    ("preemptirq:preempt_disable", "u32 caller_offs; u32 parent_offs"),
    ("preemptirq:preempt_enable", "u32 caller_offs; u32 parent_offs"),
    ("ftrace:kernel_stack", "int size; unsigned long caller[8]"),
    ("signal:signal_generate", "int sig; int errno; int code; char comm[16]; pid_t pid"),
    ("cpuhp:cpuhp_enter", "unsigned int cpu; int target; int idx; void * fun"),
    ("cpuhp:cpuhp_multi_enter", "unsigned int cpu; int target; int idx; void * fun"),
    ("ftrace:function", "unsigned long ip; unsigned long parent_ip"),
    ("ftrace:timerlat", "unsigned int seqnum; int context; u64 timer_latency"),
    ("osnoise:irq_noise", "u64 start; u64 duration; __data_loc char[] desc; int vector"),
    ("osnoise:softirq_noise", "u64 start; u64 duration; int vector"),
    ("osnoise:thread_noise", "char comm[16]; u64 start; u64 duration; pid_t pid"),
    ("osnoise:nmi_noise", "u64 start; u64 duration"),
    ("ftrace:hwlat", "u64 duration; u64 outer_duration; u64 nmi_total_ts; unsigned int nmi_count"),
    ("mine:thing", "int x"),
];

const ID_FIRST: u16 = 300;

impl Kernel {
    /// `events/header_page`, for sub-buffers of this size.
    pub(crate) fn header_page(&self, sub_buffer_bytes: usize) -> String {
        let (long, data) = (self.long_bytes, 8 + self.long_bytes);
        let size = sub_buffer_bytes - data;
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{size};\tsigned:0;\n"
        )
    }

    pub(crate) fn formats(&self) -> Formats {
        let mut formats = Formats::new(&self.header_page(4096), self.order).expect("a header");
        for (at, (name, fields)) in EVENTS.iter().enumerate() {
            let (system, name) = name.split_once(':').expect("system:name");
            let text = self.format(name, ID_FIRST + at as u16, fields);
            formats.add(system, &text).expect("a format");
        }
        formats
    }

    /// A format file, its fields where a compiler would put them.
    pub(crate) fn format(&self, name: &str, id: u16, fields: &str) -> String {
        let common = "unsigned short common_type; unsigned char common_flags; \
                      unsigned char common_preempt_count; int common_pid";
        let mut text = format!("name: {name}\nID: {id}\nformat:\n");
        let mut at = 0;
        for declared in common.split("; ").chain(fields.split("; ")) {
            let (size, align) = self.size(declared);
            at = usize::next_multiple_of(at, align);
            let is_signed = ["int ", "pid_t", "s32", "s64", "long "];
            let signed = u8::from(is_signed.iter().any(|word| declared.starts_with(word)));
            text += &format!("\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:{signed};\n");
            if declared.ends_with("common_pid") {
                text += "\n";
            }
            at += size;
        }
        text + "\nprint fmt: \"\"\n"
    }

    fn size(&self, declared: &str) -> (usize, usize) {
        let long = self.long_bytes;
        match declared {
            _ if declared.contains("_loc ") => (4, 4),
            _ if declared.ends_with("[16]") => (16, 1),
            _ if declared.ends_with("[8]") => (8 * long, long),
            _ if declared.ends_with("[]") => (0, long),
            _ if declared.contains("* ") || declared.contains("long ") => (long, long),
            _ if declared.starts_with("unsigned char") => (1, 1),
            _ if declared.starts_with("unsigned short") => (2, 2),
            _ if declared.contains("64 ") => (8, long),
            _ => (4, 4),
        }
    }

    /// A record of an event, all zeros.
    pub(crate) fn record(&self, formats: &Formats, name: &str) -> Record {
        let format = formats.event(name).expect(name).clone();
        let fixed = format.fields.iter().map(|field| field.at + field.size).max().expect("fields");
        let id = u64::from(format.id);
        let mut record = Record { kernel: *self, format, data: vec![0; fixed] };
        record.put(0, 2, id);
        record
    }

    /// A page that begins at a time.
    pub(crate) fn page(&self, at_ns: u64) -> PageBuilder {
        PageBuilder { kernel: *self, stamp_ns: at_ns, at_ns, data: Vec::new(), missed: None }
    }

    fn bytes(&self, value: u64, size: usize) -> Vec<u8> {
        match self.order {
            ByteOrder::Little => value.to_le_bytes()[..size].to_vec(),
            ByteOrder::Big => value.to_be_bytes()[8 - size..].to_vec(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Record {
    kernel: Kernel,
    format: EventFormat,
    pub(crate) data: Vec<u8>,
}

impl Record {
    fn put(&mut self, at: usize, size: usize, value: u64) {
        self.data[at..at + size].copy_from_slice(&self.kernel.bytes(value, size));
    }

    fn place(&self, name: &str) -> (usize, usize) {
        let field = self.format.field(name).expect(name);
        (field.at, field.size)
    }

    pub(crate) fn set(mut self, name: &str, value: i64) -> Self {
        let (at, size) = self.place(name);
        self.put(at, size, value.cast_unsigned());
        self
    }

    /// Sets a text or other bytes: in place, or behind the fixed fields.
    pub(crate) fn bytes(mut self, name: &str, bytes: &[u8]) -> Self {
        let (at, _) = self.place(name);
        let shape = self.format.field(name).expect(name).shape;
        let base = match shape {
            FieldShape::RelLoc => at + 4,
            FieldShape::DataLoc => 0,
            FieldShape::One | FieldShape::Array => {
                let end = at + bytes.len();
                self.data.resize(self.data.len().max(end), 0);
                self.data[at..end].copy_from_slice(bytes);
                return self;
            }
        };
        let place = (bytes.len() as u64) << 16 | (self.data.len() - base) as u64;
        self.put(at, 4, place);
        self.data.extend_from_slice(bytes);
        self
    }

    /// Numbers of the kernel's `long` as bytes.
    pub(crate) fn longs(self, name: &str, longs: &[u64]) -> Self {
        let size = self.kernel.long_bytes;
        let bytes: Vec<u8> = longs.iter().flat_map(|&long| self.kernel.bytes(long, size)).collect();
        self.bytes(name, &bytes)
    }

    /// The task that was current.
    pub(crate) fn pid(self, pid: i32) -> Self {
        self.set("common_pid", i64::from(pid))
    }
}

/// Makes a page, record by record, as the kernel does.
#[derive(Clone, Debug)]
pub(crate) struct PageBuilder {
    kernel: Kernel,
    stamp_ns: u64,
    at_ns: u64,
    data: Vec<u8>,
    missed: Option<Option<u64>>,
}

impl PageBuilder {
    /// Two or one words: kind, time, and the second.
    fn words(&mut self, kind: u32, delta: u64, second: Option<u32>) {
        assert!(delta < 1 << 27);
        let delta = delta as u32;
        let word = match self.kernel.order {
            ByteOrder::Little => kind | delta << 5,
            ByteOrder::Big => kind << 27 | delta,
        };
        for word in [Some(word), second].into_iter().flatten() {
            self.data.extend(self.kernel.bytes(u64::from(word), 4));
        }
    }

    /// An event, with a time extend where its time needs one.
    pub(crate) fn event(mut self, at_ns: u64, data: &[u8]) -> Self {
        let mut delta = at_ns - self.at_ns;
        if delta >= 1 << 27 {
            self.words(30, delta & ((1 << 27) - 1), Some((delta >> 27) as u32));
            delta = 0;
        }
        self.at_ns = at_ns;
        let words = data.len().div_ceil(4);
        if (1..=28).contains(&words) {
            self.words(words as u32, delta, None);
        } else {
            self.words(0, delta, Some(4 + 4 * words as u32));
        }
        self.data.extend_from_slice(data);
        self.data.resize(self.data.len().next_multiple_of(4), 0);
        self
    }

    /// An event whose length always stands in the second word, as where words are 8 bytes aligned.
    pub(crate) fn long_event(mut self, at_ns: u64, data: &[u8]) -> Self {
        let delta = at_ns - self.at_ns;
        self.at_ns = at_ns;
        let padded = data.len().next_multiple_of(8);
        self.words(0, delta, Some(4 + padded as u32));
        self.data.extend_from_slice(data);
        self.data.resize(self.data.len() + padded - data.len(), 0);
        self
    }

    /// An absolute time stamp: of its low 59 bits.
    pub(crate) fn absolute(mut self, at_ns: u64) -> Self {
        let low = at_ns & ((1 << 59) - 1);
        self.words(31, low & ((1 << 27) - 1), Some((low >> 27) as u32));
        self.at_ns = at_ns;
        self
    }

    /// A discarded event with this much data.
    pub(crate) fn discarded(mut self, delta_ns: u64, bytes: usize) -> Self {
        self.words(29, delta_ns.max(1), Some(bytes as u32));
        self.data.resize(self.data.len() + bytes - 4, 0xee);
        self.at_ns += delta_ns;
        self
    }

    /// The rest of the page is empty, but what is in it is not zero.
    pub(crate) fn ended(mut self) -> Self {
        self.words(29, 0, None);
        self.data.extend([0x5a; 40]);
        self
    }

    /// Events were lost before it.
    pub(crate) fn missed(mut self, count: Option<u64>) -> Self {
        self.missed = Some(count);
        self
    }

    /// Any bytes.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.data.extend_from_slice(bytes);
        self
    }

    /// The bytes as they come from the kernel.
    pub(crate) fn done(self) -> Vec<u8> {
        let long = self.kernel.long_bytes;
        let mut commit = self.data.len() as u64;
        let mut data = self.data;
        match self.missed {
            None => {}
            Some(None) => commit |= 1 << 31,
            Some(Some(count)) => {
                commit |= 3 << 30;
                data.extend(self.kernel.bytes(count, long));
            }
        }
        let mut page = self.kernel.bytes(self.stamp_ns, 8);
        page.extend(self.kernel.bytes(commit, long));
        page.extend(data);
        assert!(page.len() <= 4096, "too much for a page");
        page.resize(4096, 0);
        page
    }
}

/// Pages in memory, as in a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    cpus: Vec<u32>,
    pages: Vec<Vec<Vec<u8>>>,
    /// Pages that cannot be read, by CPU and index.
    pub(crate) unreadable: Vec<(u32, usize)>,
    /// How many were read.
    pub(crate) reads: usize,
    /// How many are read at once, 0: one.
    pub(crate) ahead: usize,
}

impl Memory {
    pub(crate) fn new(cpus: &[(u32, &[Vec<u8>])]) -> Self {
        let pages = cpus.iter().map(|(_, pages)| pages.to_vec()).collect();
        Self { cpus: cpus.iter().map(|&(cpu, _)| cpu).collect(), pages, ..Self::default() }
    }
}

impl Pages for Memory {
    fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn count(&self, cpu: u32) -> usize {
        let at = self.cpus.iter().position(|&of| of == cpu);
        at.map_or(0, |at| self.pages[at].len())
    }

    fn read(&mut self, cpu: u32, index: usize, into: &mut Vec<u8>) -> std::io::Result<()> {
        self.reads += 1;
        if self.unreadable.contains(&(cpu, index)) {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let at = self.cpus.iter().position(|&of| of == cpu).expect("a CPU");
        into.clone_from(&self.pages[at][index]);
        Ok(())
    }

    fn read_ahead(
        &mut self,
        cpu: u32,
        index: usize,
        count: usize,
        into: &mut Vec<u8>,
    ) -> std::io::Result<usize> {
        self.read(cpu, index, into)?;
        let (mut page, size) = (Vec::new(), into.len());
        let mut read = 1;
        while read < count.min(self.ahead) && index + read < self.count(cpu) {
            if self.read(cpu, index + read, &mut page).is_err() || page.len() != size {
                break;
            }
            into.extend_from_slice(&page);
            read += 1;
        }
        Ok(read)
    }
}

/// Events of the first kernel, for tests of what is made of them.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) formats: Formats,
}

/// An event before it is in a page: when, and the record.
pub(crate) type At = (u64, Vec<u8>);

impl Machine {
    pub(crate) fn new() -> Self {
        Self { formats: KERNELS[0].formats() }
    }

    pub(crate) fn event(&self, at_ns: u64, pid: i32, name: &str, fields: &[(&str, i64)]) -> At {
        let record = KERNELS[0].record(&self.formats, name).pid(pid);
        let record = fields.iter().fold(record, |record, (name, value)| record.set(name, *value));
        (at_ns, record.data)
    }

    /// One task leaves, another comes.
    pub(crate) fn switch(&self, at_ns: u64, prev: i32, next: i32) -> At {
        let fields = [("prev_pid", prev.into()), ("prev_state", 1), ("next_pid", next.into())];
        self.event(at_ns, prev, "sched:sched_switch", &fields)
    }

    /// One task wakes another, which is to run on a CPU.
    pub(crate) fn waking(&self, at_ns: u64, by: i32, pid: i32, on: u32) -> At {
        let fields = [("pid", pid.into()), ("target_cpu", on.into())];
        self.event(at_ns, by, "sched:sched_waking", &fields)
    }

    /// An event without fields that matter.
    pub(crate) fn plain(&self, at_ns: u64, name: &str) -> At {
        self.event(at_ns, 7, name, &[])
    }

    pub(crate) fn builder(&self, events: &[At]) -> PageBuilder {
        let first_ns = events.first().map_or(0, |(at_ns, _)| *at_ns);
        let page = KERNELS[0].page(first_ns);
        events.iter().fold(page, |page, (at_ns, data)| page.event(*at_ns, data))
    }

    pub(crate) fn page(&self, events: &[At]) -> Vec<u8> {
        self.builder(events).done()
    }
}
