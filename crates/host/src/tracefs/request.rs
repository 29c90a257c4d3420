//! What a tracer is to do.

use crate::CpuList;

/// Size of the ring of a CPU, kilobytes: seconds of samples.
const RING_KB: u64 = 1024;

/// A tracer to run, with its CPUs and options.
#[derive(Clone, Debug)]
pub struct TracerRequest {
    /// Name, as in `available_tracers`.
    pub tracer: &'static str,
    pub cpus: CpuList,
    /// Size of the ring of each, kilobytes.
    pub ring_kb: u64,
    /// Settings that all instances share: file below the folder of tracefs, value. Those that a
    /// kernel lacks are an error.
    pub shared: Vec<(&'static str, String)>,
    /// Options of the tracer: some kernels keep them for each instance, some for all together.
    pub options: &'static [(&'static str, &'static str)],
    /// Settings of the instance: file below its folder, value.
    pub own: Vec<(&'static str, String)>,
    /// Events to enable, `system:event`.
    pub events: Vec<&'static str>,
}

impl TracerRequest {
    /// A tracer on one CPU.
    pub fn on_one_cpu(tracer: &'static str, cpu: u32, shared: Vec<(&'static str, String)>) -> Self {
        Self {
            tracer,
            cpus: CpuList::new([cpu]),
            ring_kb: RING_KB,
            shared,
            options: &[],
            own: Vec::new(),
            events: Vec::new(),
        }
    }
}
