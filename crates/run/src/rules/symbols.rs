//! From the top of a user's stack to functions, files and lines: unwound by the program's own
//! tables (.eh_frame), named by its debug information.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, Metadata},
    io::Read as _,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    rc::Rc,
};

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use gimli::{EndianArcSlice, NativeEndian};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _};

#[cfg(not(target_arch = "x86_64"))]
use framehop::aarch64::{
    CacheAarch64 as Cache, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Unwinder,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{
    CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Unwinder,
};
use rtproof_host::{
    Root,
    door::usage,
    facts::app::{App, Target},
    task,
};
use rtproof_model::run::{Mapping, ProgramEvent, ProgramEventData, Stack};
use rtproof_results::launch::StackFrame;

/// Most frames of a stack.
const FRAMES_MAX: usize = 64;

/// No larger file is read.
const FILE_MAX: u64 = 1 << 30;

type Slice = EndianArcSlice<NativeEndian>;

/// A file that was mapped, read once.
struct Image {
    lines: Option<addr2line::Context<Slice>>,
    /// Functions of the symbol tables: address, size, name.
    functions: Vec<(u64, u64, String)>,
    sections: BTreeMap<&'static str, (u64, Vec<u8>)>,
    /// Segments of code: offset in the file, bytes, address.
    segments: Vec<(u64, u64, u64)>,
}

/// The mappings of all processes of a program.
#[derive(Default)]
pub(crate) struct ProgramSymbols {
    mapped: BTreeMap<u32, Vec<Mapping>>,
    images: BTreeMap<(String, u64), Option<Rc<Image>>>,
    unwinders: BTreeMap<u32, Unwinder<Vec<u8>>>,
}

impl ProgramSymbols {
    /// Processes that ran before: what they have mapped.
    pub(crate) fn find(&mut self, threads: &[RunningThread]) {
        for &of in threads {
            if !self.mapped.contains_key(&of.pid) {
                mappings(of).into_iter().for_each(|it| self.mapped(of.pid, it));
            }
        }
    }

    /// Takes what an event says of a process's mappings.
    pub(crate) fn learn(&mut self, event: &ProgramEvent) {
        match &event.what {
            ProgramEventData::Named { by_exec: true, .. } => self.executed(event.pid),
            ProgramEventData::Forked { pid, parent_pid, .. } => self.forked(*pid, *parent_pid),
            ProgramEventData::Mapped(mapping) => self.mapped(event.pid, mapping.clone()),
            _ => {}
        }
    }

    /// A process has executed a program: nothing is mapped any more.
    fn executed(&mut self, pid: u32) {
        self.mapped.remove(&pid);
        self.unwinders.remove(&pid);
    }

    /// A process was made, with the mappings of another one.
    fn forked(&mut self, pid: u32, parent: u32) {
        if pid != parent
            && let Some(of) = self.mapped.get(&parent).cloned()
        {
            self.mapped.insert(pid, of);
            self.unwinders.remove(&pid);
        }
    }

    /// A file was mapped.
    fn mapped(&mut self, pid: u32, mapping: Mapping) {
        let end = mapping.address.saturating_add(mapping.bytes);
        let of = self.mapped.entry(pid).or_default();
        // It replaces what was there.
        of.retain(|it| it.address.saturating_add(it.bytes) <= mapping.address || it.address >= end);
        of.push(mapping);
        self.unwinders.remove(&pid);
    }

    /// The addresses of a stack, innermost first, and whether it is cut.
    pub(crate) fn unwind(&mut self, pid: u32, stack: &Stack) -> (Vec<u64>, bool) {
        // framehop knows no 32-bit processor.
        if stack.is_foreign || cfg!(target_pointer_width = "32") {
            return (vec![stack.ip], true);
        }
        if !self.unwinders.contains_key(&pid) {
            let unwinder = self.unwinder(pid);
            self.unwinders.insert(pid, unwinder);
        }
        let unwinder = &self.unwinders[&pid];
        let mut cache = Cache::new();
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(stack.sp).ok_or(())?).map_err(drop)?;
            let bytes = stack.dump.get(at..at + 8).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(drop)?))
        };
        #[cfg(target_arch = "x86_64")]
        let registers = Registers::new(stack.ip, stack.sp, stack.fp);
        #[cfg(not(target_arch = "x86_64"))]
        let registers = Registers::new(stack.lr, stack.sp, stack.fp);
        let mut frames = unwinder.iter_frames(stack.ip, registers, &mut cache, &mut read);
        let mut all = Vec::new();
        while all.len() < FRAMES_MAX {
            match frames.next() {
                Ok(Some(frame)) => all.push(frame.address_for_lookup()),
                Ok(None) => return (all, false),
                Err(_) => return (all, true),
            }
        }
        (all, true)
    }

    fn unwinder(&mut self, pid: u32) -> Unwinder<Vec<u8>> {
        let mut unwinder = Unwinder::new();
        for mapping in self.mapped.get(&pid).cloned().unwrap_or_default() {
            let Some(image) = self.image(pid, &mapping) else { continue };
            let Some(base) = image.base(&mapping) else { continue };
            let section = |name: &str| image.sections.get(name);
            let range = |name: &str| section(name).map(|(at, of)| *at..*at + of.len() as u64);
            let data = |name: &str| section(name).map(|(_, of)| of.clone());
            let info = ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: range(".text"),
                text: data(".text"),
                got_svma: range(".got"),
                eh_frame_svma: range(".eh_frame"),
                eh_frame: data(".eh_frame"),
                eh_frame_hdr_svma: range(".eh_frame_hdr"),
                eh_frame_hdr: data(".eh_frame_hdr"),
                debug_frame: data(".debug_frame"),
                ..ExplicitModuleSectionInfo::default()
            };
            let end = mapping.address.saturating_add(mapping.bytes);
            unwinder.add_module(Module::new(mapping.path, mapping.address..end, base, info));
        }
        unwinder
    }

    /// The frames of an address: of functions that were made part of another one, too.
    pub(crate) fn frames(&mut self, pid: u32, address: u64) -> Vec<StackFrame> {
        let bare = StackFrame { address, ..StackFrame::default() };
        let is_in = |it: &&Mapping| address >= it.address && address - it.address < it.bytes;
        let found = self.mapped.get(&pid).and_then(|all| all.iter().find(is_in)).cloned();
        let Some(mapping) = found else { return vec![bare] };
        let bare = StackFrame { module: Some(mapping.path.clone()), ..bare };
        let Some(image) = self.image(pid, &mapping) else { return vec![bare] };
        let Some(base) = image.base(&mapping) else { return vec![bare] };
        let inside = address.wrapping_sub(base);
        let mut all = image.lines(inside, &bare);
        if all.is_empty() {
            all.push(bare);
        }
        if let Some(last) = all.last_mut().filter(|last| last.function.is_none()) {
            last.function = image.function(inside);
        }
        all
    }

    fn image(&mut self, pid: u32, mapping: &Mapping) -> Option<Rc<Image>> {
        let key = (mapping.path.clone(), mapping.inode);
        let open = || Image::read(&open(pid, mapping)?).map(Rc::new);
        self.images.entry(key).or_insert_with(open).clone()
    }
}

