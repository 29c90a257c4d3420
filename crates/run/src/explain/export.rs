//! One spike as a file for other tools' pictures.

use std::path::Path;

use anyhow::Context;
use rtproof_judge::causes::{Spike, title};
use rtproof_trace::{Window, dat, perfetto};

use crate::file::write_whole;

/// Writes the window of a spike: for ui.perfetto.dev, for trace-cmd and KernelShark.
pub fn export(
    spike: &Spike,
    window: &Window,
    perfetto_path: Option<&Path>,
    trace_dat_path: Option<&Path>,
) -> anyhow::Result<()> {
    if let Some(path) = perfetto_path {
        let bytes = perfetto_bytes(spike, window);
        write_whole(path, |to| Ok(to.write_all(&bytes)?)).with_context(|| cannot(path))?;
    }
    if let Some(path) = trace_dat_path {
        let mut bytes = Vec::new();
        dat::write_window(window, "mono", &mut bytes)?;
        write_whole(path, |to| Ok(to.write_all(&bytes)?)).with_context(|| cannot(path))?;
    }
    Ok(())
}

fn perfetto_bytes(spike: &Spike, window: &Window) -> Vec<u8> {
    let explanation = &spike.explanation;
    let names: Vec<String> = explanation
        .shares
        .iter()
        .map(|share| match share.culprit.as_str() {
            "" => title(&share.cause).to_owned(),
            culprit => format!("{}: {culprit}", share.cause),
        })
        .collect();
    let spans: Vec<(u64, u64, &str)> = explanation
        .spans
        .iter()
        .filter_map(|span| {
            Some((span.from_ns, span.to_ns, names.get(span.share as usize)?.as_str()))
        })
        .collect();
    perfetto::encode(window, &explanation.wake, &spans)
}

fn cannot(path: &Path) -> String {
    format!("{}: cannot be written", path.display())
}
