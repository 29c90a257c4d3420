//! Boots a kernel under QEMU with an initramfs that holds rtproof, runs commands inside, and brings
//! out what they made.

pub mod image;
#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use image::{ConfigText, Failed, Located};

use rtproof_guest::{
    Arch, Emulator, GuestCommand, GuestHardware, GuestMode, GuestPlan, RECENT, RanCommand, inside,
    modules::{self, Chosen},
    process::{self, GuestEnding, GuestOutcome, Spec},
};
use rtproof_results::kernel::{BOOT_SCHEMA, Booted, Guest, GuestClock, GuestStep};

use rtproof_host::door;

use crate::KernelError;

/// Time until init speaks.
const SPEAK_LIMIT: Duration = Duration::from_secs(180);

/// CPUs where none are asked for.
const CPUS: u32 = 2;

/// What to boot, on which machine, and what runs inside.
#[derive(Clone, Debug)]
pub struct BootRequest {
    /// FILE, VERSION or DIR.
    pub kernel: PathBuf,
    /// The kernel's configuration, where it is elsewhere.
    pub config: Option<PathBuf>,
    /// Folder of its modules, where it is elsewhere.
    pub modules: Option<PathBuf>,
    /// Modules to be loaded.
    pub load: Vec<String>,
    /// rtproof for the guest, where this program cannot be.
    pub binary: Option<PathBuf>,
    pub cpus: Option<u32>,
    /// Hardware threads of each core.
    pub threads: u32,
    pub memory_mib: u32,
    /// Whether KVM is left alone.
    pub no_kvm: bool,
    /// Whether time counts instructions.
    pub icount: bool,
    /// Added to the kernel's command line.
    pub append: String,
    /// What runs, in order: name, program and arguments. `rtproof` is the guest's own.
    pub steps: Vec<(String, Vec<String>)>,
    /// Programs of this machine that are taken along.
    pub programs: Vec<PathBuf>,
    /// Files that are taken along.
    pub files: Vec<PathBuf>,
    /// Where all files go; `None`: `boot-RELEASE` in the working directory.
    pub folder: Option<PathBuf>,
    /// What the guest may take, from when init speaks.
    pub limit: Duration,
}

