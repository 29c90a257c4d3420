//! The bytes of perf's records to happenings. The layout is that of perf_event_open(2); where the
//! fields of a tracepoint are says its `format` file.

use std::{collections::BTreeMap, sync::Arc};

use rtproof_model::run::{Mapping, Monitor, ProgramEvent, ProgramEventData, Stack};
use rtproof_trace::format::Field;

use super::EventSource;

const TID: u64 = 1 << 1;

const TIME: u64 = 1 << 2;

pub(super) const ADDRESS: u64 = 1 << 3;

const CPU: u64 = 1 << 7;

pub(super) const RAW: u64 = 1 << 10;

pub(super) const REGISTERS: u64 = 1 << 12;

pub(super) const STACK: u64 = 1 << 13;

const IDENTIFIER: u64 = 1 << 16;

/// What each sample has, and what ends each other record.
pub(super) const COMMON: u64 = TID | TIME | CPU | IDENTIFIER;

pub(super) const DISABLED: u64 = 1;

/// Inherited by threads and processes.
pub(super) const INHERIT: u64 = 1 << 1;

/// Wake by bytes; the ends of records; our clock.
pub(super) const FLAGS: u64 = 1 << 14 | 1 << 18 | 1 << 25;

/// Of an event that has a ring and reports nothing.
pub(super) const OWNER: u64 = FLAGS | DISABLED;

/// Records of mapped files, names, and threads that come and go.
pub(super) const THREADS: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24;

/// Frame pointer, stack pointer, instruction pointer (arch/x86/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "x86_64")]
pub(super) const REGISTERS_MASK: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// Frame pointer, stack pointer, link register, program counter
/// (arch/arm/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "arm")]
pub(super) const REGISTERS_MASK: u64 = 1 << 11 | 1 << 13 | 1 << 14 | 1 << 15;

/// Frame pointer, link register, stack pointer, program counter.
#[cfg(not(any(target_arch = "arm", target_arch = "x86_64")))]
pub(super) const REGISTERS_MASK: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

const MMAP: u32 = 1;

const LOST: u32 = 2;

const COMM: u32 = 3;

const EXIT: u32 = 4;

const THROTTLE: u32 = 5;

const FORK: u32 = 7;

const SAMPLE: u32 = 9;

const MMAP2: u32 = 10;

const LOST_SAMPLES: u32 = 13;

/// `PERF_RECORD_MISC_COMM_EXEC`.
const BY_EXEC: u16 = 1 << 13;

/// Bytes of the end of a record that is no sample: pid, tid, time, CPU, identifier.
const END: usize = 8 + 8 + 8 + 8;

/// Where the fields of a tracepoint are.
#[derive(Clone, Debug, Default)]
pub(super) struct TracepointLayout {
    pub(super) id: u64,
    fields: BTreeMap<String, (usize, usize)>,
}

impl TracepointLayout {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let lines = text.lines().filter(|line| line.trim_start().starts_with("field"));
        let fields = lines.filter_map(Field::parse);
        let fields = fields.map(|field| (field.name, (field.at, field.size))).collect();
        Some(Self { id, fields })
    }

    /// A number, or the first of an array; the sign is kept.
    fn number(&self, raw: &[u8], name: &str) -> Option<i64> {
        let &(at, size) = self.fields.get(name)?;
        let bytes = raw.get(at..)?;
        Some(match size {
            4 => i64::from(i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)),
            _ => i64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?),
        })
    }

    /// A text of fixed length, up to its zero.
    fn text(&self, raw: &[u8], name: &str) -> Option<String> {
        let &(at, size) = self.fields.get(name)?;
        Some(Bytes(raw.get(at..at.checked_add(size)?)?).text())
    }
}

/// Bits of `prev_state` that are states: one without is runnable (TASK_REPORT).
const STATE_REPORTED: i64 = 0x7f;

/// What the numbers of events mean.
#[derive(Debug, Default)]
pub(super) struct Reader {
    events: BTreeMap<u64, (EventSource, bool, Arc<TracepointLayout>)>,
}

/// Records of a CPU were lost.
pub(super) fn lost(cpu: u32, count: Option<u64>) -> ProgramEvent {
    ProgramEvent {
        time_ns: 0,
        cpu,
        pid: 0,
        tid: 0,
        what: ProgramEventData::Lost(count),
        stack: None,
    }
}

impl Reader {
    pub(super) fn add(
        &mut self,
        id: u64,
        source: EventSource,
        has_stack: bool,
        layout: Arc<TracepointLayout>,
    ) {
        self.events.insert(id, (source, has_stack, layout));
    }