/// Reads a file that a process has mapped, as the process sees it: nothing else that now has its
/// name.
fn open(pid: u32, mapping: &Mapping) -> Option<Vec<u8>> {
    if !mapping.path.starts_with('/') {
        return None;
    }
    let is_it = |of: &Metadata| {
        let is_same = mapping.inode == 0 || of.ino() == mapping.inode;
        of.is_file() && of.len() <= FILE_MAX && is_same
    };
    let read = |path: &str| {
        // A pipe in its place would be waited for.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        #[expect(clippy::disallowed_methods, reason = "the user's own program and its libraries")]
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        let of = file.metadata().ok().filter(is_it)?;
        let mut bytes = Vec::new();
        file.take(of.len()).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    read(&format!("/proc/{pid}/root{}", mapping.path)).or_else(|| read(&mapping.path))
}

impl Image {
    fn read(bytes: &[u8]) -> Option<Self> {
        let file = object::File::parse(bytes).ok()?;
        let section = |name: &'static str| {
            let section = file.section_by_name(name)?;
            Some((name, (section.address(), section.uncompressed_data().ok()?.into_owned())))
        };
        let names = [".text", ".got", ".eh_frame", ".eh_frame_hdr", ".debug_frame"];
        let sections = names.into_iter().filter_map(section).collect();
        let load = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
            let data = file.section_by_name(id.name());
            let data = data.and_then(|of| of.uncompressed_data().ok()).unwrap_or_default();
            Ok(Slice::new(data.into_owned().into(), NativeEndian))
        };
        let dwarf = gimli::Dwarf::load(load).ok();
        let lines = dwarf.and_then(|dwarf| addr2line::Context::from_dwarf(dwarf).ok());
        let mut functions: Vec<(u64, u64, String)> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|of| of.kind() == object::SymbolKind::Text && of.address() > 0)
            .filter_map(|of| Some((of.address(), of.size(), of.name().ok()?.to_owned())))
            .collect();
        functions.sort();
        // Others may share a page with one that is executed.
        let is_code = |of: &object::Segment<'_, '_>| match of.flags() {
            object::SegmentFlags::Elf { p_flags, .. } => (p_flags & object::elf::PF_X).0 != 0,
            _ => true,
        };
        let segments = file.segments().filter(is_code);
        let segments = segments.map(|of| (of.file_range().0, of.file_range().1, of.address()));
        let segments = segments.collect();
        Some(Self { lines, functions, sections, segments })
    }

    /// What is added to an address of the file to get that in the process.
    fn base(&self, of: &Mapping) -> Option<u64> {
        let holds = |&&(at, bytes, _): &&(u64, u64, u64)| {
            // A mapping begins with the page in which the segment does.
            of.offset < at.saturating_add(bytes) && at < of.offset.saturating_add(of.bytes)
        };
        let &(at, _, address) = self.segments.iter().filter(holds).max_by_key(|it| it.0)?;
        Some(of.address.wrapping_sub(address.wrapping_sub(at).wrapping_add(of.offset)))
    }

    fn lines(&self, inside: u64, bare: &StackFrame) -> Vec<StackFrame> {
        let Some(lines) = &self.lines else { return Vec::new() };
        let mut all = Vec::new();
        let Ok(mut frames) = lines.find_frames(inside).skip_all_loads() else { return all };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let location = frame.location.as_ref();
            all.push(StackFrame {
                function: function.map(|name| demangled(&name)),
                file: location.and_then(|at| at.file).map(ToOwned::to_owned),
                line: location.and_then(|at| at.line),
                ..bare.clone()
            });
        }
        all
    }

    fn function(&self, inside: u64) -> Option<String> {
        let after = self.functions.partition_point(|(at, ..)| *at <= inside);
        let (at, size, name) = self.functions.get(after.checked_sub(1)?)?;
        (inside - at < *size).then(|| demangled(name))
    }
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// The innermost frame of the program itself: not of the C library, nor of Rust's own.
pub(crate) fn own(stack: &[StackFrame]) -> Option<&StackFrame> {
    const LIBRARIES: &[&str] = &[
        "libc.so",
        "libc-",
        "libpthread",
        "ld-linux",
        "librt",
        "libm.so",
        "libstdc++",
        "libgcc_s",
    ];
    let is_program = |it: &&StackFrame| {
        let name = it.module.as_deref().and_then(|of| of.rsplit('/').next()).unwrap_or("[");
        !name.starts_with('[') && !LIBRARIES.iter().any(|of| name.starts_with(of))
    };
    let is_standard = |it: &&StackFrame| {
        let function = it.function.as_deref().unwrap_or_default();
        let file = it.file.as_deref().unwrap_or_default();
        let starts = ["std::", "core::", "alloc::", "<std::", "<core::", "<alloc::"];
        starts.iter().any(|of| function.starts_with(of))
            || ["/rustc/", "/library/std/", "/library/core/", "/library/alloc/"]
                .iter()
                .any(|of| file.contains(of))
    };
    let mut program = stack.iter().filter(is_program).filter(|it| !is_standard(it));
    let all = program.clone();
    program.find(|it| it.line.is_some_and(|line| line > 0)).or_else(|| {
        let is_start = |it: &&StackFrame| it.function.as_deref() == Some("_start");
        let mut named = all.filter(|it| it.function.is_some() && !is_start(it));
        named.next()
    })
}