/// Runs as init, if these are the arguments of one. Returns where they are not.
///
/// # Errors
/// This is not the first process of a guest.
pub fn init(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> anyhow::Result<()> {
    // The kernel puts parameters that it does not know before it.
    if arguments.next().is_some_and(|name| name == "/init")
        && arguments.any(|argument| argument == rtproof_guest::COMMAND)
    {
        inside::main()?;
    }
    Ok(())
}

/// Boots the kernel in a QEMU guest and waits for its end.
///
/// # Errors
/// The kernel cannot be booted, a program is missing, or the guest did not come to its end: with
/// the console's lines and where its log is.
pub fn boot(request: &BootRequest, interrupted: &dyn Fn() -> bool) -> Result<Booted, KernelError> {
    let located = image::locate(&request.kernel, request.config.as_deref())?;
    let arch = located.image.arch;
    check_config(&located)?;
    check_append(&request.append)?;
    let emulator = Emulator::installed(arch)?;
    let (mut hardware, mut notes) = hardware(request, arch, &emulator)?;
    let binary = binary(request, arch)?;
    let modules = chosen(request, &located)?;
    let (plan, programs) = plan(request, arch, &modules)?;
    let archive = image::archive(&image::Content {
        arch,
        binary: &binary,
        programs: &programs,
        files: &request.files,
        config: located.config.as_ref().map(|config| config.text.as_str()),
        modules: &modules,
        plan: &plan,
    })?;
    check_memory(request.memory_mib, archive.len())?;
    let folder = made(request, &located)?;
    let initramfs = Temporary::write(&folder, "initramfs.cpio", &archive)?;
    let unpacked = bootable(&located, &folder)?;
    let kernel = unpacked.as_ref().map_or(&located.path, |it| &it.path);
    let log = folder.join("console.log");
    let (outcome, command_line, errors) = loop {
        let command_line = command_line(arch, hardware.mode, &request.append);
        let mut arguments = hardware.arguments()?;
        // The same random numbers each time, where all else is the same each time.
        let seed: &[&str] = if request.icount { &["-seed", "1"] } else { &[] };
        let words = [
            "-kernel",
            &kernel.display().to_string(),
            "-initrd",
            &initramfs.path.display().to_string(),
            "-append",
            &command_line,
        ];
        arguments.extend(words.iter().chain(seed).map(ToString::to_string));
        let spec = Spec {
            emulator: &emulator,
            arguments,
            dir: &folder,
            speak_limit: SPEAK_LIMIT.min(request.limit),
            limit: request.limit,
            ends_at_panic: true,
            cues: &[],
            interrupted,
        };
        let outcome = process::run(&spec)?;
        let errors = text(&folder.join("qemu.err"));
        // In a machine that is a guest itself, KVM may be there and fail at the first processor.
        let is_kvm_s = outcome.ending == GuestEnding::DiedEarly && text(&log).is_empty();
        if hardware.mode != GuestMode::Kvm || !is_kvm_s || errors.is_empty() {
            break (outcome, command_line, errors);
        }
        hardware.mode = GuestMode::Threads;
        notes.push(format!("QEMU failed with KVM, so it emulated: {}", first(&errors)));
    };
    drop((initramfs, unpacked));
    let mut clock = match hardware.mode {
        GuestMode::Icount => GuestClock::Instructions,
        GuestMode::Kvm => GuestClock::Kvm,
        GuestMode::Threads => GuestClock::Emulated,
    };
    if clock == GuestClock::Kvm && errors.contains("failed to initialize kvm") {
        clock = GuestClock::Emulated;
        notes.push(format!("QEMU cannot use KVM and emulated: {}", first(&errors)));
    }
    if outcome.ending != GuestEnding::Script(0) {
        return Err(failed(request, &located, &outcome, &log, &errors, clock));
    }
    let (steps, names) = brought(&outcome, &plan, &folder)?;
    let release = release(&text(&log)).unwrap_or_default();
    if let (Some(release_of_file), false) = (&located.image.release, release.is_empty())
        && *release_of_file != release
    {
        notes.push(format!("the image reads as {release_of_file}, the guest reported {release}"));
    }
    let came = text(&folder.join("dmesg.txt")).lines().find_map(cpus_up);
    if let Some(came) = came.filter(|came| *came != hardware.cpus) {
        let most = located.config.as_ref().map(|config| config.value("NR_CPUS"));
        let most = most.map_or_else(String::new, |most| format!("; NR_CPUS={most}"));
        notes.push(format!("{came} of {} CPUs came up{most}", hardware.cpus));
    }
    let (major, minor, patch) = emulator.version;
    Ok(Booted {
        schema: BOOT_SCHEMA,
        image: located.path.display().to_string(),
        release,
        arch: arch.to_string(),
        config: located.config.as_ref().map(|config| config.from.clone()),
        preempt_rt: located.config.as_ref().map(|it| it.value("PREEMPT_RT").to_owned()),
        guest: Guest {
            qemu: format!("{major}.{minor}.{patch}"),
            clock,
            cpus: hardware.cpus,
            memory_mib: hardware.memory_mib,
            command_line,
        },
        init_s: outcome.init_s.unwrap_or(0.0),
        seconds: outcome.seconds,
        steps,
        folder: folder.display().to_string(),
        files: names,
        notes,
    })
}

/// `smp: Brought up 1 node, 2 CPUs` (kernel/smp.c).
fn cpus_up(line: &str) -> Option<u32> {
    line.split_once("smp: Brought up ")?.1.split_once(", ")?.1.split(' ').next()?.parse().ok()
}

/// Without these nothing comes out of a guest.
fn check_config(located: &Located) -> Result<(), KernelError> {
    let Some(config) = &located.config else { return Ok(()) };
    let missing = config.missing(located.image.arch);
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = missing.iter().map(|name| format!("CONFIG_{name}=y")).collect();
    let why = format!(
        "a guest of it could not be reached: {} is needed, which {} does not have; `rtproof kernel \
         config --for guest` sets it",
        lines.join(", "),
        config.from
    );
    Err(KernelError::path(&located.path, why))
}

/// What follows `--` on a kernel's command line is init's.
fn check_append(append: &str) -> Result<(), KernelError> {
    let is_ours = |word: &str| word == "--" || word.starts_with("rdinit=");
    match append.split_whitespace().find(|word| is_ours(word)) {
        Some(word) => Err(KernelError::path("--append", format!("{word:?} is set by rtproof"))),
        None => Ok(()),
    }
}

/// An initramfs is in memory twice while it is unpacked.
fn check_memory(memory_mib: u32, archive: usize) -> Result<(), KernelError> {
    let needed = u32::try_from(archive >> 19).unwrap_or(u32::MAX).saturating_add(128);
    if needed > memory_mib {
        let why = format!(
            "{memory_mib} MiB are too little: the initramfs has {} MiB; give at least {needed}",
            archive >> 20
        );
        return Err(KernelError::path("--memory", why));
    }
    Ok(())
}

fn hardware(
    request: &BootRequest,
    arch: Arch,
    emulator: &Emulator,
) -> Result<(GuestHardware, Vec<String>), KernelError> {
    let mut notes = Vec::new();
    let mode = match (request.icount, request.no_kvm) {
        (true, _) => GuestMode::Icount,
        (false, true) => GuestMode::Threads,
        (false, false) => match rtproof_guest::kvm(arch) {
            Ok(()) => GuestMode::Kvm,
            Err(error) => {
                notes.push(format!("KVM is not used: {error:#}"));
                GuestMode::Threads
            }
        },
    };
    let cpus = request.cpus.unwrap_or(if request.icount { 1 } else { CPUS });
    if request.icount && cpus > 1 && emulator.version < RECENT {
        let (major, minor, patch) = emulator.version;
        let why = format!(
            "{} is {major}.{minor}.{patch}, which hangs with several CPUs under --icount; 10.0 or \
             later is needed, or --cpus 1",
            emulator.program.display()
        );
        return Err(KernelError::path("--cpus", why));
    }
    let (memory_mib, threads) = (request.memory_mib, request.threads);
    if !cpus.is_multiple_of(threads) {
        let why = format!("{cpus} CPUs are no whole cores of {threads} threads");
        return Err(KernelError::path("--threads", why));
    }
    let fixed_date = request.icount;
    Ok((GuestHardware { arch, mode, cpus, threads, nodes: 1, memory_mib, fixed_date }, notes))
}

/// rtproof for the guest.
fn binary(request: &BootRequest, arch: Arch) -> Result<PathBuf, KernelError> {
    if let Some(path) = &request.binary {
        return Ok(path.clone());
    }
    if Arch::native() != Some(arch) {
        let why = format!(
            "the kernel is for {arch}: a static rtproof for {arch} is needed, give it with --binary"
        );
        return Err(KernelError::path(&request.kernel, why));
    }
    std::env::current_exe().map_err(KernelError::io("/proc/self/exe"))
}

/// Modules that were asked for, with what they depend on.
fn chosen(request: &BootRequest, located: &Located) -> Result<Chosen, KernelError> {
    if request.load.is_empty() {
        return Ok(Chosen::default());
    }
    let names: Vec<String> = request.load.iter().map(|name| name.replace('-', "_")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(folder) = request.modules.as_ref().or(located.modules.as_ref()) else {
        let why = "where its modules are is unknown: give the folder with --modules";
        return Err(KernelError::path(&located.path, why));
    };
    Ok(modules::choose(folder, &names, &[], &names)?)
}

/// What the guard of `prove` needs that removes its instance of tracefs.
const GUARD: &[&str] = &["sh", "rm", "rmdir", "sleep"];

/// What init does, and the programs of this machine that it needs for it.
fn plan(
    request: &BootRequest,
    arch: Arch,
    modules: &Chosen,
) -> Result<(GuestPlan, Vec<PathBuf>), KernelError> {
    let mut programs = request.programs.clone();
    let mut steps = Vec::new();
    for (name, command) in &request.steps {
        let mut command = command.clone();
        if let Some(first) = command.first_mut().filter(|first| *first != "rtproof") {
            programs.push(PathBuf::from(&*first));
            let name = Path::new(&*first).file_name().unwrap_or_default().to_string_lossy();
            *first = format!("/bin/{name}");
        }
        steps.push(GuestCommand { name: name.clone(), command });
    }
    let modules = modules.modules.iter().map(|module| format!("{}.ko", module.name)).collect();
    let found = programs.iter().map(|program| {
        inside::find_program(&program.display().to_string()).ok_or_else(|| {
            let why = "no such program: neither a file nor in a folder of PATH";
            KernelError::path(program, why)
        })
    });
    let mut found: Vec<PathBuf> = found.collect::<Result<_, _>>()?;
    if Arch::native() == Some(arch) && steps.iter().any(|step| step.name == "prove") {
        found.extend(GUARD.iter().filter_map(|name| inside::find_program(name)));
    }
    Ok((GuestPlan { modules, steps }, found))
}

/// The folder of all files, which is new.
fn made(request: &BootRequest, located: &Located) -> Result<PathBuf, KernelError> {
    if let Some(folder) = &request.folder {
        fs::create_dir(folder).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                KernelError::path(folder, "is there already; name a new folder, or remove it")
            }
            _ => KernelError::io(folder)(error),
        })?;
        return Ok(folder.clone());
    }
    let release =
        located.image.release.as_deref().filter(|release| rtproof_guest::image::is_plain(release));
    let name = format!("boot-{}", release.unwrap_or("kernel"));
    for number in 1..1000 {
        let folder =
            PathBuf::from(if number == 1 { name.clone() } else { format!("{name}.{number}") });
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(KernelError::io(folder)(error)),
        }
    }
    Err(KernelError::path(name, "is there, with 998 more; name a folder with --output"))
}

