//! The kernel's rings, read without waiting and without disturbing whom they belong to.
//!
//! A read takes one sub-buffer out of a CPU's ring. The one that the CPU is still writing into is
//! handed out as far as it is filled, with the time of its first record, and the rest comes with
//! the next read. A reader that waits would have the kernel interrupt the traced CPU to be woken;
//! this one asks from time to time instead, from another CPU.

use std::{
    fs::File,
    io::{self, Read},
};

use rtproof_host::tracefs::{Instance, TracefsError};
use rtproof_trace::{Decoder, Page, Store};

use super::watch::Watch;

/// Sub-buffers that are read of one CPU at a look: a ring that is filled faster than it is read
/// must not keep the thread from its other work.
const PAGES_MAX: usize = 4_096;

/// The rings of all recorded CPUs.
#[derive(Debug)]
pub(super) struct Rings {
    pipes: Vec<Pipe>,
    page: Vec<u8>,
    /// Sub-buffers that were read.
    pub(super) pages: u64,
    /// Their bytes, as far as they were filled.
    pub(super) bytes: u64,
    /// Why the last sub-buffer that could not be read could not.
    pub(super) error: Option<String>,
}

#[derive(Debug)]
struct Pipe {
    cpu: u32,
    file: File,
    /// Everything that happened before was read.
    complete_ns: u64,
}

impl Rings {
    /// Opens the rings of some CPUs; those that the kernel has none for are left out.
    pub(super) fn open(
        instance: &Instance,
        cpus: impl Iterator<Item = u32>,
        decoder: &Decoder,
    ) -> Result<Self, TracefsError> {
        let known = instance.cpus();
        let mut pipes = Vec::new();
        for cpu in cpus.filter(|cpu| known.contains(cpu)) {
            pipes.push(Pipe { cpu, file: instance.pipe(cpu)?, complete_ns: 0 });
        }
        let layout = decoder.layout();
        let page = vec![0; layout.data_at + layout.data_bytes];
        Ok(Self { pipes, page, pages: 0, bytes: 0, error: None })
    }

    /// Recording has begun: what comes is complete from now on.
    pub(super) fn begin(&mut self, store: &mut Store, now_ns: u64) {
        for pipe in &mut self.pipes {
            pipe.complete_ns = now_ns;
            store.note_read(pipe.cpu, now_ns);
        }
    }

    /// CPUs that have one.
    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.pipes.iter().map(|pipe| pipe.cpu)
    }

    /// Up to when everything of all CPUs was read.
    pub(super) fn complete_ns(&self) -> u64 {
        self.pipes.iter().map(|pipe| pipe.complete_ns).min().unwrap_or(0)
    }

    /// Reads what there is into the store, and past who watches.
    pub(super) fn drain(
        &mut self,
        store: &mut Store,
        mut watch: Option<&mut Watch>,
        clock: impl Fn() -> u64,
    ) {
        for pipe in &mut self.pipes {
            // What a CPU writes from now on may be left for the next look.
            let now_ns = clock();
            let mut is_empty = false;
            let mut short = 0;
            for _ in 0..PAGES_MAX {
                match pipe.file.read(&mut self.page) {
                    Ok(length) if length > 0 => {
                        let bytes = &self.page[..length];
                        self.pages += 1;
                        let page = Page::parse(store.decoder().layout(), bytes);
                        let used = page.map_or(0, |page| page.used_bytes(store.decoder().layout()));
                        self.bytes += used as u64;
                        if let Some(watch) = &mut watch {
                            watch.push(store.decoder(), pipe.cpu, bytes);
                        }
                        if let Err(error) = store.push(pipe.cpu, bytes) {
                            self.error = Some(format!("CPU {}: {error}", pipe.cpu));
                        }
                        // A page that is not nearly full is the rest of one that was read before,
                        // or the last: two of them are the end. On a busy CPU the next one would
                        // have a few events, and so on.
                        short = if used < length / 2 { short + 1 } else { 0 };
                        if short == 2 {
                            is_empty = true;
                            break;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // Empty; a CPU that has gone offline keeps its ring.
                    _ => {
                        is_empty = true;
                        break;
                    }
                }
            }
            if is_empty {
                pipe.complete_ns = now_ns;
                store.note_read(pipe.cpu, now_ns);
            }
        }
    }
}