// A program that already runs: which it is, its threads, and what they were doing before anybody
// observed them.

/// Why the kernel does not report a thread of a program that was observed from its start.
pub(super) const UNREPORTED: &str =
    "a set-user-ID program, or one that may not be read, was executed";

/// The same of one that ran before.
pub(super) const MISSED: &str = "it was started while rtproof came, or it executed a program that \
                                 is set-user-ID or may not be read";

/// A thread that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunningThread {
    pub pid: u32,
    pub(crate) tid: u32,
}

/// The application that a process is.
///
/// # Errors
/// No such process, or a kernel thread (usage).
pub(crate) fn program(root: &Root, pid: u32) -> anyhow::Result<App> {
    if pid == std::process::id() {
        return Err(usage(format!(
            "--pid {pid}: that is this rtproof itself; name another process"
        )));
    }
    let app = App::read(root, &Target::Pid(pid));
    let app = app.map_err(|error| usage(format!("--pid {pid}: {error}")))?;
    if !runs(root, &app) {
        return Err(usage(format!(
            "--pid {pid}: the process has ended, and its parent has not waited for it; name one \
             that runs"
        )));
    }
    Ok(app)
}

/// Whether a thread of it runs: the first one may have ended before the others.
pub(super) fn runs(root: &Root, app: &App) -> bool {
    let main = app.processes.iter().find(|of| of.pid == app.pid);
    let is_same = main.map(|of| of.start_ticks) == task::start_ticks(root, app.pid);
    let mut threads = task::threads(root, app.pid).into_iter();
    is_same && threads.any(|tid| is_live(root, RunningThread { pid: app.pid, tid }))
}