/// The kernel's command line.
fn command_line(arch: Arch, mode: GuestMode, append: &str) -> String {
    // The early console shows what hangs or panics before the driver of the real one.
    let console = match arch {
        Arch::X86_64 => "console=ttyS0,115200 earlyprintk=ttyS0,115200",
        Arch::Aarch64 | Arch::Armv7 => "console=ttyAMA0,115200 earlycon",
    };
    // As the lab has it: what emulation makes slow or wrong.
    let emulated = match (arch, mode) {
        (_, GuestMode::Kvm) => "",
        (Arch::X86_64, GuestMode::Threads) => "no_timer_check",
        (Arch::X86_64, GuestMode::Icount) => {
            "no_timer_check tsc=reliable mitigations=off nokaslr cryptomgr.notests"
        }
        (Arch::Aarch64 | Arch::Armv7, GuestMode::Icount) => {
            "mitigations=off nokaslr cryptomgr.notests"
        }
        (Arch::Aarch64 | Arch::Armv7, GuestMode::Threads) => "",
    };
    let parts = [console, "panic=-1", emulated, append.trim(), "--", rtproof_guest::COMMAND];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Bytes of a console that are kept.
const CONSOLE_MAX: u64 = 256 << 20;

/// A file that QEMU needs while it runs.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn write(folder: &Path, name: &str, content: &[u8]) -> Result<Self, KernelError> {
        let it = Self { path: folder.join(name) };
        door::create_anew(&it.path, 0o644)
            .and_then(|mut file| std::io::Write::write_all(&mut file, content))
            .map_err(KernelError::io(&it.path))?;
        Ok(it)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It stays where it cannot be removed; the folder is the user's.
        let _ = fs::remove_file(&self.path);
    }
}