    /// Reads all records. One that cannot be read counts as lost.
    pub(super) fn read(&self, mut bytes: &[u8], to: &mut impl FnMut(ProgramEvent)) {
        while !bytes.is_empty() {
            let mut header = Bytes(bytes);
            let (kind, misc, size) = (header.u32(), header.u16(), header.u16());
            let size = usize::from(size.unwrap_or(0));
            let (Some(kind), Some(misc), Some(body)) = (kind, misc, bytes.get(8..size)) else {
                // What follows cannot be found any more.
                return to(lost(0, None));
            };
            bytes = &bytes[size..];
            match kind {
                LOST | LOST_SAMPLES | THROTTLE => {
                    let at = if kind == LOST { 8 } else { 0 };
                    let count = Bytes(body.get(at..).unwrap_or_default()).u64();
                    to(lost(0, count.filter(|_| kind != THROTTLE)));
                }
                SAMPLE => to(self.sample(body).unwrap_or_else(|| lost(0, Some(1)))),
                COMM | EXIT | FORK | MMAP | MMAP2 => {
                    to(other(kind, misc, body).unwrap_or_else(|| lost(0, Some(1))));
                }
                _ => {}
            }
        }
    }

    fn sample(&self, body: &[u8]) -> Option<ProgramEvent> {
        let mut at = Bytes(body);
        let (source, has_stack, layout) = self.events.get(&at.u64()?)?;
        let (pid, tid, time_ns) = (at.u32()?, at.u32()?, at.u64()?);
        let is_software = layout.fields.is_empty();
        let address = if is_software { at.u64()? } else { 0 };
        let (cpu, _) = (at.u32()?, at.u32()?);
        let raw = match is_software {
            true => &[],
            false => {
                let size = at.u32()? as usize;
                at.take(size)?
            }
        };
        let stack = if *has_stack { at.stack()? } else { None };
        let number = |name: &str| layout.number(raw, name);
        let small = |name: &str| i32::try_from(number(name)?).ok();
        let what = match source {
            EventSource::Threads => return None,
            EventSource::Switches => ProgramEventData::SwitchedOut {
                number: small("prev_pid")?.cast_unsigned(),
                priority: small("prev_prio")?,
            },
            EventSource::Births => ProgramEventData::Born { priority: small("prio")? },
            EventSource::Wakes => ProgramEventData::Wakes { number: small("pid")?.cast_unsigned() },
            EventSource::Enters => {
                // Six of the kernel's `long`.
                let &(args_at, args_bytes) = layout.fields.get("args")?;
                let mut all = Bytes(raw.get(args_at..)?);
                let mut args = [0; 6];
                for arg in &mut args {
                    *arg = if args_bytes == 6 * 4 { all.u32()?.into() } else { all.u64()? };
                }
                ProgramEventData::Enter { number: number("id")?, args }
            }
            EventSource::Exits => {
                ProgramEventData::Exit { number: number("id")?, result: number("ret")? }
            }
            EventSource::MachineSwitches => ProgramEventData::Switched {
                from: small("prev_pid")?.cast_unsigned(),
                from_priority: small("prev_prio")?,
                is_runnable: number("prev_state")? & STATE_REPORTED == 0,
                to: small("next_pid")?.cast_unsigned(),
                to_priority: small("next_prio")?,
                to_name: layout.text(raw, "next_comm")?,
            },
            EventSource::MachineWakes => ProgramEventData::Woken {
                tid: small("pid")?.cast_unsigned(),
                cpu: small("target_cpu")?.cast_unsigned(),
            },
            EventSource::MachineMoves => ProgramEventData::Moved {
                tid: small("pid")?.cast_unsigned(),
                cpu: small("dest_cpu")?.cast_unsigned(),
            },
            EventSource::MonitorFaults | EventSource::MonitorSleeps => ProgramEventData::Reported {
                monitor: match source {
                    EventSource::MonitorFaults => Monitor::PageFault,
                    _ => Monitor::Sleep,
                },
                number: small("pid")?.cast_unsigned(),
            },
            EventSource::Faults => ProgramEventData::Fault { address },
            EventSource::Migrations => ProgramEventData::Migrated,
            EventSource::Signals => ProgramEventData::Signal {
                number: small("sig")?,
                // 0 is the default of the kernel, 1 is to ignore it.
                is_handled: number("sa_handler")?.cast_unsigned() > 1,
            },
        };
        Some(ProgramEvent { time_ns, cpu, pid, tid, what, stack })
    }
}