/// The threads of a process and of those that it has started; rtproof's own left out, which may be
/// among them.
pub(crate) fn program_threads(root: &Root, pid: u32) -> Vec<RunningThread> {
    let own = std::process::id();
    let ours: BTreeSet<u32> = task::descendants(root, own).into_iter().chain([own]).collect();
    let all = task::descendants(root, pid).into_iter().chain([pid]);
    let all = all.filter(|pid| !ours.contains(pid));
    let of = |pid| task::threads(root, pid).into_iter().map(move |tid| RunningThread { pid, tid });
    all.flat_map(of).filter(|of| is_live(root, *of)).collect()
}

/// Whether a thread has not ended.
fn is_live(root: &Root, of: RunningThread) -> bool {
    let stat = root.read_text(&format!("/proc/{}/task/{}/stat", of.pid, of.tid));
    let state = stat.value().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X' | 'x'))
}

/// The name of a thread.
pub(crate) fn thread_name(of: &RunningThread) -> String {
    let name = Root::live().trimmed(&format!("/proc/{}/task/{}/comm", of.pid, of.tid));
    name.value().cloned().unwrap_or_default()
}

/// The system call that a thread is in, where it waits in one: number and arguments.
pub(super) fn call_of(of: &RunningThread) -> Option<(i64, [u64; 6])> {
    let text = Root::live().read_text(&format!("/proc/{}/task/{}/syscall", of.pid, of.tid));
    let mut words = text.value()?.split_whitespace();
    let number = words.next()?.parse().ok().filter(|&number| number >= 0)?;
    let mut args = [0; 6];
    for arg in &mut args {
        *arg = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((number, args))
}

/// The code that the process of a thread has mapped from files; none where that has ended.
fn mappings(of: RunningThread) -> Vec<Mapping> {
    let maps = Root::live().read_text(&format!("/proc/{}/task/{}/maps", of.pid, of.tid));
    let text = maps.value().map(String::as_str).unwrap_or_default();
    text.lines().filter_map(mapping).collect()
}

/// A line of /proc/PID/maps: `7f..-7f.. r-xp 00001000 fe:00 1234    /path`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (range, rights, offset) = (word()?, word()?, word()?);
    let (_, inode) = (word()?, word()?);
    let (from, to) = range.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (address, end) = (hex(from)?, hex(to)?);
    let path = rest.trim_start().to_owned();
    let is_code = rights.contains('x') && path.starts_with('/');
    let (offset, inode) = (hex(offset)?, inode.parse().ok()?);
    is_code.then_some(Mapping { address, bytes: end.checked_sub(address)?, offset, inode, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_frame_goes_first() {
        let frame = |module: &str, function: &str, file: &str, line: u32| StackFrame {
            module: Some(module.into()),
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(line),
            address: 1,
        };
        let stack = [
            frame("/lib/x86_64-linux-gnu/libc.so.6", "write", "write.c", 5),
            frame("/home/a/loop", "std::io::print", "/rustc/abc/library/std/src/io.rs", 7),
            frame("/home/a/loop", "work", "src/main.rs", 12),
            frame("/home/a/loop", "main", "src/main.rs", 30),
        ];
        assert_eq!(own(&stack).and_then(|it| it.line), Some(12));
        assert_eq!(own(&stack[..1]), None);
    }

    #[test]
    fn a_file_that_is_no_program_has_no_symbols() {
        assert!(Image::read(b"no program").is_none());
        assert!(Image::read(b"").is_none());
    }
}

#[cfg(test)]
mod threads_tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_code_of_a_file_or_none() {
        let line = "7f10-7f30 r-xp 00001000 fe:00 1234                       /opt/a b/loop";
        let path = "/opt/a b/loop".to_owned();
        let wanted = Mapping { address: 0x7f10, bytes: 0x20, offset: 0x1000, inode: 1234, path };
        assert_eq!(mapping(line), Some(wanted));
        for other in [
            "7f10-7f30 rw-p 00001000 fe:00 1234                       /opt/loop",
            "7f10-7f30 r-xp 00000000 00:00 0                          [vdso]",
            "7f10-7f30 r-xp 00000000 00:00 0 ",
            "",
            "7f30-7f10 r-xp 00001000 fe:00 1234                       /opt/loop",
        ] {
            assert_eq!(mapping(other), None, "{other}");
        }
    }

    #[test]
    fn our_own_threads_are_not_among_those_of_a_program() {
        // The parent of the tests has them as descendants.
        let root = Root::live();
        let parent = rustix::process::getppid().map(|of| of.as_raw_nonzero().get().cast_unsigned());
        let found = program_threads(&root, parent.expect("a parent"));
        assert!(found.iter().all(|of| of.pid != std::process::id()), "{found:?}");
    }
}