/// What QEMU is given where the file itself is slower or nothing for it.
fn bootable(located: &Located, folder: &Path) -> Result<Option<Temporary>, KernelError> {
    let image = &located.image;
    match &image.kernel {
        Some(kernel) if image.has_pvh || image.is_packed => {
            Temporary::write(folder, "kernel", kernel).map(Some)
        }
        _ => Ok(None),
    }
}

fn text(path: &Path) -> String {
    let bytes = door::read_bytes(path, CONSOLE_MAX).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn first(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What follows a mark of init for the last time.
fn after_mark<'a>(console: &'a str, mark: &str) -> Option<&'a str> {
    console.lines().rev().find_map(|line| Some(line.split_once(mark)?.1.trim()))
}

fn release(console: &str) -> Option<String> {
    after_mark(console, "GUEST-INIT ").map(str::to_owned)
}

fn failed(
    request: &BootRequest,
    located: &Located,
    outcome: &GuestOutcome,
    log: &Path,
    errors: &str,
    clock: GuestClock,
) -> KernelError {
    let console = text(log);
    let driver = match located.image.arch {
        Arch::X86_64 => "SERIAL_8250_CONSOLE",
        Arch::Aarch64 | Arch::Armv7 => "SERIAL_AMBA_PL011_CONSOLE",
    };
    let has = |config: &ConfigText| config.value(driver) == "y";
    Failed {
        ending: &outcome.ending,
        console: &console,
        errors,
        step: after_mark(&console, "GUEST-STEP "),
        limits: (SPEAK_LIMIT.min(request.limit), request.limit),
        is_kvm: clock == GuestClock::Kvm,
        driver,
        has_driver: located.config.as_ref().map(has),
    }
    .error(log)
}