/// A record that is no sample.
fn other(kind: u32, misc: u16, body: &[u8]) -> Option<ProgramEvent> {
    let mut end = Bytes(body.get(body.len().checked_sub(END)?..)?);
    let (mut pid, mut tid, time_ns) = (end.u32()?, end.u32()?, end.u64()?);
    let cpu = end.u32()?;
    let mut at = Bytes(&body[..body.len() - END]);
    let what = match kind {
        COMM => {
            (pid, tid) = (at.u32()?, at.u32()?);
            ProgramEventData::Named { name: at.text(), by_exec: misc & BY_EXEC != 0 }
        }
        FORK | EXIT => {
            let (new_pid, parent_pid) = (at.u32()?, at.u32()?);
            let (new, parent) = (at.u32()?, at.u32()?);
            match kind {
                FORK => ProgramEventData::Forked { pid: new_pid, tid: new, parent_pid, parent },
                _ => {
                    (pid, tid) = (new_pid, new);
                    ProgramEventData::Ended
                }
            }
        }
        _ => {
            (pid, tid) = (at.u32()?, at.u32()?);
            let (address, bytes, pages) = (at.u64()?, at.u64()?, at.u64()?);
            let mut inode = 0;
            if kind == MMAP2 {
                // Device, inode, generation, protection, flags; or a build id in their place.
                let _ = at.u64()?;
                inode = at.u64()?;
                let _ = (at.u64()?, at.u64()?);
            }
            ProgramEventData::Mapped(Mapping {
                address,
                bytes,
                offset: pages,
                inode,
                path: at.text(),
            })
        }
    };
    Some(ProgramEvent { time_ns, cpu, pid, tid, what, stack: None })
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_ne_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A text up to a zero.
    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }

    /// Registers and the top of the stack; `Some(None)`: a kernel thread has none.
    fn stack(&mut self) -> Option<Option<Box<Stack>>> {
        /// `PERF_SAMPLE_REGS_ABI_32` or `_64`.
        const OWN: u64 = if cfg!(target_pointer_width = "32") { 1 } else { 2 };
        let abi = self.u64()?;
        let mut registers = [0; REGISTERS_MASK.count_ones() as usize];
        if abi != 0 {
            for register in &mut registers {
                *register = self.u64()?;
            }
        }
        let size = usize::try_from(self.u64()?).ok()?;
        let mut dump = Vec::new();
        if size > 0 {
            let all = self.take(size)?;
            let used = usize::try_from(self.u64()?).ok()?;
            dump = all.get(..used)?.to_vec();
        }
        let is_foreign = abi != OWN;
        let stack = match *registers.as_slice() {
            [fp, sp, ip] => Stack { ip, sp, fp, lr: 0, is_foreign, dump },
            #[cfg(target_arch = "arm")]
            [fp, sp, lr, ip] => Stack { ip, sp, fp, lr, is_foreign, dump },
            #[cfg(not(target_arch = "arm"))]
            [fp, lr, sp, ip] => Stack { ip, sp, fp, lr, is_foreign, dump },
            _ => return None,
        };
        Some((abi != 0).then(|| Box::new(stack)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 7.2 has it.
    const FORMAT: &str = "name: error_sleep
ID: 377
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;

print fmt: \"%s[%d]: violation detected\", __get_str(comm), REC->pid
";

    #[test]
    fn a_report_of_the_kernels_monitor_is_read() {
        let layout = Arc::new(TracepointLayout::parse(FORMAT).unwrap());
        assert_eq!(layout.id, 377);
        let mut reader = Reader::default();
        reader.add(5, EventSource::MonitorSleeps, false, layout);
        let mut body = Vec::new();
        // Identifier; process and thread that ran; time; CPU.
        for number in [5, 4_u64 << 32 | 3, 1_000, 1] {
            body.extend_from_slice(&u64::to_ne_bytes(number));
        }
        for number in [20_u32, 377, 4, 0x4_0010, 77, 0] {
            body.extend_from_slice(&number.to_ne_bytes());
        }
        let mut bytes = SAMPLE.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&0_u16.to_ne_bytes());
        bytes.extend_from_slice(&(body.len() as u16 + 8).to_ne_bytes());
        bytes.extend_from_slice(&body);
        let mut found = Vec::new();
        reader.read(&bytes, &mut |it| found.push(it));
        let what = ProgramEventData::Reported { monitor: Monitor::Sleep, number: 77 };
        let expected = ProgramEvent { time_ns: 1_000, cpu: 1, pid: 3, tid: 4, what, stack: None };
        assert_eq!(found, [expected]);
    }
}