/// Writes the guest's output; the steps and all names.
fn brought(
    outcome: &GuestOutcome,
    plan: &GuestPlan,
    folder: &Path,
) -> Result<(Vec<GuestStep>, Vec<String>), KernelError> {
    let files = rtproof_guest::image::unpack(&outcome.files)?;
    let content = |name: &str| files.iter().find(|(it, _)| it == name).map(|(_, bytes)| &bytes[..]);
    let ran = content(rtproof_guest::RAN).unwrap_or_default();
    let ran: Vec<RanCommand> = serde_json::from_slice(ran)
        .map_err(|error| KernelError::path(folder.join(rtproof_guest::RAN), error.to_string()))?;
    let mut names = vec!["console.log".to_owned(), "command.txt".to_owned()];
    for (name, bytes) in &files {
        if bytes.is_empty() && name.ends_with(".err") {
            continue;
        }
        let name = name.replace("-json.out", ".json");
        write_new(&folder.join(&name), bytes)?;
        names.push(name);
    }
    let of = |step: &RanCommand, ending: &str| {
        let bytes = content(&format!("{}.{ending}", step.name)).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let steps = ran.iter().zip(&plan.steps).map(|(ran, step)| GuestStep {
        name: step.name.clone(),
        command: step.command.clone(),
        exit: ran.exit,
        why: ran.why.clone(),
        seconds: ran.seconds,
        output: of(ran, "out"),
        errors: of(ran, "err"),
    });
    Ok((steps.collect(), names))
}

/// A guest's file never replaces one of ours.
fn write_new(path: &Path, bytes: &[u8]) -> Result<(), KernelError> {
    let mut file = door::create_new(path, 0o644).map_err(KernelError::io(path))?;
    std::io::Write::write_all(&mut file, bytes).map_err(KernelError::io(path))
}
